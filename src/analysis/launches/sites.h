// Launch sites: the call sequences by which a kernel launches another, recognised and taken apart.
//
// A sequence is recognised whole or not at all. Everything a rewrite will rely on is checked here. The scopes
// of the two calls hold nothing else. The null test jumps around the rest, and the code between the calls is
// straight-line. Only the null test, the argument stores and the launch use the argument buffer. In the
// documented form (idioms.h) the grid is known only at the second call. There every stored register also
// keeps its value up to that call, so that the stores can be moved behind it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/idioms.h"
#include "analysis/launches/streams.h"
#include "ptx/tree.h"

namespace klap::analysis {

// One store of the argument fill, or one component of a vector store.
struct Argument {
  uint32_t offset = 0, bytes = 0;  // in the child's parameter block
  std::string type;                // ".u64"
  std::string source;              // operand text: register or literal
  const ptx::Statement* store = nullptr;
};

struct Site {
  ptx::Position position;                     // of the first call, in the unit's PTX
  std::string problem;                        // why the sequence is not understood; empty when it is
  const Idiom* idiom = nullptr;               // null when the launch was not found
  const ptx::Statement* get_call = nullptr;   // instruction `call GET_BUFFER`
  const ptx::Statement* get_scope = nullptr;  // block around it
  const ptx::Statement* launch_call = nullptr;
  const ptx::Statement* launch_scope = nullptr;
  const ptx::Statement* null_branch = nullptr;  // may be missing
  std::string wrapper;                     // the local function that stands for the runtime's; may be empty
  std::string callee;                      // symbol; empty when it is not a direct one
  std::string callee_operand;              // register that carries it
  std::array<std::string, 3> grid, block;  // operand texts, x y z
  std::string shared, stream;              // operand texts
  std::string buffer;                      // register of the argument buffer
  std::string result;                      // register of the launch's error code; may be empty
  std::string buffer_bytes;                // documented form: operand text of the buffer's size
  std::vector<Argument> arguments;         // by offset
  std::vector<StreamValue> streams;        // possible values of `stream`; empty when the launch was not found

  [[nodiscard]] bool understood() const { return problem.empty(); }
};

// The form's name for a reader: "cdp2", "cdp2, through a local wrapper"; empty when the launch was not found.
std::string form_name(const Site& site);

// All launch sites of a function in text order, understood or not. A wrapper's own calls (wrappers.h) are no
// sites: its callers have them.
std::vector<Site> find_sites(const ptx::Module& module, const ptx::Function& function,
                             const ControlFlow& flow, const DataFlow& data);

// The names whose calls are part of a launch in this module: the device runtime's functions and local
// wrappers.
using LaunchNames = std::set<std::string, std::less<>>;
LaunchNames launch_names(const ptx::Module& module);
// False if the function names none of them and so has no site. The text's words are searched, which costs
// less than finding the sites.
bool may_launch(const ptx::Module& module, const ptx::Function& function, const LaunchNames& names);

// A call that asks for the thread's last error, in a scope of its own.
struct ErrorQuery {
  const ptx::Statement* call = nullptr;
  const ptx::Statement* scope = nullptr;
  std::string result;   // register; empty when the result is dropped
  bool clears = false;  // cudaGetLastError, as opposed to cudaPeekAtLastError
  std::string problem;  // why its form is not known; empty when it is
};
std::vector<ErrorQuery> find_error_queries(const ptx::Module& module, const ptx::Function& function,
                                           const ControlFlow& flow, const DataFlow& data);

// A call that creates or destroys a stream, in a scope of its own.
struct StreamCall {
  const ptx::Statement* call = nullptr;
  const ptx::Statement* scope = nullptr;
  bool creates = false;
  std::string operand;  // register: the address that a handle is written to, or the handle to destroy
  std::string result;   // register of the error code; empty when it is dropped
};

// The strictest order that a launch of the site may be promised. From strict to lax these are Null,
// PerThread, Own (a stream that the thread created and keeps to itself) and FireAndForget. Tail means always
// the tail stream, behind everything else that the grid does. Other means that the stream can be anything
// else.
enum class StreamKind { FireAndForget, Private, PerThread, Null, Tail, Other };
StreamKind stream_kind(const Site& site);

}  // namespace klap::analysis
