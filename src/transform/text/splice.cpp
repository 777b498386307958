#include "transform/text/splice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "analysis/facts/facts.h"
#include "analysis/graph/dataflow.h"
#include "analysis/inline/inlining.h"
#include "analysis/inline/redirection.h"
#include "analysis/launches/calls.h"
#include "transform/text/splicer.h"

namespace klap::transform {
namespace {

using analysis::parse_address;
using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::TokenRange;

// ---- templates ----

class FunctionSplicer final : public Splicer {
 public:
  FunctionSplicer(const Module& module, const Function& function, const InlineCall& call, LineTables& lines)
      : Splicer(module, function, call.prefix), call_(call), lines_(lines), registers_(module, function) {
    if (call.arguments.size() != function.parameters.size()) {
      throw Error(ErrorCode::Internal, "template called with a wrong number of arguments")
          .kernel(function.name);
    }
  }

 private:
  bool special(const Statement& s) override {
    if (m_.is(s.head, "exit")) {  // it ends the thread, and `ret` the function alone
      line(guard(s) + "exit");
      return true;
    }
    const bool load = m_.is(s.head, "ld") && m_.has_modifier(s, ".param");
    const bool store = m_.is(s.head, "st") && m_.has_modifier(s, ".param");
    if (!load && !store) return false;
    const auto address = parse_address(m_, s.operands[load ? 1 : 0]);
    const std::string width = fmt::format(".b{}", 8 * ptx::type_bytes(m_.text(s.modifiers.last - 1)));
    if (load && address) {
      for (size_t i = 0; i < function_.parameters.size(); ++i) {
        if (function_.parameters[i].name != address->base) continue;
        // A load into a register that is wider than its type extends.
        const uint32_t bits = 8 * ptx::type_bytes(m_.text(s.modifiers.last - 1));
        const uint32_t to = registers_.of(m_.text(s.operands[0].first));
        const std::string how = to > bits ? fmt::format("cvt.u{}.u{}", to, bits) : "mov" + width;
        line(fmt::format("{}{} {}, {}", guard(s), how, renamed(s.operands[0]), call_.arguments[i]));
        return true;
      }
    }
    if (store && address && !function_.results.empty() && function_.results[0].name == address->base) {
      const auto result = call_.results.find(static_cast<uint32_t>(address->offset));
      if (result == call_.results.end()) throw unexpected(s);
      line(fmt::format("{}mov{} {}, {}", guard(s), width, result->second, renamed(s.operands[1])));
      return true;
    }
    return false;
  }

  // A call of the marker, whose operands are stored one by one.
  bool special_scope(const Statement& scope) override {
    if (call_.body_marker.empty()) return false;
    bool is_marker = false;
    std::vector<std::string> operands;
    for (const Statement& s : scope.body) {
      if (s.kind != ptx::StatementKind::Instruction) continue;
      const auto call = analysis::parse_call(m_, s, names_);
      is_marker = is_marker || (call && call->callee == call_.body_marker);
      if (m_.is(s.head, "st")) operands.push_back(renamed(s.operands[1]));
    }
    if (is_marker) out_ += "\t" + call_.body(operands) + "\n";
    return is_marker;
  }

  std::string outside(uint32_t token) override {
    for (const ptx::Parameter& p : function_.parameters) {
      if (m_.is(token, p.name)) throw unexpected_token(token);
    }
    const auto symbol = call_.symbols.find(m_.text(token));
    return symbol == call_.symbols.end() ? std::string(m_.text(token)) : symbol->second;
  }

  [[nodiscard]] Error unexpected(const Statement& s) const { return unexpected_token(s.head); }
  [[nodiscard]] Error unexpected_token(uint32_t token) const {
    Error error = m_.error_at(token, "template uses a form the splicer does not know");
    return Error(ErrorCode::Internal, error.what());
  }

  std::string location(const Statement& loc) override { return lines_.directive(m_, loc); }

