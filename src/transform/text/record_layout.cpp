#include "transform/text/record_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/inline/parameter_reads.h"
#include "analysis/values/values.h"
#include "ptx-patterns/templates/common/queue.h"
#include "transform/text/parts.h"

namespace klap::transform {
namespace {

using analysis::Uniform;

constexpr uint32_t kGridBytes = 16;  // grid x, y, z and a word of padding
constexpr uint32_t kWordBytes = 4;
constexpr uint32_t kMostOnceAlign = 16;     // of the place for what is passed once
constexpr uint32_t kWidestStrongStore = 8;  // of stores that several threads may make at the same time

// A segment of bytes that loads of the child and stores of the parent connect, so that it must stay together.
struct Segment {
  uint32_t from = 0, to = 0;
  uint32_t align = 1;
  bool read = false;
  bool stored = false;  // at least in part
  bool once = true;     // all that is stored is the same for the whole group
};

void join(Segment& to, const Segment& other) {
  to.to = std::max(to.to, other.to);
  to.align = std::max(to.align, other.align);
  to.read = to.read || other.read;
  to.stored = to.stored || other.stored;
  to.once = to.once && other.once;
}

std::vector<Segment> joined(std::vector<Segment> parts) {
  std::ranges::sort(parts, {}, &Segment::from);
  std::vector<Segment> out;
  for (const Segment& part : parts) {
    if (!out.empty() && part.from < out.back().to) {
      join(out.back(), part);
    } else {
      out.push_back(part);
    }
  }
  std::erase_if(out, [](const Segment& segment) { return !segment.read; });
  return out;
}

// Bytes that are handed out once each.
class Space {
 public:
  // The first free place that keeps the address modulo `align`.
  [[nodiscard]] uint32_t find(const Segment& segment) const {
    uint32_t at = segment.from % segment.align;
    while (!is_free(at, segment.to - segment.from)) at += segment.align;
    return at;
  }
  void take(uint32_t at, uint32_t bytes) { taken_.emplace_back(at, at + bytes); }
  [[nodiscard]] uint32_t end() const {
    uint32_t end = 0;
    for (const auto& [first, last] : taken_) end = std::max(end, last);
    return end;
  }

 private:
  [[nodiscard]] bool is_free(uint32_t at, uint32_t bytes) const {
    return std::ranges::none_of(
        taken_, [&](const auto& taken) { return at < taken.second && taken.first < at + bytes; });
  }
  std::vector<std::pair<uint32_t, uint32_t>> taken_;
};

// Extents that CUDA would accept: a constant that it refuses is not taken over.
std::array<std::optional<uint32_t>, 3> constant_grid(const analysis::Site& site,
                                                     const analysis::DataFlow& data) {
  constexpr std::array<uint64_t, 3> kLargest = {0x7fffffff, 65535, 65535};
  std::array<std::optional<uint32_t>, 3> grid;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto value = data.constant(site.grid.at(axis));
    if (value && *value >= 1 && *value <= kLargest.at(axis)) grid.at(axis) = static_cast<uint32_t>(*value);
  }
  return grid;
}

// Three words are four, which one instruction moves.
uint32_t header_bytes(const std::array<std::optional<uint32_t>, 3>& grid) {
  const auto words =
      static_cast<uint32_t>(std::ranges::count(grid, false, &std::optional<uint32_t>::has_value));
  return words == 3 ? kGridBytes : words * kWordBytes;
}

// True if the threads of a group store the same there. A thread that comes twice might not store the same
// each time.
bool stores_the_same(const analysis::Values& values, const analysis::Argument& argument, Uniform group) {
  const uint32_t store = values.flow.index_of(argument.store);
  if (store == analysis::ControlFlow::npos || !values.loops.known()) return false;
  const uint32_t block = values.flow.instructions()[store].block;
  return values.loops.innermost(block) == analysis::Loop::kNone &&
         values.uniformity.operand(store, argument.source) <= group;
}

std::vector<Segment> segments(const std::vector<analysis::ParameterRead>& reads,
                              const analysis::FunctionFacts& parent, const analysis::Site& site,
                              Uniform group) {
  std::vector<Segment> parts;
  for (const analysis::ParameterRead& read : reads)
    parts.push_back({read.offset, read.offset + read.bytes, read.align, true, false, true});
  const analysis::Values& values = parent.values();
  for (const analysis::Argument& a : site.arguments) {
    const bool once = a.bytes <= kWidestStrongStore && stores_the_same(values, a, group);
    parts.push_back({a.offset, a.offset + a.bytes, a.bytes, false, true, once});
  }
  return joined(std::move(parts));
}

}  // namespace

