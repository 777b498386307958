// Loops by which a kernel may wait for another thread.
//
// A deferred child cannot be waited for by its parent, and blocks that a consumer runs one after another
// cannot wait for each other. CUDA promises neither, but natively both may work. So a kernel with a loop that
// looks like waiting is rejected. Loops that are shown to end by themselves (loop_termination.h) do not wait,
// and code that nothing leads to never runs. The loop's place in the kernel does not matter: a thread that
// has not launched yet may wait for the child of another thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/effects/loop_termination.h"
#include "analysis/effects/polling.h"
#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "analysis/graph/loops.h"
#include "analysis/graph/shared_flow.h"

namespace klap::analysis {

// The threads that a loop must not wait for.
enum class WaitsFor {
  Anybody,
  // The children of a launch, which cannot write the parent's shared memory. Threads of a block that wait for
  // each other there still do so in a variant.
  Children,
  // Blocks that run one after another. Threads of a block run together, as in the program, so they may wait
  // for each other by their shared memory.
  OtherBlocks,
};

// True for a call that takes memory for a block that stops (suspension/suspension.h). It waits for nobody. A
// block that gets none goes on, and its program is told of an error, as it would be natively again and again.
bool takes_frame(const ptx::Module& module, const ptx::Statement& statement, const LocalNames& names);

// The loops of one function that may wait.
class Waiting {
 public:
  Waiting(const ptx::Module& module, const ControlFlow& flow, const DataFlow& data,
          WaitsFor whom = WaitsFor::Anybody);

  // The first instruction by which a loop of the function may see what other threads do and stay for it. It
  // is a strong load (volatile, relaxed, acquire), or a fence or a sleep in a loop. An atomic counts, too, if
  // its result decides whether a loop around it goes on. So does a call of a function that does such things.
  // A load or an atomic counts that lets a loop go a path on which nothing changes (loop_termination.h).
  // A strong load does not wait that reads a row of places, one in each iteration of a counted loop: sums of
  // what other blocks have left are often written so.
  // A compare-and-swap that retries with what it read is not waiting: some thread succeeds every time.
  // Ordinary loads wait where polling.h says so. The text is one sentence with its place; nothing if there is
  // no such instruction.
  std::optional<std::string> find();

  // True if the instruction stands in loops, and all of these are shown to end by themselves.
  bool ends_by_itself(uint32_t instruction);

  // True if find() would stop at the instruction, which stands in a loop.
  [[nodiscard]] bool watches(uint32_t instruction);

  // True if a load reads the same address in every iteration of a loop around it, and the value decides
  // whether that loop goes on. The program waits, but does not say that it reads memory that others write.
  [[nodiscard]] bool asks_again(uint32_t load) const;

  // True if what a load or an atomic in a loop around the instruction reads decides whether that loop goes
  // on.
  [[nodiscard]] bool goes_on_by_memory(uint32_t instruction) const;

 private:
  [[nodiscard]] bool polls(uint32_t instruction);
  [[nodiscard]] bool idles(uint32_t instruction);
  [[nodiscard]] bool reads_a_row(uint32_t load);
  [[nodiscard]] bool is_counted(const Loop& loop) const;
  [[nodiscard]] bool is_of_block(uint32_t instruction) const;
  [[nodiscard]] bool is_reduction(uint32_t atom) const;
  [[nodiscard]] bool is_retry(uint32_t atom, const Loop& loop) const;
  [[nodiscard]] RegisterSet copies_of(std::string_view reg) const;
  [[nodiscard]] bool decides(const std::vector<uint32_t>& sources, const Loop& loop) const;
  [[nodiscard]] RegisterSet influenced(const std::vector<uint32_t>& sources) const;
  [[nodiscard]] std::vector<uint32_t> loads_of_stored(uint32_t store) const;
  [[nodiscard]] std::vector<uint32_t> results_of_call(uint32_t call) const;
  [[nodiscard]] const ptx::Statement& at(uint32_t instruction) const;

  const ptx::Module& module_;
  const ControlFlow& flow_;
  const DataFlow& data_;
  const LoopParts loops_;
  const SharedFlow shared_;
  LoopTermination termination_;
  Polling polling_;
  const WaitsFor whom_;
};

}  // namespace klap::analysis
