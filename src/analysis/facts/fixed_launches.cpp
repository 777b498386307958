#include "analysis/facts/fixed_launches.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/effects/effects.h"
#include "analysis/facts/launch_count.h"
#include "analysis/graph/dominance.h"

namespace klap::analysis {
namespace {

using ptx::Statement;
constexpr uint32_t kWord = 8;  // bytes

// Parameters whose values are open: all of them, or some of their words.
struct OpenParameters {
  std::set<uint32_t> parameters, words;  // by their offsets

  [[nodiscard]] bool is_open(const ptx::Parameter& parameter, uint64_t first, uint64_t bytes) const {
    if (parameters.contains(parameter.offset)) return true;
    return std::ranges::any_of(words,
                               [&](uint64_t word) { return word < first + bytes && first < word + kWord; });
  }
};

// The bytes that a load reads; all that follow if its type does not say.
uint64_t bytes_of(const ptx::Module& module, const Statement& load) {
  const uint64_t element = ptx::type_bytes(module.text(load.modifiers.last - 1));
  constexpr uint64_t kRest = uint64_t{1} << 32;
  return element == 0 ? kRest : element * components(module, load.operands[0]).size();
}

// The values of one kernel that its parameters and the thread's place decide.
class FixedValues {
 public:
  FixedValues(const FunctionFacts& kernel, const OpenParameters& open_parameters)
      : kernel_(kernel), open_parameters_(open_parameters), dominance_(kernel.flow) {
    // A register written under an open condition is open, and may make more conditions open.
    size_t before = 0;
    do {
      before = open_.size();
      open_ = dependents(kernel.module, kernel.flow, kernel.data.names(),
                         [&](const Statement& s) { return is_source(s) || is_written_openly(s); });
    } while (open_.size() != before);
  }

  // The value of a register or a literal.
  [[nodiscard]] bool is_fixed(std::string_view operand) const {
    return !open_.contains(operand) && !kernel_.data.is_ambiguous(operand);
  }
  // True if it is fixed how often a thread runs that instruction.
  [[nodiscard]] bool is_run_as_fixed(const Statement& instruction) const {
    if (!dominance_.control_known()) return false;
    if (instruction.predicated && !is_fixed(kernel_.module.text(instruction.predicate))) return false;
    const uint32_t block = kernel_.flow.instructions()[kernel_.flow.index_of(&instruction)].block;
    return std::ranges::all_of(dominance_.deciding_branches(block),
                               [&](uint32_t branch) { return decides_as_fixed(branch); });
  }

 private:
  // The choice at the end of a block.
  [[nodiscard]] bool decides_as_fixed(uint32_t block) const {
    const uint32_t last = kernel_.flow.blocks()[block].last - 1;
    const Statement& s = *kernel_.flow.instructions()[last].statement;
    if (s.predicated && !is_fixed(kernel_.module.text(s.predicate))) return false;
    return !kernel_.module.is(s.head, "brx") || s.operands.empty() ||
           is_fixed(kernel_.module.text(s.operands[0].first));
  }

  // True if the instruction's result depends on more than its operands.
  [[nodiscard]] bool is_source(const Statement& s) const {
    const ptx::Module& m = kernel_.module;
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      const std::string_view text = m.text(t);
      if (m.tokens[t].kind == ptx::TokenKind::Identifier && text[0] == '%' &&
          !kernel_.data.names().contains(text) && !is_virtual_special_register(text))
        return true;
    }
    if (m.is(s.head, "ld")) return !is_fixed_parameter(s);
    return m.is(s.head, "call") || !instruction_effects(m, s).empty();
  }
  [[nodiscard]] bool is_fixed_parameter(const Statement& load) const {
    if (!kernel_.module.has_modifier(load, ".param") || load.operands.size() != 2) return false;
    const auto address = parse_address(kernel_.module, load.operands[1]);
    if (!address || address->offset < 0) return false;
    const uint64_t bytes = bytes_of(kernel_.module, load);
    return std::ranges::any_of(kernel_.function.parameters, [&](const ptx::Parameter& p) {
      const auto first = p.offset + static_cast<uint64_t>(address->offset);
      return p.name == address->base && !open_parameters_.is_open(p, first, bytes);
    });
  }

  [[nodiscard]] bool is_written_openly(const Statement& s) const {
    const uint32_t index = kernel_.flow.index_of(&s);
    if (open_.empty() || index >= kernel_.flow.instructions().size()) return false;
    const Registers registers = registers_of(kernel_.module, s, kernel_.data.names());
    const bool is_joined = std::ranges::any_of(
        registers.written, [&](std::string_view reg) { return kernel_.data.definitions(reg).size() > 1; });
    return is_joined && !is_run_as_fixed(s);
  }

