// The layout of a child's record.
//
// As it is, a record has the child's grid and then the whole of its parameter block. A packed one holds only
// the data that each child needs. Extents of the grid that are constants stand in the kernels' code.
// Arguments that no thread of the child reads are not stored at all. Other arguments are the same for all
// threads whose children become one launch: the threads of the parent's grid, or of a group of its blocks.
// The thread that records first stores these once for all, into a place of the queue or of the group. The
// rest stands in the record, in the order that leaves the smallest gaps.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/values/uniformity.h"
#include "ptx/tree.h"

namespace klap::transform {

// Bytes of the child's parameter block that stay together.
struct ArgumentPlace {
  uint32_t from = 0, bytes = 0;  // in the parameter block
  uint32_t at = 0;               // in the record, or in the area of arguments that are passed once
  bool once = false;
};

struct RecordLayout {
  uint32_t arguments_offset = 0;  // in the record, in bytes
  uint32_t record_bytes = 0;
  // Packed: what is read of the parameter block, by `from`; the rest is nowhere. Else empty.
  bool packed = false;
  std::vector<ArgumentPlace> places{};
  std::array<std::optional<uint32_t>, 3> grid{};  // extents that no record holds
  uint32_t totals_at = 0;  // in the record, of the totals of a child's parts; 0 if it has none

  [[nodiscard]] bool passes_once() const;
  // The place of these bytes; null if they have none, because no thread reads them.
  [[nodiscard]] const ArgumentPlace* find(uint32_t offset, uint32_t bytes) const;
  // A short text of everything that decides what a consumer does with such records; empty if they are not
  // packed.
  [[nodiscard]] std::string key() const;
};

// The layout of a record that is not packed.
RecordLayout record_layout(const ptx::Function& child);

// Adds room behind the arguments for so many totals of the child's parts, and for a counter of these
// (templates/aggregate/part_totals.h).
void add_totals(RecordLayout& layout, size_t totals);

// The largest group of threads for which equal arguments can be passed once: the threads whose launches
// become one. `group_blocks` blocks of the parent launch together (0: all).
analysis::Uniform group_that_shares(uint32_t group_blocks);

// The packed layout for a launch site that no thread reaches twice in one launch of the parent. All records
// of a group must be run by kernels that begin when its last thread has recorded. So no thread reads
// arguments that are passed once while they may be written. `grid_grows`: a child may be recorded with more
// blocks than it was launched with, so that their number is no constant.
RecordLayout packed_layout(const ptx::Module& child_module, const ptx::Function& child,
                           const analysis::FunctionFacts& parent, const analysis::Site& site,
                           uint32_t group_blocks, bool grid_grows);

// The layout for a launch site with warp aggregation. Each child's arguments stand as in its parameter block,
// for the same stores may fill the program's own buffer. Arguments that are equal for all lanes are in the
// first child's only.
RecordLayout shared_layout(const ptx::Module& child_module, const ptx::Function& child,
                           const analysis::FunctionFacts& parent, const analysis::Site& site);

}  // namespace klap::transform