bool RecordLayout::passes_once() const { return std::ranges::any_of(places, &ArgumentPlace::once); }

const ArgumentPlace* RecordLayout::find(uint32_t offset, uint32_t bytes) const {
  const auto found = std::ranges::find_if(places, [&](const ArgumentPlace& place) {
    return place.from <= offset && offset + bytes <= place.from + place.bytes;
  });
  return found == places.end() ? nullptr : &*found;
}

std::string RecordLayout::key() const {
  if (!packed) return {};
  std::string text = fmt::format("{}", record_bytes);
  if (totals_at != 0) text += fmt::format(",totals@{}", totals_at);
  for (const auto& extent : grid) text += extent ? fmt::format(",{}", *extent) : ",";
  for (const ArgumentPlace& place : places)
    text += fmt::format(" {}+{}{}{}", place.from, place.bytes, place.once ? "=" : "@", place.at);
  return text;
}

RecordLayout record_layout(const ptx::Function& child) {
  uint32_t align = 16;
  for (const ptx::Parameter& p : child.parameters) align = std::max(align, p.align);
  RecordLayout layout;
  layout.arguments_offset = round_up(kGridBytes, align);
  layout.record_bytes = round_up(layout.arguments_offset + child.parameter_bytes, align);
  return layout;
}

void add_totals(RecordLayout& layout, size_t totals) {
  constexpr uint32_t kTotalBytes = 8;
  const uint32_t align = layout.record_bytes % 16 == 0 ? 16 : kTotalBytes;
  layout.totals_at = round_up(layout.record_bytes, kTotalBytes);
  layout.record_bytes = round_up(layout.totals_at + kTotalBytes * (static_cast<uint32_t>(totals) + 1), align);
}

Uniform group_that_shares(uint32_t group_blocks) {
  return group_blocks == 1 ? Uniform::Block : Uniform::Grid;
}

RecordLayout packed_layout(const ptx::Module& child_module, const ptx::Function& child,
                           const analysis::FunctionFacts& parent, const analysis::Site& site,
                           uint32_t group_blocks, bool grid_grows) {
  const auto reads = analysis::parameter_reads(child_module, child);
  if (!reads) return record_layout(child);
  RecordLayout layout;
  layout.packed = true;
  layout.grid = constant_grid(site, parent.data);
  if (grid_grows) layout.grid[0].reset();
  const uint32_t most_once = group_blocks == 0 ? KLAP_ONCE_BYTES : KLAP_GROUP_ONCE_BYTES;
  Space record, once;
  const uint32_t header = header_bytes(layout.grid);
  uint32_t align = header == kGridBytes ? kGridBytes : kWordBytes;
  if (header != 0) record.take(0, header);
  std::vector<Segment> wanted = segments(*reads, parent, site, group_that_shares(group_blocks));
  // Segments with the strictest alignment come first: then no later one leaves a gap that it could not fill.
  std::ranges::stable_sort(wanted, std::ranges::greater{}, &Segment::align);
  for (const Segment& segment : wanted) {
    const uint32_t bytes = segment.to - segment.from;
    uint32_t at = once.find(segment);
    const bool is_once =
        segment.stored && segment.once && segment.align <= kMostOnceAlign && at + bytes <= most_once;
    if (!is_once) {
      at = record.find(segment);
      align = std::max(align, segment.align);
    }
    (is_once ? once : record).take(at, bytes);
    layout.places.push_back({segment.from, bytes, at, is_once});
  }
  std::ranges::sort(layout.places, {}, &ArgumentPlace::from);
  layout.record_bytes = std::max(round_up(record.end(), align), kWordBytes);
  return layout;
}

RecordLayout shared_layout(const ptx::Module& child_module, const ptx::Function& child,
                           const analysis::FunctionFacts& parent, const analysis::Site& site) {
  RecordLayout layout = record_layout(child);
  const auto reads = analysis::parameter_reads(child_module, child);
  if (!reads) return layout;
  layout.packed = true;
  for (const Segment& segment : segments(*reads, parent, site, Uniform::Warp)) {
    layout.places.push_back(
        {segment.from, segment.to - segment.from, segment.from, segment.stored && segment.once});
  }
  return layout;
}

}  // namespace klap::transform
