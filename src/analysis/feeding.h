// Children that launch: what must hold for a consumer that feeds itself.
//
// Such a consumer runs a family: the kernels that a parent launches and those that they launch in turn, at
// any depth, the parent perhaps among them. Each is a parent at the same time, so its own launches must be
// ones that could be aggregated; and all are run by the same kernel as what launched them, so that each must
// have one block wherever it is launched, and what it reads must be read coherently. Nobody runs the
// descendants of one child before those of the next: a thread may make only one launch that has to wait for
// another; and where the NULL stream would keep children apart, no update may depend on it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/legality.h"

namespace klap::analysis {

// A kernel of a family, and what all its launches have in common.
struct FedKernel {
  std::shared_ptr<const FunctionFacts> facts;
  std::array<uint32_t, 3> block{};
  uint32_t shared_bytes = 0;
  [[nodiscard]] uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

struct Family {
  std::vector<FedKernel> kernels;  // in text order; a kernel's number is its place here

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
