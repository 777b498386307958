// Annotations are what a program's author asks for with the macros of include/klap/annotate.cuh.
//
// They stand in the PTX as scoped declarations of an unused register, such as
//     { .reg .pred __klap_kernel$granularity$block; }
// The compiler keeps them and their place, and ptxas makes nothing of them. Unlike comments they are part of
// the PTX that a fatbin carries. A kernel's annotations hold for all its launches. A launch's annotations
// hold for the launch that comes next on each path from there. So they follow the code where the compiler
// copies or moves it.
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

  // The annotation as it was written: "granularity(block)".
  [[nodiscard]] std::string text() const { return key + "(" + value + ")"; }
};

struct Annotations {
  std::vector<Annotation> kernel;  // in text order, here and below
  std::map<const Site*, std::vector<Annotation>> sites;
  std::vector<Annotation> stray;  // of a launch, but no launch follows

  [[nodiscard]] const std::vector<Annotation>& of(const Site& site) const;
};

// KLAP_OVERLAP_BOUNDARY() marks where a kernel that launches itself begins to need the results of its earlier
// runs.
struct BoundaryMark {
  uint32_t instruction =
      0;  // that stands behind it in the same block; the last one in front if there is none
  ptx::Position position;
};
std::vector<BoundaryMark> boundary_marks(const FunctionFacts& facts);

// Finds the annotations. One that stands twice in the same words is listed once, because the compiler copies
// code.
Annotations find_annotations(const FunctionFacts& facts);

}  // namespace klap::analysis
