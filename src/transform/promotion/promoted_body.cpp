#include "transform/promotion/promoted_body.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "analysis/graph/registers.h"
#include "ptx-patterns/templates/promote/promote.h"
#include "transform/text/splicer.h"

namespace klap::transform {
namespace {

using analysis::ChainArgument;
using analysis::LinkArgument;
using analysis::parse_address;
using ptx::Statement;

// Holder tells where some bytes of the parameter block are.
enum class Holder { Kernel, Area };

class PartSplicer final : public Splicer {
 public:
  // The area begins so many bytes behind the address in the register.
  PartSplicer(const PromotedParts& parts, std::string prefix, std::string area, uint32_t displacement)
      : Splicer(parts.kernel.module, parts.kernel.function, std::move(prefix)),
        parts_(parts),
        area_(std::move(area)),
        displacement_(displacement) {}

  std::vector<std::string> pieces(const LinkBody& body) {
    body_ = &body;
    around_ = body.around;
    if (body.boundary != nullptr) {
      for (const Statement* moved : parts_.chain.moved) around_[moved] = {"", "", true};
    }
    for (const Statement& s : function_.body.body) {
      if (s.kind == ptx::StatementKind::Label) labels_.insert(m_.text(s.head));
      if (!body.declares && declares(s)) around_[&s] = {"", "", true};
    }
    std::string last = Splicer::body();
    if (body.declares) (pieces_.empty() ? last : pieces_.front()).insert(0, position());
    pieces_.push_back(std::move(last));
    return std::move(pieces_);
  }

  std::string slice(const analysis::Slice& slice) {
    out_ = position() + declarations(slice);
    for (const Statement* s : slice) instruction(*s);
    return std::move(out_);
  }

  std::string operand(const std::string& text) { return names_.contains(text) ? prefixed(text) : text; }

 private:
  [[nodiscard]] bool declares(const Statement& s) const {
    constexpr std::array kSpaces = {".reg", ".shared", ".global", ".const", ".param"};
    return s.kind == ptx::StatementKind::Directive &&
           std::ranges::any_of(kSpaces, [&](const char* space) { return m_.is(s.head, space); });
  }

  // The position in the one block of the program's grid.
  [[nodiscard]] std::string position() const {
    return fmt::format(
        "\t.reg .b32 %{0}ctaid, %{0}nctaid;\n\tmov.b32 %{0}ctaid, 0;\n\tmov.b32 %{0}nctaid, 1;\n", prefix_);
  }

  // Declares the registers that a slice names, each of which must be the only one of its name there.
  [[nodiscard]] std::string declarations(const analysis::Slice& slice) const {
    const analysis::VirtualRegisters registers(parts_.kernel.flow);
    std::map<std::string_view, uint32_t> declared;
    std::string text;
    for (const Statement* s : slice) {
      for (const analysis::Access& access : registers.accesses(parts_.kernel.flow.index_of(s))) {
        const analysis::VirtualRegister& reg = registers[access.reg];
        const auto [known, is_new] = declared.emplace(reg.name, access.reg);
        if (known->second != access.reg || reg.lanes != 1) throw unsupported(s->head);
        if (is_new) text += fmt::format("\t.reg {} {};\n", reg.type, prefixed(reg.name));
      }
    }
    return text;
  }

  void instruction(const Statement& s) {
    current_ = &s;
    if (!special(s)) out_ += "\t" + renamed(s.tokens) + "\n";
  }

  void begin(const Statement& s) override {
    if (body_ == nullptr) return;
    if (body_->cuts.contains(&s)) pieces_.push_back(std::exchange(out_, {}));
    if (&s != body_->boundary) return;
    out_ += "\t" + body_->at_boundary + "\n";
    for (const Statement* again : body_->again) instruction(*again);
    for (const Statement* moved : parts_.chain.moved) instruction(*moved);
  }

  [[nodiscard]] const Around* around(const Statement& s) const override {
    const auto found = around_.find(&s);
    return found == around_.end() ? nullptr : &found->second;
  }

  bool special(const Statement& s) override {
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "ld" && (m_.has_modifier(s, ".param") || m_.has_modifier(s, ".param::entry")))
      return parameter_load(s);
    if (opcode == "ld" && m_.has_modifier(s, ".nc")) return coherent_load(s);
    return false;
  }

