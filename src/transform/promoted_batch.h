// A promoted chain's body where a block has several links (templates/promote.h: parts).
//
// The text of the body stands there once. It is run up to the boundary for one link after another; then the
// block's links combine and look back as one; then what stands behind the boundary is run for each. In
// between, what a link's threads have in registers is kept in local memory (analysis/batching.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/batching.h"
#include "transform/promote.h"
#include "transform/promoted_body.h"

namespace klap::transform {

class BatchText {
 public:
  // For a shape with a batch. The body's names have `prefix`; `link` is the register with the address of the
  // block's state, and from begin() on of that of the link that is run.
  BatchText(const PromotedParts& parts, const PromotedShape& shape, std::string prefix, std::string link);

  // In front of the body.
  [[nodiscard]] std::string begin() const;
  // At the boundary, from what stores the link's values and what combines those of the block.
  [[nodiscard]] std::string at_boundary(const std::string& store_values, const std::string& combine) const;
  [[nodiscard]] const analysis::Slice& again() const { return batching_.again; }
  // Behind the body's last statement.
  [[nodiscard]] std::string at_end() const;

 private:
  [[nodiscard]] std::string first_link() const;
  [[nodiscard]] std::string next_link(std::string_view none, std::string_view next) const;
  [[nodiscard]] std::string keep() const;
  [[nodiscard]] std::string restore() const;
  // Where a register is kept, behind %klap_kept.
  struct Kept {
    std::string name;
    uint32_t at = 0, bytes = 0;
    bool is_predicate = false;
  };

  const PromotedShape& shape_;
  std::string link_;
  analysis::Batching batching_;
  std::vector<Kept> kept_;
  uint32_t kept_bytes_ = 0;  // of one link
};

}  // namespace klap::transform
