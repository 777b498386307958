// Whether and how a kernel that launches itself is promoted (analysis/promotion/promotion.h,
// transform/promotion/promoted_shape.h).
//
// The mode that is asked for, or the best one, if nothing stands against it; else the next that needs less.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "analysis/promotion/promotion.h"
#include "jit/planned/planned.h"

namespace klap::jit {

// SiteRemark::granularity of a site that is promoted.
inline constexpr char kPromotion[] = "promotion";

struct PromotionVerdict {
  std::shared_ptr<const PlannedPromotion> promotion;  // null where there is a rejection
  std::optional<analysis::Rejection> rejection;
};

// True if the kernel launches itself: only then there is anything to say about promotion.
bool launches_itself(const analysis::FunctionFacts& kernel);

// For options whose promotion is not "none", and devices of compute capability `sm` (90 for 9.0).
PromotionVerdict plan_promotion(const analysis::FunctionFacts& kernel, const SiteOptions& options,
                                uint32_t sm);
// Plans a chain of which all is known, for the value of SiteOptions::promotion.
PromotionVerdict plan_promotion(std::shared_ptr<const analysis::ChainFacts> chain,
                                const std::string& promotion);

// For the remark: "look-back, block 512x1x1, parameter 3 stepped by 1, ...".
std::string promotion_text(const PlannedPromotion& promotion, const analysis::FunctionFacts& kernel);

}  // namespace klap::jit
