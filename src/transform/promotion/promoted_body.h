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

// The parts of one chain's kernel have these in common.
struct PromotedParts {
  const analysis::FunctionFacts& kernel;
  const analysis::ChainFacts& chain;
  LineTables& lines;
};

// The body of a link, with the text around its statements. Memory that earlier links wrote is data of the
// same kernel, so every load of it is coherent.
struct LinkBody {
  std::string prefix;  // of all names that it declares
  std::string link;    // register with the 32-bit address of the link's state; the area lies in it
  Surroundings around;
  // `at_boundary` and the chain's moved instructions stand before this statement, which no replaced scope
  // holds. Null if they stand nowhere.
  const ptx::Statement* boundary = nullptr;
  std::string at_boundary;

  // These are for a body that is inlined in pieces.
  std::string labels;                    // prefix of the body's labels, "$x_"; empty for the usual one
  bool declares = true;                  // registers and variables; else they are declared already
  std::set<const ptx::Statement*> cuts;  // of the body itself: pieces begin there
  analysis::Slice again;                 // stands behind `at_boundary` a second time
  SymbolNames variables;                 // of the unit, under other names
};
std::string link_body(const PromotedParts& parts, const LinkBody& body);
// The pieces of a link's body, without a scope around them.
std::vector<std::string> link_pieces(const PromotedParts& parts, const LinkBody& body);

// Instructions that compute a value from an area's arguments, with the declarations of their registers.
// `area` is a register with its 32-bit address.
std::string slice_text(const PromotedParts& parts, const analysis::Slice& slice, const std::string& prefix,
                       const std::string& area);

// Copies the arguments that differ between links from the kernel's own parameters to an area.
std::string copy_arguments_text(const PromotedParts& parts, const std::string& area);

// Copies all parameters of the kernel, from its own to the same place in a launch's buffer. The 64-bit
// register `buffer` has the buffer's address. `guard`, such as "@%p ", tells when.
std::string copy_parameters_text(const PromotedParts& parts, const std::string& buffer,
                                 const std::string& guard);

// The operand of the kernel as it stands in a part: a register with the part's prefix, or a literal.
std::string part_operand(const PromotedParts& parts, const std::string& operand, const std::string& prefix);

}  // namespace klap::transform