  bool coherent_load(const Statement& s) {
    line(fmt::format("{}ld{} {}, {}", guard(s), modifiers_without(s, ".nc"), renamed(s.operands[0]),
                     renamed(s.operands[1])));
    return true;
  }

  // ---- parameters ----

  [[nodiscard]] const ptx::Parameter* parameter(std::string_view name) const {
    const auto found = std::ranges::find(function_.parameters, name, &ptx::Parameter::name);
    return found == function_.parameters.end() ? nullptr : &*found;
  }

  // The holder of these bytes. Nothing if both hold some of them, or the launch stores none.
  [[nodiscard]] std::optional<Holder> holder(uint32_t from, uint32_t bytes) const {
    uint32_t of_kernel = 0, of_area = 0;
    for (const ChainArgument& argument : parts_.chain.arguments) {
      const uint32_t first = std::max(from, argument.offset);
      const uint32_t last = std::min(from + bytes, argument.offset + argument.bytes);
      if (first >= last) continue;
      (argument.kind == LinkArgument::Unchanged ? of_kernel : of_area) += last - first;
    }
    if (of_kernel == bytes) return Holder::Kernel;
    if (of_area == bytes) return Holder::Area;
    return std::nullopt;
  }

  // The type `.u32` of `ld.param.v2.u32`. The next function gives its modifiers for one component.
  [[nodiscard]] std::string_view type_of(const Statement& s) const { return m_.text(s.modifiers.last - 1); }
  [[nodiscard]] std::string modifiers_of_one(const Statement& s) const {
    std::string text;
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      const std::string_view modifier = m_.text(t);
      const bool is_count = modifier.size() == 3 && modifier.starts_with(".v");
      if (!is_count && !modifier.starts_with(".param")) text += modifier;
    }
    return text;
  }

  void load(const Statement& s, Holder holder, const std::string& modifiers, const std::string& target,
            const ptx::Parameter& p, uint32_t offset) {
    const bool is_own = holder == Holder::Kernel;
    line(fmt::format("{}ld.{}{} {}, [{}+{}]", guard(s), is_own ? "param" : "shared", modifiers, target,
                     is_own ? p.name : area_, is_own ? offset : displacement_ + p.offset + offset));
  }

  bool parameter_load(const Statement& s) {
    const auto address = s.operands.size() == 2 ? parse_address(m_, s.operands[1]) : std::nullopt;
    if (!address) throw unsupported(s.head);
    const ptx::Parameter* const p = parameter(address->base);
    // A load by the address of a parameter, all of which is the kernel's, or a load of a call's result.
    if (p == nullptr) return false;
    const std::vector<std::string> targets = analysis::components(m_, s.operands[0]);
    const uint32_t bytes = ptx::type_bytes(type_of(s)), count = static_cast<uint32_t>(targets.size());
    const auto offset = static_cast<uint32_t>(address->offset);
    if (address->offset < 0 || bytes == 0) throw unsupported(s.head);
    if (const auto all = holder(p->offset + offset, bytes * count)) {
      load(s, *all, modifiers_without(s, ".param"), renamed(s.operands[0]), *p, offset);
      return true;
    }
    for (uint32_t i = 0; i < count; ++i) {
      const auto one = holder(p->offset + offset + i * bytes, bytes);
      if (!one) throw unsupported(s.head);
      if (targets[i] != "_") load(s, *one, modifiers_of_one(s), operand(targets[i]), *p, offset + i * bytes);
    }
    return true;
  }

  // ---- everything else that the body does not declare ----

  std::string outside(uint32_t token) override {
    const std::string_view text = m_.text(token);
    if (const ptx::Parameter* p = parameter(text)) {
      if (holder(p->offset, p->bytes) != Holder::Kernel) throw unsupported(token);
      return std::string(text);
    }
    if (body_ != nullptr) {
      const auto renamed = body_->variables.find(text);
      if (renamed != body_->variables.end()) return renamed->second;
    }
    if (text != "%ctaid" && text != "%nctaid") return std::string(text);
    const bool is_wide = !current_->modifiers.empty() && ptx::type_bytes(type_of(*current_)) == 4;
    const std::string_view axis = m_.text(token + 1);
    if (!is_wide || (axis != ".x" && axis != ".y" && axis != ".z")) throw unsupported(token);
    swallow_next_ = true;
    return fmt::format("%{}{}", prefix_, text.substr(1));
  }

