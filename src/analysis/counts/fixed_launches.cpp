#include "analysis/counts/fixed_launches.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/counts/fixed_values.h"
#include "analysis/counts/launch_count.h"

namespace klap::analysis {
namespace {

constexpr uint32_t kWord = OpenParameters::kWordBytes;

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

std::vector<ByteRange> unread_parameter_bytes(const FunctionFacts& kernel) {
  std::vector<bool> is_read(kernel.function.parameter_bytes, false);
  const PureCode code(kernel);
  for (uint32_t i = 0; i < kernel.flow.instructions().size(); ++i) {
    for (const ByteRange& bytes : code.parameter_bytes(i)) {
      const size_t end = std::min<size_t>(bytes.offset + bytes.bytes, is_read.size());
      for (size_t b = bytes.offset; b < end; ++b) is_read[b] = true;
    }
  }
  std::vector<ByteRange> unread;
  for (const ptx::Parameter& parameter : kernel.function.parameters) {
    for (uint32_t b = parameter.offset; b < parameter.offset + parameter.bytes; ++b) {
      if (is_read[b]) continue;
      const bool goes_on = b > parameter.offset && !is_read[b - 1];
      if (goes_on) {
        ++unread.back().bytes;
      } else {
        unread.push_back({b, 1});
      }
    }
  }
  return unread;
}

}  // namespace klap::analysis