  const InlineCall& call_;
  LineTables& lines_;
  const analysis::RegisterBits registers_;
};

// ---- children ----

// The operand that holds an address, and the distance from it where a byte of a parameter lies now. Bytes
// that are counted from a parameter's address stay together with all of the parameter.
std::pair<std::string, int64_t> moved(const Function& function, const InlineKernel& kernel,
                                      const ptx::Parameter& p, int64_t offset) {
  if (kernel.places.empty()) return {kernel.arguments, p.offset + offset};
  const auto from = static_cast<int64_t>(p.offset) + offset;
  for (const ArgumentPlace& place : kernel.places) {
    if (from < place.from || from >= int64_t{place.from} + place.bytes) continue;
    const int64_t at = place.at + from - place.from;
    if (place.once) return {kernel.once, at};
    return {kernel.arguments, at};
  }
  throw Error(ErrorCode::Internal, fmt::format("{} is read but not recorded", p.name)).kernel(function.name);
}

// The state space of the arguments.
const char* argument_space(const InlineKernel& kernel) {
  return kernel.in_parameters ? "param" : kernel.coherent ? "global" : "global.nc";
}

const ptx::Parameter* parameter_of(const Function& function, std::string_view name) {
  const auto found = std::ranges::find(function.parameters, name, &ptx::Parameter::name);
  return found == function.parameters.end() ? nullptr : &*found;
}

bool has_param_space(const Module& m, const Statement& s) {
  return m.has_modifier(s, ".param") || m.has_modifier(s, ".param::entry");
}

// The parameter bytes that a plain load of one value reads, without the register's name.
std::optional<PreloadedArgument> parameter_read(const Module& m, const Function& function,
                                                const analysis::RegisterBits& registers, const Statement& s) {
  if (!m.is(s.head, "ld") || !has_param_space(m, s) || s.operands.size() != 2) return std::nullopt;
  const std::string_view to = m.text(s.operands[0].first);
  const auto address = parse_address(m, s.operands[1]);
  const ptx::Parameter* const p = address ? parameter_of(function, address->base) : nullptr;
  if (p == nullptr || s.operands[0].size() != 1 || address->offset < 0) return std::nullopt;
  const uint32_t bits = registers.of(to);
  if (bits != 16 && bits != 32 && bits != 64) return std::nullopt;
  return PreloadedArgument{p->offset + static_cast<uint32_t>(address->offset),
                           std::string(m.text(s.modifiers.last - 1)), bits, ""};
}

bool is_same(const PreloadedArgument& a, const PreloadedArgument& b) {
  return a.offset == b.offset && a.type == b.type && a.bits == b.bits;
}

class KernelSplicer final : public Splicer {
 public:
  KernelSplicer(const Module& module, const Function& function, const InlineKernel& kernel, LineTables& lines)
      : Splicer(module, function, kernel.prefix), kernel_(kernel), lines_(lines), around_(kernel.around) {
    if (!kernel.preloaded.empty()) registers_.emplace(module, function);
    for (const auto& [loop, iterations] : kernel.loops) {  // their labels write all of them
      for (const Statement* s : loop.iteration) around_[s] = {"", "", true};
      around_[loop.branch] = {"", "", true};
    }
    for (const analysis::OverlaidVariable& variable : kernel.overlaid) {
      if (variable.declaration != nullptr) around_[variable.declaration] = {"", "", true};
    }
    if (kernel.warp_block == nullptr) return;
    for (const analysis::SharedVariable& variable : kernel.warp_block->variables) {
      if (variable.declaration != nullptr) around_[variable.declaration] = {"", declaration(variable), true};
    }
    for (const Statement* barrier : kernel.warp_block->barriers)
      around_[barrier] = {"", "\tbar.warp.sync 0xffffffff;\n", true};
  }

