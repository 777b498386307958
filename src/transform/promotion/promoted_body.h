// A kernel's body, and slices of it, as parts of the kernel that its chain of launches became.
//
// Parameters that are the same for all links are read as ever. The others are read from an area in shared
// memory that is laid out as the parameter block: ld.param becomes ld.shared at the same offset.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "analysis/promotion/promotion.h"
#include "transform/text/lines.h"
#include "transform/text/splice.h"

namespace klap::transform {

// What is common to all parts of one chain's kernel.
struct PromotedParts {
  const analysis::FunctionFacts& kernel;
  const analysis::ChainFacts& chain;
  LineTables& lines;
};

// The body of a link, with what stands around its statements. What earlier links wrote is read as what it is,
// data of the same kernel: no load goes past the coherent caches.
struct LinkBody {
  std::string prefix;  // of all names that it declares
  std::string link;    // register with the 32-bit address of the link's state; the area lies in it
  Surroundings around;
  // In front of this statement, which no scope that is replaced holds, stand `at_boundary` and the chain's
  // moved instructions; null for nowhere.
  const ptx::Statement* boundary = nullptr;
  std::string at_boundary;

  // For a body that is written out in pieces.
  std::string labels;                    // prefix of the body's labels, "$x_"; empty for the usual one
  bool declares = true;                  // registers and variables; else they are declared already
  std::set<const ptx::Statement*> cuts;  // of the body itself: pieces begin there
  analysis::Slice again;                 // stands behind `at_boundary` a second time
  SymbolNames variables;                 // of the unit, under other names
};
std::string link_body(const PromotedParts& parts, const LinkBody& body);
// Without a scope around them.
std::vector<std::string> link_pieces(const PromotedParts& parts, const LinkBody& body);

// Instructions that compute something of an area's arguments, with the declarations of their registers;
// `area` is a register with its 32-bit address.
std::string slice_text(const PromotedParts& parts, const analysis::Slice& slice, const std::string& prefix,
                       const std::string& area);

// The arguments that differ between links, from the kernel's own parameters to an area.
std::string copy_arguments_text(const PromotedParts& parts, const std::string& area);

// All parameters of the kernel, from its own to the same place in a launch's buffer, whose address is the
// 64-bit register `buffer`: where `guard` holds, "@%p ".
std::string copy_parameters_text(const PromotedParts& parts, const std::string& buffer,
                                 const std::string& guard);

// The operand of the kernel as it stands in a part: a register with the part's prefix, or a literal.
std::string part_operand(const PromotedParts& parts, const std::string& operand, const std::string& prefix);

}  // namespace klap::transform
