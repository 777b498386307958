// Annotations: what a program's author asks for with the macros of include/klap/annotate.cuh.
//
// They stand in the PTX as scoped declarations of a register that nothing uses, `{ .reg .pred
// __klap_kernel$granularity$block; }`: the compiler keeps them and their place, ptxas makes nothing of them,
// and unlike comments they are part of the PTX that a fatbin carries. Those of a kernel hold for all its
// launches. Those of a launch hold for the launch that comes next on each path from there, so that they
// follow the code where the compiler copies or moves it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/facts/facts.h"
#include "ptx/token.h"

namespace klap::analysis {

struct Annotation {
  std::string key, value;
  ptx::Position position;

  // As it was written: "granularity(block)".
  [[nodiscard]] std::string text() const { return key + "(" + value + ")"; }
};

struct Annotations {
  std::vector<Annotation> kernel;  // in text order, here and below
  std::map<const Site*, std::vector<Annotation>> sites;
  std::vector<Annotation> stray;  // of a launch, but no launch follows

  [[nodiscard]] const std::vector<Annotation>& of(const Site& site) const;
};

// KLAP_OVERLAP_BOUNDARY(): where a kernel that launches itself comes to need what earlier runs of it did.
struct BoundaryMark {
  uint32_t instruction =
      0;  // that stands behind it in the same block; the last one in front if there is none
  ptx::Position position;
};
std::vector<BoundaryMark> boundary_marks(const FunctionFacts& facts);

// What is said twice in the same words is there once: the compiler copies code.
Annotations find_annotations(const FunctionFacts& facts);

}  // namespace klap::analysis