  // A block of one warp has parts of its own also of shared variables that the unit declares.
  [[nodiscard]] std::string outer_declarations() const {
    std::string text;
    if (kernel_.warp_block == nullptr) return text;
    for (const analysis::SharedVariable& variable : kernel_.warp_block->variables) {
      if (variable.declaration == nullptr) text += declaration(variable);
    }
    return text;
  }

 private:
  [[nodiscard]] bool keeps_exits() const override { return kernel_.keep_exits; }

  // ---- threads that have another index for a while ----

  [[nodiscard]] bool is_higher() const {
    return kernel_.higher != nullptr && !runs_again_ && kernel_.higher->statements.contains(current_);
  }
  void begin(const Statement& s) override {
    if (kernel_.higher != nullptr && &s == kernel_.higher->behind) {
      runs_again_ = true;
      for (const Statement* again : kernel_.higher->again) write(*again);
      runs_again_ = false;
    }
    if (&s != kernel_.parting) return;
    out_ += kernel_.parting_text;
    line(fmt::format("@!{} bra {}", kernel_.parting_predicate, end_label()));
  }

  // ---- a block of one warp among several ----

  [[nodiscard]] bool has_part(std::string_view name) const {
    return kernel_.warp_block != nullptr &&
           std::ranges::find(kernel_.warp_block->variables, name, &analysis::SharedVariable::name) !=
               kernel_.warp_block->variables.end();
  }
  // The register with the address of the warp's part, 32 or 64 bits wide.
  [[nodiscard]] std::string part(std::string_view name, uint32_t bits) const {
    return fmt::format("%{}{}${}", prefix_, name, bits);
  }

  [[nodiscard]] std::string declaration(const analysis::SharedVariable& v) const {
    const std::string parts = Splicer::prefixed(v.name), narrow = part(v.name, 32), wide = part(v.name, 64);
    return fmt::format(
        "\t.shared .align {0} .b8 {1}[{2}];\n\t.reg .b32 {3};\n\t.reg .b64 {4};\n\tmov.u32 {3}, {1};\n"
        "\tmad.lo.u32 {3}, {5}, {6}, {3};\n\tcvt.u64.u32 {4}, {3};\n",
        v.align, parts, v.bytes * kernel_.groups, narrow, wide, kernel_.group, v.bytes);
  }

  // A place in the common piece, as the address of a variable that lies there.
  [[nodiscard]] std::optional<std::string> overlaid_name(std::string_view name) const {
    const auto found = std::ranges::find(kernel_.overlaid, name, &analysis::OverlaidVariable::name);
    if (found == kernel_.overlaid.end()) return std::nullopt;
    return found->offset == 0 ? kernel_.overlay : fmt::format("{}+{}", kernel_.overlay, found->offset);
  }

  // The name of a shared variable's part: either in the instruction's address or as the operand of a `mov`.
  [[nodiscard]] std::string prefixed(std::string_view name) const override {
    if (const auto ahead = ahead_.find(name); ahead != ahead_.end()) return ahead->second;
    if (const auto overlaid = overlaid_name(name)) return *overlaid;
    if (!has_part(name)) return Splicer::prefixed(name);
    const bool is_wide =
        m_.is(current_->head, "mov") && ptx::type_bytes(m_.text(current_->modifiers.last - 1)) == 8;
    return part(name, is_wide ? 64 : 32);
  }

  [[nodiscard]] const ptx::Parameter* parameter(std::string_view name) const {
    return parameter_of(function_, name);
  }

  bool special(const Statement& s) override {
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "ld" && has_param_space(m_, s)) return preloaded_move(s) || parameter_load(s);
    if (kernel_.streamed != nullptr && kernel_.streamed->contains(&s)) return streamed_load(s);
    if (opcode == "mov" && s.operands.size() == 2) return move(s);
    if (opcode == "cvta") return parameter_cast(s);
    if (kernel_.coherent && opcode == "ld" && m_.has_modifier(s, ".nc")) return coherent_load(s);
    if (kernel_.may_exit != analysis::MayExit::Nobody && is_block_barrier(s)) return barrier(s);
    return false;
  }

