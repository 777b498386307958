// Calls of the device runtime that copy or fill memory in a stream, taken apart.
//
// On the device such a call is a launch of a kernel of CUDA's own: it takes its place in the stream, and the
// calling grid is complete only when it is done.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "ptx/tree.h"

namespace klap::analysis {

// A call in a scope of its own. What the function does not ask for stands there as a literal.
struct CopyCall {
  const ptx::Statement* call = nullptr;
  const ptx::Statement* scope = nullptr;
  bool fills = false;
  bool has_slices = false;  // in three dimensions
  // Operand texts. A copy of slices has the address of a cudaMemcpy3DParms and a stream.
  std::string to, to_pitch = "0", from = "0", from_pitch = "0", value = "0";
  std::string width, height = "1", kind = "0", stream, parameters;
  std::string slice_rows, depth;  // of a fill of slices: the height of its pitched pointer, and the slices
  bool stream_zero_is_per_thread = false;
  std::string result;  // register of the error code; empty when it is dropped
};

// All of them in text order, but for those whose form is not known.
std::vector<CopyCall> find_copy_calls(const ptx::Module& module, const ptx::Function& function,
                                      const ControlFlow& flow, const DataFlow& data);

// The names whose calls copy or fill memory in this module: the device runtime's functions and local
// wrappers.
std::set<std::string, std::less<>> copy_names(const ptx::Module& module);

}  // namespace klap::analysis
