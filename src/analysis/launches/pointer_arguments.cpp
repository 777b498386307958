#include "analysis/launches/pointer_arguments.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "analysis/graph/dataflow.h"
#include "analysis/launches/idioms.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;

constexpr int64_t kPointerBytes = 8, kFarthest = 1 << 20;

class Follower {
 public:
  Follower(const Module& module, const Function& function)
      : m_(module), flow_(module, function), data_(module, function, flow_) {}

  std::optional<std::vector<Reach>> run(std::string_view parameter) {
    for (const FlatInstruction& f : flow_.instructions()) {
      if (mentions(*f.statement, parameter) && !load_of(*f.statement, parameter)) return std::nullopt;
    }
    while (!work_.empty()) {
      const auto [reg, offset] = work_.back();
      work_.pop_back();
      for (uint32_t use : data_.uses(reg)) {
        if (!used(*flow_.instructions()[use].statement, reg, offset)) return std::nullopt;
      }
    }
    return out_;
  }

 private:
  [[nodiscard]] bool mentions(const Statement& s, std::string_view name) const {
    for (const ptx::TokenRange& operand : s.operands) {
      for (uint32_t t = operand.first; t < operand.last; ++t) {
        if (m_.is(t, name)) return true;
      }
    }
    return false;
  }

  bool load_of(const Statement& s, std::string_view parameter) {
    if (!m_.is(s.head, "ld") || s.operands.size() != 2) return false;
    const auto address = parse_address(m_, s.operands[1]);
    const bool whole = address && address->base == parameter && address->offset == 0 &&
                       ptx::type_bytes(m_.text(s.modifiers.last - 1)) == kPointerBytes;
    return whole && m_.has_modifier(s, ".param") && derive(s, 0);
  }

  // The result is the address, that far from the one passed. A register that gets other values as well is not
  // followed, nor is a walk in a loop.
  bool derive(const Statement& s, int64_t offset) {
    if (s.predicated || s.operands[0].size() != 1 || offset < -kFarthest || offset > kFarthest) return false;
    const std::string_view reg = m_.text(s.operands[0]);
    if (data_.is_ambiguous(reg) || data_.definitions(reg).size() != 1) return false;
    work_.emplace_back(reg, offset);
    return true;
  }

  bool used(const Statement& s, std::string_view reg, int64_t offset) {
    const std::string_view opcode = m_.text(s.head);
    if (opcode == "setp") return true;
    if ((opcode == "mov" || opcode == "cvta") && s.operands.size() == 2 && s.operands[1].size() == 1)
      return derive(s, offset);
    if (opcode == "add" && s.operands.size() == 3 && m_.is(s.operands[1].first, reg)) {
      const auto distance = data_.constant(m_.compact(s.operands[2]));
      const auto step = static_cast<int64_t>(distance.value_or(0));
      return distance && step > -kFarthest && step < kFarthest && derive(s, offset + step);
    }
    return accessed(s, opcode, reg, offset);
  }

  bool accessed(const Statement& s, std::string_view opcode, std::string_view reg, int64_t offset) {
    const bool is_store = opcode == "st" || opcode == "red";
    if ((!is_store && opcode != "ld" && opcode != "atom") || s.modifiers.empty()) return false;
    const size_t place = is_store ? 0 : 1;
    for (size_t n = 0; n < s.operands.size(); ++n) {
      if (n == place) continue;
      const auto parts = components(m_, s.operands[n]);
      if (std::ranges::find(parts, reg) != parts.end()) return false;
    }
    const auto address = place < s.operands.size() ? parse_address(m_, s.operands[place]) : std::nullopt;
    const int64_t bytes = ptx::type_bytes(m_.text(s.modifiers.last - 1));
    if (!address || address->base != reg || bytes == 0) return false;
    const int64_t first = offset + address->offset;
    const int64_t lanes = m_.has_modifier(s, ".v8")   ? 8
                          : m_.has_modifier(s, ".v4") ? 4
                          : m_.has_modifier(s, ".v2") ? 2
                                                      : 1;
    out_.push_back({first, first + lanes * bytes});
    return true;
  }

  const Module& m_;
  const ControlFlow flow_;
  const DataFlow data_;
  std::vector<std::pair<std::string_view, int64_t>> work_;
  std::vector<Reach> out_;
};

}  // namespace

std::optional<std::vector<Reach>> reach_of_parameter(const Module& module, const Function& function,
                                                     size_t parameter) {
  if (!function.is_definition || parameter >= function.parameters.size()) return std::nullopt;
  return Follower(module, function).run(function.parameters[parameter].name);
}

std::optional<std::vector<Reach>> reach_of_argument(const Module& module, std::string_view callee,
                                                    size_t argument) {
  const std::string_view runtime = runtime_function(module, callee);
  if (!runtime.empty()) {
    // cudaMalloc writes a pointer.
    const bool allocates = idioms().is_kind(runtime, "allocation") && runtime.ends_with("Malloc");
    if (!allocates || argument != 0) return std::nullopt;
    return std::vector<Reach>{{0, kPointerBytes}};
  }
  const Function* function = module.find_function(callee);
  return function == nullptr ? std::nullopt : reach_of_parameter(module, *function, argument);
}

}  // namespace klap::analysis