  [[nodiscard]] bool is_block_barrier(const Statement& s) const {
    return (m_.is(s.head, "bar") || m_.is(s.head, "barrier")) && !m_.has_modifier(s, ".warp");
  }

  // `bar.sync 0` becomes the reduction of "some thread stays" that it is together with the end of the block.
  bool barrier(const Statement& s) {
    if (!m_.has_modifier(s, ".sync") || s.operands.size() != 1) throw unsupported(s.head);
    const std::string stays = "%" + prefix_ + "stays";
    line(fmt::format("{{\n\t.reg .pred {0};\n\tmov.pred {0}, 1", stays));
    line(fmt::format("{}{}{}.red.or{}.pred {}, 0, {}", guard(s), m_.text(s.head),
                     m_.has_modifier(s, ".cta") ? ".cta" : "",
                     m_.has_modifier(s, ".aligned") ? ".aligned" : "", stays, stays));
    out_ += "\t}\n";
    return true;
  }

  [[nodiscard]] const Around* around(const Statement& s) const override {
    const auto found = around_.find(&s);
    return found == around_.end() ? nullptr : &found->second;
  }

  [[nodiscard]] std::string operands(const Statement& s) {
    std::string text;
    for (const TokenRange& operand : s.operands) text += (text.empty() ? "" : ", ") + renamed(operand);
    return text;
  }

  // `ldu` and `ld.global.nc` as the plain load that they otherwise are.
  bool coherent_load(const Statement& s) {
    line(fmt::format("{}ld{} {}", guard(s), modifiers_without(s, ".nc"), operands(s)));
    return true;
  }

  // `ld.global` with `.cs` behind the state space, and coherent where every load must be.
  bool streamed_load(const Statement& s) {
    constexpr std::string_view kSpace = ".global";
    std::string modifiers = modifiers_without(s, kernel_.coherent ? ".nc" : ".cs");
    const size_t space = modifiers.find(kSpace);
    if (space == std::string::npos) return false;
    modifiers.insert(space + kSpace.size(), ".cs");
    line(fmt::format("{}ld{} {}", guard(s), modifiers, operands(s)));
    return true;
  }

  // A parameter that is in a register.
  bool preloaded_move(const Statement& s) {
    if (!registers_) return false;
    const auto read = parameter_read(m_, function_, *registers_, s);
    if (!read) return false;
    const bool is_elsewhere = !kernel_.elsewhere.empty() && !is_higher();
    for (const PreloadedArgument& preloaded : is_elsewhere ? kernel_.elsewhere : kernel_.preloaded) {
      if (!is_same(preloaded, *read)) continue;
      line(fmt::format("{}mov.b{} {}, {}", guard(s), preloaded.bits, renamed(s.operands[0]), preloaded.name));
      return true;
    }
    return false;
  }

  // ld.param from a kernel parameter, by name or by an address computed before. A load of a call's result
  // names a .param variable of the body and stays.
  bool parameter_load(const Statement& s) {
    const auto address = s.operands.size() == 2 ? parse_address(m_, s.operands[1]) : std::nullopt;
    if (!address) throw unsupported(s.head);
    if (kernel_.operands != nullptr) return operand_moves(s);
    std::string base;
    int64_t offset = address->offset;
    if (const ptx::Parameter* p = parameter(address->base)) {
      std::tie(base, offset) = moved(function_, kernel_, *p, offset);
    } else if (names_.is_register(address->base)) {
      base = prefixed(address->base);
    } else {
      return false;
    }
    line(fmt::format("{}ld.{}{} {}, [{}+{}]", guard(s), argument_space(kernel_),
                     modifiers_without(s, ".param"), renamed(s.operands[0]), base, offset));
    return true;
  }

