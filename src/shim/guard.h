// This file is how every hook is written. A hook calls the driver's own function, and runs klap_jit's part in
// its place, before or after it. If klap_jit's part fails, the program sees the driver's own behaviour.
//
// Each hook is one of the calls below. All run klap_jit's part inside one boundary (support/boundary.h). So
// nothing is thrown at the program, and a thread is not cancelled in the middle of it. The driver's own
// function is outside: there the program's thread is the driver's.
#pragma once

#include <cuda.h>

#include <optional>
#include <type_traits>

#include "runtime/graphs/executables.h"
#include "runtime/graphs/graph_memory.h"
#include "runtime/launch/launch.h"
#include "runtime/launch/stream_turns.h"
#include "runtime/parents/handles.h"
#include "runtime/parents/launch_guard.h"
#include "runtime/parents/pointers_apart.h"
#include "runtime/process.h"
#include "shim/libcuda.h"
#include "support/boundary.h"

namespace klap::shim {

// Tells when klap_jit has something to do in a hook. Most programs launch nothing from the device, and their
// launches pay for two comparisons.
enum class When { Always, OnceRewritten };

// True when there is a libcuda, klap_jit is active, and this thread is not already inside a hook.
bool may_act() noexcept;

// Calls the driver's own function. Defined for a member of Driver: forward<&Driver::launch_kernel>(...).
template <auto Member, class... Args>
CUresult forward(Args... args) {
  const runtime::Driver* const cuda = libcuda();
  return cuda && cuda->*Member ? (cuda->*Member)(args...) : CUDA_ERROR_NOT_INITIALIZED;
}

// True if other threads may be in the middle of a launch. A forked child has no other threads, but what they
// said they were doing.
inline bool others_may_launch() noexcept {
  return !runtime::nothing_rewritten() && !runtime::is_forked_child();
}

// The calling thread's turn in a stream, for a call of the driver's function.
class Turn {
 public:
  explicit Turn(CUstream stream) noexcept {
    if (others_may_launch()) operation_.emplace(stream);
  }

