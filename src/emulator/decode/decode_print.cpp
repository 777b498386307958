// Listings.
#include <fmt/format.h>

#include "emulator/decode/decode.h"
#include "emulator/decode/decode_special.h"

namespace klap::emulator {

namespace {

constexpr const char* kKinds[] = {
    "Alu",
    "Load",
    "Store",
    "Atomic",
    "Reduction",
    "Fence",
    "Prefetch",
    "ToGeneric",
    "FromGeneric",
    "IsSpace",
    "MapShared",
    "Barrier",
    "WarpBarrier",
    "Shuffle",
    "Vote",
    "Match",
    "Redux",
    "ActiveMask",
    "Elect",
    "Branch",
    "IndexedBranch",
    "Call",
    "IndirectCall",
    "Return",
    "Exit",
    "Trap",
    "NanoSleep",
    "DependencyWait",
    "DependencyLaunch",
    "StackSave",
    "StackRestore",
    "Alloca",
    "Texture",
    "Nothing",
};
static_assert(std::size(kKinds) == static_cast<size_t>(Kind::Nothing) + 1);
constexpr const char* kSpaces[] = {"generic", "global", "const", "shared", "local", "param"};
constexpr const char* kSemantics[] = {"weak", "nc", "volatile", "relaxed", "acquire", "release", "acq_rel"};
constexpr const char* kScopes[] = {"cta", "cluster", "gpu", "sys"};
constexpr const char* kAtomics[] = {"and", "or", "xor", "cas", "exch", "add", "inc", "dec", "min", "max"};
constexpr const char* kNumbers[] = {"b", "u", "s", "f", "half", "half pair", "bfloat", "bfloat pair"};
constexpr const char* kReduce[] = {"none", "and", "or", "popc"};

template <class Enum, size_t count>
const char* name(const char* const (&names)[count], Enum value) {
  return names[static_cast<size_t>(value)];
}

class Printer {
 public:
  Printer(const Image& image, const Function& function) : image_(image), f_(function) {}

  std::string run() const {
    std::string out = head();
    for (size_t i = 0; i < f_.code.size(); ++i) out += fmt::format("{:4}: {}\n", i, line(f_.code[i]));
    return out;
  }

 private:
  [[nodiscard]] std::string head() const {
    std::string out = fmt::format("{} {}", f_.is_kernel ? "kernel" : "function", f_.name);
    if (f_.builtin >= 0) out += " of the machine";
    out += fmt::format(": {} columns, {} local bytes\n", f_.columns, f_.local_bytes);
    if (f_.is_kernel)
      out += fmt::format("  {} parameter bytes, {} shared bytes\n", f_.parameter_bytes, f_.shared_bytes);
    out += list("parameter", f_.parameters) + list("result", f_.results);
    for (const FrameVariable& v : f_.frame)
      out += fmt::format("  local {} at {}, {} bytes\n", v.name, v.offset, v.bytes);
    for (const uint32_t v : f_.shared) {
      out += fmt::format("  shared {}", image_.shared_variables[v].name);
      out += f_.is_kernel ? fmt::format(" at {}\n", f_.shared_offsets[v]) : "\n";
    }
    if (!f_.unsupported.empty()) out += "  cannot run: " + f_.unsupported + "\n";
    return out;
  }

  [[nodiscard]] std::string list(const char* what, const std::vector<FormalParameter>& formals) const {
    std::string out;
    for (const FormalParameter& p : formals) {
      out += fmt::format("  {} in {}, {} bytes at {}\n", what, text(p.where), p.bytes, p.offset);
    }
    return out;
  }

  [[nodiscard]] std::string line(const Instruction& i) const {
    std::string out = fmt::format("line {} ", i.line);
    if (i.guarded) out += fmt::format("@{}r{} ", i.guard_negated ? "!" : "", i.guard);
    out += fmt::format("{} {}", name(kKinds, i.kind), f_.opcodes[i.opcode]);
    for (size_t n = 0; n < i.destination_count; ++n) out += (n == 0 ? " " : ", ") + text(i.destinations[n]);
    if (i.source_count != 0) out += i.destination_count == 0 ? " " : " = ";
    for (size_t n = 0; n < i.source_count; ++n) out += (n == 0 ? "" : ", ") + text(i.sources[n]);
    return out + detail(i);
  }