  // The parameter becomes the operand that was passed for it, and so does each component of a vector. Checks
  // have found such operands, as wide as what is read.
  bool operand_moves(const Statement& s) {
    const auto access = analysis::parameter_access(m_, s);
    const ptx::Parameter* const p = access ? parameter(access->name) : nullptr;
    if (p == nullptr) throw unsupported(s.head);
    const uint32_t bytes = access->bytes();
    uint32_t offset = p->offset + access->offset;
    for (const std::string& component : access->components) {
      const auto passed = std::ranges::find_if(*kernel_.operands, [&](const analysis::Argument& argument) {
        return argument.bytes == bytes && argument.offset == offset;
      });
      if (passed == kernel_.operands->end()) throw unsupported(s.head);
      line(fmt::format("{}mov.b{} {}, {}", guard(s), 8 * bytes, prefixed(component), passed->source));
      offset += bytes;
    }
    return true;
  }

  // `mov.b64 %rd, param` takes a parameter's address.
  bool move(const Statement& s) {
    const TokenRange source = s.operands[1];
    const ptx::Parameter* p = parameter(m_.text(source.first));
    if (p == nullptr) return false;
    if (ptx::type_bytes(m_.text(s.modifiers.last - 1)) != 8 || kernel_.operands != nullptr)
      throw unsupported(s.head);
    int64_t offset = 0;
    if (source.size() == 3 && m_.is(source.first + 1, "+")) {
      const auto more = ptx::integer_value(m_.text(source.first + 2));
      if (!more) throw unsupported(s.head);
      offset += static_cast<int64_t>(*more);
    } else if (source.size() != 1) {
      throw unsupported(s.head);
    }
    const auto [base, place] = moved(function_, kernel_, *p, 0);
    line(fmt::format("{}add.s64 {}, {}, {}", guard(s), renamed(s.operands[0]), base, place + offset));
    return true;
  }

  // cvta.param and cvta.to.param, where the parameters are in global memory now.
  bool parameter_cast(const Statement& s) {
    if (!has_param_space(m_, s) || s.operands.size() != 2) return false;
    if (kernel_.operands != nullptr) throw unsupported(s.head);
    const TokenRange source = s.operands[1];
    const std::string to = fmt::format("cvta{}.{}", m_.has_modifier(s, ".to") ? ".to" : "",
                                       kernel_.in_parameters ? "param" : "global");
    if (const ptx::Parameter* p = parameter(m_.text(source.first))) {
      if (source.size() != 1) throw unsupported(s.head);
      const auto [base, place] = moved(function_, kernel_, *p, 0);
      line(fmt::format("{}add.s64 {}, {}, {}", guard(s), renamed(s.operands[0]), base, place));
      line(fmt::format("{}{}.u64 {}, {}", guard(s), to, renamed(s.operands[0]), renamed(s.operands[0])));
    } else {
      line(fmt::format("{}{}.u64 {}, {}", guard(s), to, renamed(s.operands[0]), renamed(source)));
    }
    return true;
  }

  std::string outside(uint32_t token) override {
    const std::string_view text = m_.text(token);
    if (parameter(text) != nullptr) throw unsupported(token);
    if (auto overlaid = overlaid_name(text)) return *overlaid;
    if (has_part(text)) return prefixed(text);
    if (analysis::is_virtual_special_register(text)) {
      return virtual_register(text, token + 1);
    }
    return std::string(text);
  }

  // `%tid.x` is two tokens; the operand that replaces it covers both.
  std::string virtual_register(std::string_view name, uint32_t component) {
    const std::string_view axis = m_.text(component);
    const size_t index = axis == ".x" ? 0 : axis == ".y" ? 1 : 2;
    // Special registers are 32 bits wide; older code may read them as 16, which a plain register does not
    // allow.
    if (analysis::reads_narrow_position(m_, *current_, component - 1)) throw unsupported(component - 1);
    swallow_next_ = true;
    const bool is_told_otherwise = index == 0 && is_higher();
    if (name == "%tid" && is_told_otherwise && !kernel_.higher_index.empty()) return kernel_.higher_index;
    if (name == "%ntid" && is_told_otherwise && !kernel_.wider_block.empty()) return kernel_.wider_block;
    if (name == "%tid") return kernel_.tid[index];
    if (name == "%ctaid") return kernel_.ctaid[index];
    if (name == "%nctaid") return kernel_.nctaid[index];
    if (kernel_.block_is_real) return fmt::format("%ntid{}", axis);
    return kernel_.ntid[index];
  }

