// Children that sum up a range of elements, cut into parts of it.
//
// The children of a sparse matrix's rows, or of a graph's vertices, have from one element to hundreds of
// thousands. One block for each keeps the threads of small children idle, and makes all wait for the largest.
// If a child adds up its range (range_loop.h, block_sum.h), it can run as several: each for a part of the
// range, with a block of one warp. All parts are of about the same size, so warps that take equal numbers of
// parts have equally much to do.
//
// Some blocks add up their sums in a way that suits only the size that the program launches. Their parts have
// blocks of that size, and are larger. Then only ranges that are longer than a part gain something.
//
// That is Zhang et al.'s grouping of tasks by size (CF 2018), with the size made equal in place of the
// groups.
//
// Ranges whose counters might wrap around are not cut. Each part then has some threads of the program's
// block, with the program's steps, so that each thread runs the iterations that it would have run there.
//
// The result is the same because every element takes part once, and the order of additions is free. Sums of
// floating-point numbers are rounded, so their last bits depend on the order. Where several threads of the
// block add to memory, CUDA gives them no order either; a note says so. Where one thread adds the block's
// sum, its last bits may be the same in each run, so only the program's author can allow another order.
//
// Parts of one child overlap, so what they read must not be what they add to. The two must be in different
// allocations, which is a condition on the parent's launch (launch_order.h).
//
// Other children do more with their sum: they store it, or compute with it. Their parts are *joined*. Each
// adds its sum to a total in the child's record. The part that comes last goes on behind the loop, with the
// total. It does there what the child does, if that depends on nothing but the complete sums, and one thread
// does it (block_effects.h). Nothing is written before all parts have read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/order/launch_order.h"
#include "analysis/ranges/range_loop.h"

namespace klap::analysis {

// The parts of a child are joined at this place, and add up these sums.
struct JoinedParts {
  struct Sum {
    std::string reg;  // its name in the child
    std::string operation;
  };
  const ptx::Statement* behind = nullptr;  // in front of this one
  std::vector<Sum> sums;
};

struct RangeSplit {
  // Places of the two arguments in the parameter block, 4 bytes each. The first one may be missing.
  std::optional<uint32_t> begin_offset;
  uint32_t end_offset = 0;
  std::string begin, end;  // operands of the parent
  // Threads are told other numbers up to the end of the loop if the program's block is larger than a part's,
  // if the range begins at 0, or if behind the loop its ends are read.
  HigherThreads higher;
  bool at_launch = false;                    // they have their values only there, so the record is made there
  bool is_rounded = false;                   // floating-point numbers are added
  uint32_t threads = 0;                      // of a part's block
  uint32_t program_threads = 0;              // of the program's, a multiple of it
  uint32_t elements = 0;                     // of a part
  bool merges = false;                       // neighbouring parts that fall to the same block are run as one
  std::set<const ptx::Statement*> streamed;  // loads in a row (range_loop.h), if they are asked for
  OrderConditions conditions;                // under which no part reads what another one adds to
  std::optional<JoinedParts> joined;
  // The parts of a range that is not cut (templates/aggregate/range_parts.h).
  [[nodiscard]] uint32_t uncut_parts() const { return program_threads / threads; }
};

// Permissions for what is to be done.
struct SplitRules {
  bool warps = true;    // parts may have blocks of one warp
  bool blocks = false;  // they may have the program's block, where one warp does not suit
  bool join = false;
  bool round = false;  // floating-point numbers may be added in another order, although it shows
  // A part has so many for each of its warps. On an H200 256 were the fastest for a product with an R-MAT
  // matrix, before 512 and 1,024, and as fast as 512 for one with a co-citation graph.
  uint32_t elements = 256;
  bool merge = false;   // neighbouring parts that fall to the same block are run as one
  bool stream = false;  // the caches need not keep what is loaded in a row
};

struct RangeSplitVerdict {
  std::optional<RangeSplit> split;
  std::string why_not;
  bool has_range = false;  // it sums up a range, so that people may wonder why it is not cut
};

// Judges a child that the parent launches as one block of so many threads in one row. `block` is what is
// known of the parent's block. `may_wait`: the record may be made at the launch call.
RangeSplitVerdict judge_range_split(const std::shared_ptr<const FunctionFacts>& child,
                                    const FunctionFacts& parent, const Site& site, uint32_t threads,
                                    const KnownExtents& block, bool may_wait, const SplitRules& rules);

}  // namespace klap::analysis