  [[nodiscard]] std::string text(const Operand& o) const {
    switch (o.from) {
      case Operand::From::None:
        return "_";
      case Operand::From::Register:
        return fmt::format("r{}", o.index);
      case Operand::From::Constant:
        return fmt::format("{:#x}", f_.constants[uint64_t{o.index} * kLanes]);
      case Operand::From::Special:
        return special_name(static_cast<Special>(o.index));
      case Operand::From::SharedVariable:
        return fmt::format("shared({}{:+})", image_.shared_variables[o.index].name, o.add);
      case Operand::From::LocalVariable:
        return fmt::format("local({})", o.index);
    }
    return "?";
  }

  [[nodiscard]] std::string detail(const Instruction& i) const {
    const MemoryDetail& m = i.memory;
    switch (i.kind) {
      case Kind::Load:
      case Kind::Store:
      case Kind::Atomic:
      case Kind::Reduction:
        return access(i);
      case Kind::Fence:
        return fmt::format(" [{} {}{}]", name(kSemantics, m.semantics), name(kScopes, m.scope),
                           m.sequentially_consistent ? " sc" : "");
      case Kind::ToGeneric:
      case Kind::FromGeneric:
      case Kind::IsSpace:
      case Kind::MapShared:
        return fmt::format(" [{}]", name(kSpaces, m.space));
      case Kind::Barrier:
        return fmt::format(" [{}{}{}{}]", i.barrier.aligned ? "aligned" : "unaligned",
                           i.barrier.arrive_only ? " arrive" : "", i.barrier.has_count ? " count" : "",
                           reduction(i.barrier));
      case Kind::Shuffle:
      case Kind::Vote:
      case Kind::Match:
      case Kind::Redux:
        return fmt::format(" [{}{} {}{}]", i.warp.is_sync ? "sync" : "no sync",
                           i.warp.negated ? " negated" : "", name(kNumbers, i.warp.type), i.warp.bits);
      case Kind::Branch:
        return fmt::format(" -> {}", i.target);
      case Kind::IndexedBranch:
        return fmt::format(" -> {}", fmt::join(f_.tables[i.detail], ", "));
      case Kind::Call:
      case Kind::IndirectCall:
        return call(f_.calls[i.detail]);
      case Kind::Alu:
        return i.setting >= kNegateSource ? fmt::format(" [negated {:#x}]", i.setting / kNegateSource) : "";
      default:
        return "";
    }
  }

  static std::string reduction(const BarrierDetail& b) {
    if (b.reduce == BarrierDetail::Reduce::None) return "";
    return fmt::format(" {}{}", name(kReduce, b.reduce), b.negated ? " negated" : "");
  }

  [[nodiscard]] static std::string access(const Instruction& i) {
    const MemoryDetail& m = i.memory;
    std::string out =
        fmt::format(" [{}{:+} {}", name(kSpaces, m.space), m.offset, name(kSemantics, m.semantics));
    const bool scoped = m.semantics != Semantics::Weak && m.semantics != Semantics::NonCoherent;
    if (scoped) out += fmt::format(".{}", name(kScopes, m.scope));
    if (i.kind == Kind::Atomic || i.kind == Kind::Reduction)
      out += fmt::format(" {}", name(kAtomics, m.atomic));
    out += fmt::format(" {}x{}{}", m.elements, name(kNumbers, m.type), 8 * m.bytes);
    if (i.kind == Kind::Load) out += fmt::format(" to {}", m.register_bits);
    if (m.limited) out += fmt::format(" above {}", m.above);
    return out + "]";
  }

  [[nodiscard]] std::string call(const CallDetail& call) const {
    std::string out =
        call.function == CallDetail::kIndirect ? "" : " " + image_.functions[call.function]->name;
    const auto places = [&](const std::vector<CallDetail::Place>& list) {
      std::string all;
      for (const CallDetail::Place& p : list) {
        all += fmt::format("{}{}:{}", all.empty() ? "" : ", ", text(p.where), p.bytes);
      }
      return "(" + all + ")";
    };
    return out + places(call.parameters) + " -> " + places(call.results);
  }

  const Image& image_;
  const Function& f_;
};

}  // namespace

std::string print(const Image& image, const Function& function) { return Printer(image, function).run(); }

std::string print(const Image& image) {
  std::string out;
  for (const Variable& v : image.variables) {
    out += fmt::format("{} {}, {} bytes{}\n", v.is_const ? "const" : "global", v.name, v.bytes,
                       v.is_managed ? ", managed" : "");
  }
  for (const SharedVariable& v : image.shared_variables) {
    out += fmt::format("shared {}, {} bytes, aligned to {}\n", v.name, v.bytes, v.align);
  }
  for (const auto& function : image.functions) out += print(image, *function);
  return out;
}

}  // namespace klap::emulator