  [[nodiscard]] Error unsupported(uint32_t token) const {
    const Error place = m_.error_at(token, "");
    return Error(ErrorCode::Unsupported, fmt::format("'{}' cannot be redirected", m_.text(token)))
        .at(m_.name, place.line(), place.column())
        .kernel(function_.name);
  }

  std::string location(const Statement& loc) override { return lines_.directive(m_, loc); }

  // ---- unrolled loops ----

  // loop:   the counters of the iterations ahead, in registers of their own
  //         @(one of the iterations is not there) bra single;
  //         iteration; ... iteration;  @p bra loop;  bra done;
  // single: iteration;             @p bra loop;
  // done:
  bool special_label(const Statement& label) override {
    const auto found =
        std::ranges::find(kernel_.loops, &label, [](const UnrolledCopy& row) { return row.loop.label; });
    if (found == kernel_.loops.end()) return false;
    const auto& [loop, iterations] = *found;
    const std::string name = Splicer::prefixed(m_.text(label.head));
    const std::string single = name + "$single", done = name + "$done";
    out_ += name + ":\n";
    const std::string goes_on = look_ahead(loop, iterations, name.substr(1));
    line(fmt::format("@{}{} bra {}", loop.branch->predicate_negated ? "" : "!", goes_on, single));
    for (uint32_t i = 0; i < iterations; ++i) write_iteration(loop);
    write(*loop.branch);
    line("bra " + done);
    out_ += single + ":\n";
    write_iteration(loop);
    write(*loop.branch);
    out_ += done + ":\n";
    return true;
  }

  void write_iteration(const analysis::StraightLoop& loop) {
    for (const Statement* s : loop.iteration) write(*s);
  }

  // Computes whether the loop goes on behind each iteration but the last. Returns the name of that predicate,
  // the branch's predicate of all of them together.
  std::string look_ahead(const analysis::StraightLoop& loop, uint32_t iterations,
                         const std::string& loop_name) {
    const auto own = [&](std::string_view name) {
      return fmt::format("{}${}", Splicer::prefixed(name), loop_name);
    };
    const std::string of_iteration = own(m_.text(loop.branch->predicate));
    std::string of_all = of_iteration + "$all";
    for (const auto& counter : loop.counters) {
      const std::string type = counter.bits == 0 ? "pred" : fmt::format("b{}", counter.bits);
      line(fmt::format(".reg .{} {}", type, own(counter.name)));
    }
    line(".reg .pred " + of_all);
    const char* const together = loop.branch->predicate_negated ? "or" : "and";
    for (uint32_t i = 1; i < iterations; ++i) {
      for (const Statement* s : loop.counting) count_ahead(*s, own(m_.text(s->operands[0].first)));
      line(i == 1 ? fmt::format("mov.pred {}, {}", of_all, of_iteration)
                  : fmt::format("{}.pred {}, {}, {}", together, of_all, of_all, of_iteration));
    }
    ahead_.clear();
    return of_all;
  }

  // Writes the instruction once more, with its result in another register, from which later ones read it.
  void count_ahead(const Statement& s, const std::string& to) {
    current_ = &s;
    std::string text = m_.full_opcode(s) + " " + to;
    for (size_t operand = 1; operand < s.operands.size(); ++operand)
      text += ", " + renamed(s.operands[operand]);
    line(text);
    ahead_[m_.text(s.operands[0].first)] = to;
  }