  const FunctionFacts& kernel_;
  const OpenParameters& open_parameters_;
  const Dominance dominance_;
  RegisterSet open_;
};

// The parameters of `child` that a launch passes open values in, or of which some bytes are not passed.
std::set<uint32_t> open_parameters(const FixedValues& values, const Site& site, const ptx::Function& child) {
  std::set<uint32_t> open;
  for (const ptx::Parameter& parameter : child.parameters) {
    uint32_t fixed_bytes = 0;
    for (const Argument& argument : site.arguments) {
      const bool is_within = argument.offset >= parameter.offset &&
                             argument.offset + argument.bytes <= parameter.offset + parameter.bytes;
      if (is_within && values.is_fixed(argument.source)) fixed_bytes += argument.bytes;
    }
    if (fixed_bytes != parameter.bytes || parameter.bytes == 0) open.insert(parameter.offset);
  }
  return open;
}

bool launches(const FunctionFacts& kernel) { return !kernel.sites.empty() || !kernel.copies.empty(); }

// True if each launch of the kernel is one that is seen, and each thread makes it as often as is fixed.
bool makes_fixed_launches(const FunctionFacts& kernel, const FixedValues& values) {
  if (kernel.flow.has_unknown_branch()) return false;
  const auto is_hidden = [](const StreamLaunches& entry) { return entry.count.unknown; };
  if (std::ranges::any_of(launches_by_stream(kernel), is_hidden)) return false;
  return std::ranges::all_of(kernel.sites,
                             [&](const Site& site) {
                               return site.understood() && site.get_call != nullptr &&
                                      values.is_run_as_fixed(*site.get_call);
                             }) &&
         std::ranges::all_of(kernel.copies,
                             [&](const CopyCall& copy) { return values.is_run_as_fixed(*copy.call); });
}

bool has_fixed_sizes(const Site& site, const FixedValues& values) {
  const auto is_fixed = [&](const std::string& extent) { return values.is_fixed(extent); };
  return std::ranges::all_of(site.grid, is_fixed) && std::ranges::all_of(site.block, is_fixed);
}

// True if the launches are fixed although these words of the parent's parameters are not.
bool has_fixed_launches_without(const std::set<uint32_t>& words, const FunctionFacts& parent,
                                const LaunchedKernels& launched) {
  std::map<const FunctionFacts*, OpenParameters> open{{&parent, {.parameters = {}, .words = words}}};
  std::vector<const FunctionFacts*> work{&parent};
  while (!work.empty()) {
    const FunctionFacts& kernel = *work.back();
    work.pop_back();
    const FixedValues values(kernel, open.at(&kernel));
    if (!makes_fixed_launches(kernel, values)) return false;
    const std::vector<const FunctionFacts*> children = launched(kernel);
    for (size_t i = 0; i < children.size(); ++i) {
      const FunctionFacts& child = *children[i];
      if (!launches(child)) continue;
      if (!has_fixed_sizes(kernel.sites[i], values)) return false;
      const auto [entry, is_new] = open.try_emplace(&child);
      std::set<uint32_t>& of_child = entry->second.parameters;
      const size_t before = of_child.size();
      of_child.merge(open_parameters(values, kernel.sites[i], child.function));
      if (is_new || of_child.size() != before) work.push_back(&child);
    }
  }
  return true;
}

// The words that can hold an address.
std::set<uint32_t> words_of(const ptx::Parameter& parameter) {
  std::set<uint32_t> words;
  const uint32_t first = (parameter.offset + kWord - 1) / kWord * kWord;
  for (uint32_t word = first; word + kWord <= parameter.offset + parameter.bytes; word += kWord)
    words.insert(word);
  return words;
}

}  // namespace

bool has_fixed_launches(const FunctionFacts& parent, const LaunchedKernels& launched) {
  return has_fixed_launches_without({}, parent, launched);
}

// Each question is an analysis of its own, so words are tried one by one only in a parameter that decides.
std::vector<uint32_t> words_without_effect_on_launches(const FunctionFacts& parent,
                                                       const LaunchedKernels& launched) {
  constexpr size_t kMostWords = 16;  // that are tried one by one in a parameter
  std::set<uint32_t> found;
  const auto add_if_possible = [&](const std::set<uint32_t>& words) {
    std::set<uint32_t> with = found;
    with.insert(words.begin(), words.end());
    const bool is_possible = has_fixed_launches_without(with, parent, launched);
    if (is_possible) found = std::move(with);
    return is_possible;
  };
  std::set<uint32_t> all;
  for (const ptx::Parameter& parameter : parent.function.parameters) all.merge(words_of(parameter));
  if (!all.empty() && add_if_possible(all)) return {found.begin(), found.end()};
  for (const ptx::Parameter& parameter : parent.function.parameters) {
    const std::set<uint32_t> words = words_of(parameter);
    if (words.empty() || add_if_possible(words) || words.size() == 1 || words.size() > kMostWords) continue;
    for (const uint32_t word : words) add_if_possible({word});
  }
  return {found.begin(), found.end()};
}

}  // namespace klap::analysis