  [[nodiscard]] std::string prefixed(std::string_view name) const override {
    if (body_ == nullptr || body_->labels.empty() || !labels_.contains(name)) return Splicer::prefixed(name);
    return body_->labels + std::string(name.substr(name[0] == '$' ? 1 : 0));
  }
  [[nodiscard]] std::string end_label() const override {
    return body_ == nullptr || body_->labels.empty() ? Splicer::end_label() : body_->labels + "end";
  }
  std::string location(const Statement& loc) override { return parts_.lines.directive(m_, loc); }

  [[nodiscard]] Error unsupported(uint32_t token) const {
    const Error place = m_.error_at(token, "");
    return Error(ErrorCode::Unsupported, fmt::format("'{}' cannot be redirected", m_.text(token)))
        .at(m_.name, place.line(), place.column())
        .kernel(function_.name);
  }

  const PromotedParts& parts_;
  const std::string area_;
  const uint32_t displacement_;
  const LinkBody* body_ = nullptr;
  Surroundings around_;
  std::vector<std::string> pieces_;    // in front of what is being written
  std::set<std::string_view> labels_;  // of the body itself
};

// The widest access that so many bytes at an offset are aligned for.
uint32_t piece_bytes(uint32_t offset, uint32_t size) {
  for (const uint32_t bytes : {8u, 4u, 2u}) {
    if (size % bytes == 0 && offset % bytes == 0) return bytes;
  }
  return 1;
}

constexpr char kCopyRegisters[] =
    "\t.reg .b16 %klap_copy16;\n\t.reg .b32 %klap_copy32;\n\t.reg .b64 %klap_copy64;\n";
std::string copy_register(uint32_t bytes) { return fmt::format("%klap_copy{}", bytes == 1 ? 16 : 8 * bytes); }

}  // namespace

std::vector<std::string> link_pieces(const PromotedParts& parts, const LinkBody& body) {
  return PartSplicer(parts, body.prefix, body.link, KLAP_LINK_AREA).pieces(body);
}

std::string link_body(const PromotedParts& parts, const LinkBody& body) {
  return fmt::format("{{\n{}\t}}", fmt::join(link_pieces(parts, body), ""));
}

std::string slice_text(const PromotedParts& parts, const analysis::Slice& slice, const std::string& prefix,
                       const std::string& area) {
  return PartSplicer(parts, prefix, area, 0).slice(slice);
}

std::string part_operand(const PromotedParts& parts, const std::string& operand, const std::string& prefix) {
  return PartSplicer(parts, prefix, "", 0).operand(operand);
}

std::string copy_arguments_text(const PromotedParts& parts, const std::string& area) {
  std::string text;
  for (const ChainArgument& argument : parts.chain.arguments) {
    if (argument.kind == LinkArgument::Unchanged) continue;
    const std::vector<ptx::Parameter>& parameters = parts.kernel.function.parameters;
    const auto p = std::ranges::find_if(parameters, [&](const ptx::Parameter& parameter) {
      return argument.offset >= parameter.offset &&
             argument.offset + argument.bytes <= parameter.offset + parameter.bytes;
    });
    if (p == parameters.end())
      throw Error(ErrorCode::Internal, "an argument of the chain lies in no parameter");
    const uint32_t bytes = piece_bytes(argument.offset, argument.bytes);
    for (uint32_t at = argument.offset; at < argument.offset + argument.bytes; at += bytes) {
      const std::string type = fmt::format(".u{}", 8 * bytes);
      const std::string copy = copy_register(bytes);
      text += fmt::format("\tld.param{0} {1}, [{2}+{3}];\n\tst.shared{0} [{4}+{5}], {1};\n", type, copy,
                          p->name, at - p->offset, area, at);
    }
  }
  return kCopyRegisters + text;
}

std::string copy_parameters_text(const PromotedParts& parts, const std::string& buffer,
                                 const std::string& guard) {
  std::string text = kCopyRegisters;
  for (const ptx::Parameter& p : parts.kernel.function.parameters) {
    const uint32_t bytes = std::min(piece_bytes(p.offset, p.bytes), std::max(1u, p.align));
    const std::string copy = copy_register(bytes);
    for (uint32_t at = 0; at < p.bytes; at += bytes) {
      text += fmt::format("\tld.param.u{0} {1}, [{2}+{3}];\n\t{4}st.u{0} [{5}+{6}], {1};\n", 8 * bytes, copy,
                          p.name, at, guard, buffer, p.offset + at);
    }
  }
  return text;
}

}  // namespace klap::transform