  const InlineKernel& kernel_;
  LineTables& lines_;
  Surroundings around_;
  bool runs_again_ = false;  // what `higher` says is run once more
  std::map<std::string_view, std::string>
      ahead_;  // registers that were computed for iterations ahead, and where
  std::optional<analysis::RegisterBits> registers_;  // where arguments are held
};

}  // namespace

namespace {

// True for a name that a register of the generated code around a body could have, too: "tid_x", "begin".
// Compilers number their registers ("r12"), which generated code does not, but for two (SP and SPL).
bool may_be_generated(std::string_view name) {
  if (name == "SP" || name == "SPL") return false;
  return name.find('_') != std::string_view::npos ||
         name.find_first_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::string with_prefix(std::string_view name, const std::string& prefix) {
  const bool is_name = name.starts_with('%') || name.starts_with('$');
  if (!is_name || prefix.empty()) return std::string(name);
  const bool is_apart = name[0] == '%' && may_be_generated(name.substr(1));
  return fmt::format("{}{}{}{}", name[0], prefix, is_apart ? "_" : "", name.substr(1));
}

std::string inline_function(const Module& module, const Function& function, const InlineCall& call,
                            LineTables& lines) {
  return "{\n" + FunctionSplicer(module, function, call, lines).body() + "\t}";
}

std::vector<PreloadedArgument> preloaded_arguments(const Module& module, const Function& function,
                                                   const std::string& prefix, uint32_t most_words) {
  std::vector<PreloadedArgument> preloaded;
  if (most_words == 0) return preloaded;
  const analysis::RegisterBits registers(module, function);
  uint32_t words = 0;
  ptx::for_each_statement(function.body, [&](const Statement& s) {
    if (s.kind != ptx::StatementKind::Instruction) return;
    auto read = parameter_read(module, function, registers, s);
    if (!read || std::ranges::any_of(preloaded, [&](const auto& other) { return is_same(other, *read); }))
      return;
    const uint32_t more = std::max(1u, read->bits / 32);
    if (words + more > most_words) return;
    words += more;
    read->name = fmt::format("%{}{}", prefix, preloaded.size());
    preloaded.push_back(*read);
  });
  return preloaded;
}

std::vector<PreloadedArgument> argument_reads(const Module& module, const Function& function,
                                              uint32_t offset) {
  std::vector<PreloadedArgument> reads;
  const analysis::RegisterBits registers(module, function);
  ptx::for_each_statement(function.body, [&](const Statement& s) {
    if (s.kind != ptx::StatementKind::Instruction) return;
    const auto read = parameter_read(module, function, registers, s);
    if (!read || read->offset != offset) return;
    if (std::ranges::none_of(reads, [&](const auto& other) { return is_same(other, *read); }))
      reads.push_back(*read);
  });
  return reads;
}

std::string load_preloaded(const Function& function, const PreloadedArgument& preloaded,
                           const InlineKernel& kernel) {
  const auto p = std::ranges::find_if(function.parameters, [&](const ptx::Parameter& candidate) {
    return preloaded.offset >= candidate.offset && preloaded.offset < candidate.offset + candidate.bytes;
  });
  const auto [base, at] = moved(function, kernel, *p, preloaded.offset - p->offset);
  return fmt::format("\tld.{}{} {}, [{}+{}];\n", argument_space(kernel), preloaded.type, preloaded.name, base,
                     at);
}

std::string load_preloaded(const Function& function, const InlineKernel& kernel) {
  std::string text;
  for (const PreloadedArgument& preloaded : kernel.preloaded)
    text += load_preloaded(function, preloaded, kernel);
  return text;
}

std::string inline_kernel(const Module& module, const Function& function, const InlineKernel& kernel,
                          LineTables& lines) {
  KernelSplicer splicer(module, function, kernel, lines);
  return "{\n" + splicer.outer_declarations() + splicer.body() + "\t}";
}

}  // namespace klap::transform
