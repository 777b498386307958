// Children that launch: what must hold for a consumer that feeds itself.
//
// Such a consumer runs a family: the kernels that a parent launches and those that they launch in turn, at
// any depth, the parent perhaps among them. Each is a parent at the same time, so its own launches must be
// ones that could be aggregated; and all are run by the same kernel as what launched them, so that each must
// have one block wherever it is launched, and what it reads must be read coherently. That block may be given
// by what launches it (`<<<grid, blockDim.x>>>`): followed back, its extents are constants, or those of the
// block that the host launches the parent with, which is known before anything runs. Nobody runs the
// descendants of one child before those of the next: a thread may make only one launch that has to wait for
// another; and where the NULL stream would keep children apart, no update may depend on it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "analysis/facts/granularity.h"
#include "analysis/facts/rejection.h"
#include "analysis/legality/sizes.h"
#include "analysis/order/launch_order.h"

namespace klap::analysis {

// How much the threads of a kernel's block have to do with each other.
enum class Meeting { None, Warps, Block };

// A kernel of a family, and what all its launches have in common.
struct FedKernel {
  std::shared_ptr<const FunctionFacts> facts;
  LaunchBlock block{};  // an extent that is missing is that of the block the host launches the parent with
  uint32_t shared_bytes = 0;
  Meeting meeting = Meeting::None;

  [[nodiscard]] bool has_constant_block() const;
  // Throws std::bad_optional_access unless it is constant.
  [[nodiscard]] uint32_t threads() const { return *block[0] * *block[1] * *block[2]; }
  // The block to judge it by. For one that is not known it says as much as is made sure of at each launch
  // where its threads meet: that its warps are full.
  [[nodiscard]] std::array<uint32_t, 3> judged_block() const;
};

// What is known of the blocks of a parent that is perhaps one of the kernels: where the host launches it in
// blocks of that size, and where the consumer runs it.
KnownExtents known_block(const std::vector<FedKernel>& kernels, const FunctionFacts& parent,
                         const KnownExtents& by_host);

struct Family {
  std::vector<FedKernel> kernels;  // in text order; a kernel's number is its place here
  OrderVerdict order;              // of what different threads of a block launch

  // Throws Error(Internal) if there is no such kernel.
  [[nodiscard]] uint32_t number_of(const std::string& kernel) const;
  // Of all sites of `parent`, which belongs to the family or launches it, in the order of the sites.
  [[nodiscard]] std::vector<uint32_t> targets_of(const FunctionFacts& parent) const;
};

struct FamilyVerdict {
  std::shared_ptr<const Family> family;  // null where there is an objection
  std::optional<Objection> objection;
};
// The family of `parent`, all of whose sites launch kernels that `module` defines; or the first objection to
// running it in a consumer that feeds itself.
FamilyVerdict judge_family(const std::shared_ptr<const FunctionFacts>& parent, const ptx::Module& module,
                           const Way& way);

}  // namespace klap::analysis