 private:
  std::optional<runtime::Operation> operation_;
};

// Does so in the thread's turn. Other threads' launches wait for nothing else that a hook does.
template <auto Member, class... Args>
CUresult forward_in(CUstream stream, Args... args) {
  const Turn turn(stream);
  return forward<Member>(args...);
}

template <When when, class Work>
void act(const char* entry_point, const Work& work) {
  if (when == When::OnceRewritten && runtime::nothing_rewritten()) return;
  if (is_inside()) return;
  contain(entry_point, "runs unchanged", [&] {
    if (may_act()) work();
  });
}

// For calls that take device memory, which klap_jit's queues must not keep from the program. If the device
// has no memory left, the queues' memory is given back and the call is made once more.
template <class Call>
CUresult with_room(const char* entry_point, const Call& call) {
  const CUresult result = call();
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  bool is_given_back = false;
  act<When::Always>(entry_point, [&] {
    runtime::release_ended_graphs();
    is_given_back = runtime::give_back_queue_memory();
  });
  return is_given_back ? call() : result;
}

// `work` returns an optional result. If it has none, or fails, the program's own call is made. That is a load
// or a launch, which both take memory.
template <auto Member, When when = When::Always, class Work, class... Args>
CUresult in_place(const char* entry_point, const Work& work, Args... args) {
  std::optional<CUresult> result;
  act<when>(entry_point, [&] { result = work(); });
  return result ? *result : with_room(entry_point, [&] { return forward<Member>(args...); });
}

// A launch in `stream`. If it is the program's own call, that takes its turn in the stream.
template <auto Member, class Work, class... Args>
CUresult launch_in_place(const char* entry_point, const Work& work, CUstream stream, Args... args) {
  std::optional<CUresult> result;
  act<When::OnceRewritten>(entry_point, [&] { result = work(); });
  if (result) return *result;
  return with_room(entry_point, [&] { return forward_in<Member>(stream, args...); });
}

// `work` may instantiate the graph in the driver's place. If it does not, the handle may be one that an
// executable graph of an earlier context had.
template <auto Member, class Work, class... Args>
CUresult instantiate(const char* entry_point, const Work& work, CUgraphExec* executable, Args... args) {
  std::optional<CUresult> result;
  act<When::OnceRewritten>(entry_point, [&] { result = work(); });
  if (result) return *result;
  const CUresult own = with_room(entry_point, [&] { return forward<Member>(executable, args...); });
  if (own == CUDA_SUCCESS && executable && !runtime::no_graph_rewritten())
    act<When::OnceRewritten>(entry_point, [&] { runtime::executable_about_to_end(*executable); });
  return own;
}

// A launch of a graph takes its turn in the stream.
template <auto Member, class... Args>
CUresult launch_graph(const char* entry_point, CUstream stream, CUgraphExec executable, Args... args) {
  std::optional<CUresult> refused;
  if (!runtime::no_graph_rewritten()) {
    act<When::OnceRewritten>(entry_point,
                             [&] { refused = runtime::before_graph_launch(executable, stream); });
  }
  if (refused) return *refused;
  const CUresult result =
      with_room(entry_point, [&] { return forward_in<Member>(stream, executable, args...); });
  if (result == CUDA_SUCCESS && !runtime::no_graph_rewritten())
    act<When::OnceRewritten>(entry_point, [&] { runtime::graph_launched(executable); });
  return result;
}

// For calls about a node of an executable graph, which may be that of a copy of the program's graph.
template <auto Member, class... Args>
CUresult at_node(const char* entry_point, CUgraphExec executable, CUgraphNode node, Args... args) {
  CUgraphNode named = node;
  if (!runtime::no_graph_rewritten()) {
    act<When::OnceRewritten>(entry_point, [&] { named = runtime::node_in_executable(executable, node); });
  }
  return forward<Member>(executable, named, args...);
}

// Here `work` may do the call in place of the driver's function, as with in_place().
template <auto Member, class Work, class... Args>
requires std::is_invocable_v<Work> CUresult at_node(const char* entry_point, const Work& work,
                                                    CUgraphExec executable, CUgraphNode node, Args... args) {
  std::optional<CUresult> result;
  if (!runtime::no_graph_rewritten()) act<When::OnceRewritten>(entry_point, [&] { result = work(); });
  return result ? *result : at_node<Member>(entry_point, executable, node, args...);
}

// Before a call that takes so many bytes of device memory, or fewer. Such calls are where the driver may wait
// for running kernels anyway, and most programs make some before their first launch. So the kernels that
// klap_jit needs are loaded there too.
inline void before_allocation(const char* entry_point, uint64_t bytes) {
  act<When::OnceRewritten>(entry_point, [bytes] {
    runtime::make_kernels_ready();
    runtime::before_allocation(bytes);
  });
}

template <auto Member, class... Args>
CUresult allocate(const char* entry_point, uint64_t bytes, Args... args) {
  before_allocation(entry_point, bytes);
  return with_room(entry_point, [&] { return forward<Member>(args...); });
}

// For those that do so in a stream.
template <auto Member, class... Args>
CUresult allocate_in(const char* entry_point, CUstream stream, uint64_t bytes, Args... args) {
  before_allocation(entry_point, bytes);
  return with_room(entry_point, [&] { return forward_in<Member>(stream, args...); });
}

// Facts about the program's memory end with it, whatever else klap_jit does. Kernels that used it are often
// done by then, and their times can be read.
template <class Call>
CUresult release_by(const Call& call) {
  runtime::forget_allocations();
  const CUresult result = call();
  runtime::forget_allocations();
  if (runtime::is_launch_measured())
    act<When::OnceRewritten>("cuMemFree", [] { runtime::collect_measured_launches(); });
  return result;
}

template <auto Member, class... Args>
CUresult release(Args... args) {
  return release_by([&] { return forward<Member>(args...); });
}

template <auto Member, class... Args>
CUresult release_in(CUstream stream, Args... args) {
  return release_by([&] { return forward_in<Member>(stream, args...); });
}

// A module's variables are the program's memory, too.
template <auto Member, class Work, class... Args>
CUresult unload(const char* entry_point, const Work& work, Args... args) {
  act<When::Always>(entry_point, work);
  return release<Member>(args...);
}

template <auto Member, When when = When::Always, class Work, class... Args>
CUresult before(const char* entry_point, const Work& work, Args... args) {
  act<when>(entry_point, work);
  return forward<Member>(args...);
}

// `ask` runs before the call, and what it found is given to `work` after a success.
template <auto Member, class Ask, class Work, class... Args>
CUresult around(const char* entry_point, const Ask& ask, const Work& work, Args... args) {
  std::optional<uint64_t> found;
  act<When::OnceRewritten>(entry_point, [&] { found = ask(); });
  const CUresult result = forward<Member>(args...);
  if (found && result == CUDA_SUCCESS) act<When::OnceRewritten>(entry_point, [&] { work(*found); });
  return result;
}

// Runs `work` only after a success.
template <auto Member, When when = When::Always, class Work, class... Args>
CUresult after(const char* entry_point, const Work& work, Args... args) {
  const CUresult result = forward<Member>(args...);
  if (result == CUDA_SUCCESS) act<when>(entry_point, work);
  return result;
}

// `instead` may do the call in place of the driver's function. If it does not, `work` runs after a success.
template <auto Member, class Instead, class Work, class... Args>
CUresult in_place_or_after(const char* entry_point, const Instead& instead, const Work& work, Args... args) {
  std::optional<CUresult> result;
  act<When::Always>(entry_point, [&] { result = instead(); });
  return result ? *result : after<Member>(entry_point, work, args...);
}

}  // namespace klap::shim
