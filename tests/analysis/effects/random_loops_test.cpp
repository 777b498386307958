// Loops that are shown to end by themselves, run: from random memory and registers, alone, they must end.
//
// The programs are random, with the operations that the proof knows about. A run that comes to the loop's
// head twice with the same registers and memory would go on for ever.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

#include "analysis/effects/loop_termination.h"
#include "kernel.h"

namespace klap::test {
namespace {

using namespace analysis;
using ptx::Statement;

constexpr uint32_t kCells = 4;

struct Machine {
  std::map<std::string, uint32_t, std::less<>> registers;  // predicates and 32-bit registers
  std::array<uint32_t, kCells> memory{};
  auto operator<=>(const Machine&) const = default;
};

// Runs one instruction; true if a branch is taken. Addresses are `[%rdN]` where %rdN was made of a register
// by `mul.wide.u32 %rdN, %rX, 4`: the cell is %rX modulo the number of cells.
class Interpreter {
 public:
  explicit Interpreter(const Kernel& k) : k_(k) {}

  // False if the run goes round for ever and looks at memory strongly or by atomics while it does.
  bool ends(Machine machine) const {
    using Place = std::pair<uint32_t, Machine>;  // block
    std::set<Place> seen;
    std::optional<Place> iteration;  // a place where the run was before
    bool observed = false;
    uint32_t block = 0;
    for (int blocks = 0; blocks < 20000; ++blocks) {
      const BasicBlock& b = k_.facts->flow.blocks()[block];
      if (k_.facts->flow.is_labelled(b.first)) {
        const Place place(block, machine);
        if (iteration == place) return !observed;
        if (!seen.insert(place).second && !iteration) {
          iteration = place;
          observed = false;
        }
      }
      bool taken = false;
      for (uint32_t i = b.first; i < b.last; ++i) {
        const Statement& s = *k_.facts->flow.instructions()[i].statement;
        observed = observed || k_.module.is(s.head, "atom") || k_.module.has_modifier(s, ".volatile");
        taken = run(s, machine);
      }
      if (b.successors.empty()) return true;
      block = b.successors[taken || b.successors.size() == 1 ? 0 : 1];
    }
    ADD_FAILURE() << "neither ended nor came back to the same state";
    return true;
  }

 private:
  [[nodiscard]] uint32_t value(const Machine& m, ptx::TokenRange operand) const {
    const std::string text = k_.module.compact(operand);
    const auto found = m.registers.find(text);
    return found != m.registers.end() ? found->second : static_cast<uint32_t>(std::stoll(text));
  }
  uint32_t& cell(Machine& m, ptx::TokenRange operand) const {
    return m.memory[m.registers[std::string(parse_address(k_.module, operand)->base)] % kCells];
  }
  static bool compare(std::string_view r, bool is_signed, uint32_t a, uint32_t b) {
    const bool less = is_signed ? static_cast<int32_t>(a) < static_cast<int32_t>(b) : a < b;
    if (r == ".eq") return a == b;
    if (r == ".ne") return a != b;
    if (r == ".lt") return less;
    if (r == ".le") return less || a == b;
    if (r == ".gt") return !less && a != b;
    return !less;
  }
  static uint32_t extreme(bool minimum, bool is_signed, uint32_t a, uint32_t b) {
    return compare(".lt", is_signed, a, b) == minimum ? a : b;
  }

  bool run(const Statement& s, Machine& m) const {
    const ptx::Module& t = k_.module;
    const std::string opcode(t.text(s.head));
    const bool is_signed = t.has_modifier(s, ".s32"), minimum = opcode == "min" || t.has_modifier(s, ".min");
    const bool holds =
        !s.predicated || (m.registers[std::string(t.text(s.predicate))] != 0) != s.predicate_negated;
    if (opcode == "bra") return holds;
    if (!holds || opcode == "ret") return false;
    uint32_t result = 0;
    if (opcode == "st") {
      cell(m, s.operands[0]) = value(m, s.operands[1]);
      return false;
    }
    if (opcode == "mov" || opcode == "mul") result = value(m, s.operands[1]);
    if (opcode == "add") result = value(m, s.operands[1]) + value(m, s.operands[2]);
    if (opcode == "min" || opcode == "max")
      result = extreme(minimum, is_signed, value(m, s.operands[1]), value(m, s.operands[2]));
    if (opcode == "setp") {
      result = compare(t.text(s.modifiers.first), is_signed, value(m, s.operands[1]), value(m, s.operands[2]))
                   ? 1
                   : 0;
    }
    if (opcode == "ld") result = cell(m, s.operands[1]);
    if (opcode == "atom") {
      uint32_t& c = cell(m, s.operands[1]);
      result = c;
      const uint32_t operand = value(m, s.operands[2]);
      if (t.has_modifier(s, ".cas")) {
        if (c == operand) c = value(m, s.operands[3]);
      } else if (t.has_modifier(s, ".exch")) {
        c = operand;
      } else {
        c = extreme(minimum, is_signed, c, operand);
      }
    }
    m.registers[t.compact(s.operands[0])] = result;
    return false;
  }

  const Kernel& k_;
};

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}
  unsigned pick(unsigned n) { return random_() % n; }

