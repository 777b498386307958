// The names of generated kernels (support/generated_name.h).
//
// A name says what the kernel is and holds a tag of its unit. Two kernels that differ must not have the same
// name, and equal consumers of several sites shall have one, so that the code is there once. That is why
// every option that changes a consumer has its part in the name.
#pragma once

#include <string>
#include <string_view>

#include "jit/planned/planned.h"

namespace klap::jit {

// Short and unique within a program: names of generated kernels carry it.
std::string unit_tag(const Plan& plan, size_t unit);

// Names a parent's variant. Others beside the first one have a part that says what they do: keep the order,
// or run children in blocks. `more` comes last.
std::string variant_name(const Plan& plan, const PlannedSite& site, std::string_view more = "");

// Names a consumer that runs one kernel. `kind` says how, and `division` which threads run a child. `more`
// comes last.
std::string one_child_name(const Plan& plan, const PlannedSite& site, std::string_view kind,
                           std::string_view division, std::string_view more = "");

// Name suffix for a packed record: a hash, as the layout is too long for a name.
std::string layout_tag(const transform::RecordLayout& layout);

// Name suffix for a minimum number of blocks per SM.
std::string occupancy_tag(const transform::ConsumerShape& shape);

// Name suffix for what optimisations change in a plain consumer, as far as it is not the default.
std::string optimisations_tag(const transform::ConsumerShape& shape);

}  // namespace klap::jit