  std::string body() {
    sign_ = pick(2) == 0 ? "s" : "u";
    std::string out = "L0: ";
    const unsigned length = 3 + pick(7);
    // An inner loop around some of the instructions, or none.
    const unsigned from = pick(2 * length), to = from + 1 + pick(3);
    for (unsigned n = 0; n < length; ++n) {
      if (n == from) out += "M: ";
      out += instruction(n);
      if (n == to) out += "setp." + relation() + " %p0, " + reg() + ", " + reg() + "; @%p0 bra M; ";
    }
    if (pick(3) == 0) out += "setp." + relation() + " %p9, " + reg() + ", " + reg() + "; @%p9 bra E; ";
    out += "setp." + relation() + " %p0, " + reg() + ", " + reg() + "; @%p0 bra L0; E: ret;";
    return out;
  }

  Machine machine() {
    Machine m;
    for (int r = 0; r < 4; ++r) m.registers["%r" + std::to_string(r)] = small();
    for (int r = 0; r < 10; ++r) m.registers["%p" + std::to_string(r)] = 0;
    for (int r = 0; r < 4; ++r) m.registers["%rd" + std::to_string(r)] = small();
    for (uint32_t& cell : m.memory) cell = small();
    return m;
  }

 private:
  uint32_t small() { return static_cast<uint32_t>(static_cast<int>(pick(6)) - 1); }
  std::string reg() { return "%r" + std::to_string(pick(4)); }
  std::string relation() {
    static const char* const kRelations[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    return std::string(kRelations[pick(6)]) + "." + (pick(8) == 0 ? (sign_ == "s" ? "u" : "s") : sign_) +
           "32";
  }
  // An address made of a register, then an access to it.
  std::string access(const std::string& code, const std::string& rest) {
    const std::string address = "%rd" + std::to_string(pick(4));
    return "mul.wide.u32 " + address + ", " + reg() + ", 4; " + code + "[" + address + "]" + rest + "; ";
  }
  std::string instruction(unsigned n) {
    const std::string type = "." + sign_ + "32 ";
    const std::string direction = pick(6) == 0 ? "max" : "min";
    switch (pick(10)) {
      case 0:
        return "mov.u32 " + reg() + ", " + reg() + "; ";
      case 1:
        return "min" + type + reg() + ", " + reg() + ", " + reg() + "; ";
      case 2:
        return "max" + type + reg() + ", " + reg() + ", " + reg() + "; ";
      case 3:
        return access("ld.volatile.global.u32 " + reg() + ", ", "");
      case 4:
      case 5:
      case 6:
        return access("atom.global." + direction + type + reg() + ", ", ", " + reg());
      case 7:
        return pick(4) == 0 ? access("atom.global.cas.b32 " + reg() + ", ", ", " + reg() + ", " + reg())
                            : access("ld.global.u32 " + reg() + ", ", "");
      case 8:
        return pick(6) == 0 ? access("st.global.u32 ", ", " + reg())
                            : "add.s32 " + reg() + ", " + reg() + ", 0; ";
      default:
        return "setp." + relation() + " %p" + std::to_string(n % 8 + 1) + ", " + reg() + ", " + reg() +
               (pick(2) == 0 ? "; @%p" : "; @!%p") + std::to_string(n % 8 + 1) + " bra " +
               (pick(3) == 0 ? "E" : "L0") + "; ";
    }
  }
  std::mt19937 random_;
  std::string sign_;
};

TEST(LoopTermination, IsRightAboutRandomLoops) {
  Generator generator(7);
  int shown = 0, watching = 0;
  for (int iteration = 0; iteration < 4000; ++iteration) {
    const std::string body = generator.body();
    const Kernel k = kernel(body);
    const LoopParts loops(k.facts->flow);
    if (loops.all().empty() || body.find("[") == std::string::npos) continue;
    LoopTermination termination(k.module, k.facts->flow, k.facts->data, loops);
    if (!termination.ends_by_itself(0)) continue;
    ++shown;
    watching += body.find("atom") != std::string::npos ? 1 : 0;
    for (int run = 0; run < 40; ++run) ASSERT_TRUE(Interpreter(k).ends(generator.machine())) << body;
  }
  EXPECT_GT(shown, 100);
  EXPECT_GT(watching, 50);
}

// The interpreter can tell: these loops do not end.
TEST(LoopTermination, TheCheckFindsEndlessLoops) {
  Machine ring;
  for (int r = 0; r < 10; ++r) ring.registers["%p" + std::to_string(r)] = 0;
  ring.registers["%r0"] = 1;
  ring.registers["%r1"] = 0;
  ring.memory = {1, 0, 2, 3};
  const Kernel chase = kernel(
      "L: mov.u32 %r1, %r0; mul.wide.u32 %rd0, %r1, 4; ld.volatile.global.u32 %r0, [%rd0]; "
      "setp.ne.s32 %p0, %r0, %r1; @%p0 bra L; ret;");
  EXPECT_FALSE(Interpreter(chase).ends(ring));
  ring.memory = {0, 0, 0, 0};
  EXPECT_TRUE(Interpreter(chase).ends(ring));
}

}  // namespace
}  // namespace klap::test
