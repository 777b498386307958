#include "transform/promotion/residency.h"

#include <algorithm>

namespace klap::transform {
namespace {

constexpr uint32_t kRegisters = 65536;  // of a multiprocessor
constexpr uint32_t kWarp = 32;
constexpr uint32_t kFewWords = 48;  // in the registers of a worklist's child

uint32_t threads_of_multiprocessor(uint32_t sm) {
  if (sm == 75) return 1024;
  return sm == 86 || sm == 87 || sm == 89 || sm >= 120 ? 1536 : 2048;
}

// The lanes that a block takes: its last warp is a whole one, too.
uint32_t lanes_of(uint32_t threads) { return (threads + kWarp - 1) / kWarp * kWarp; }

uint64_t shared_bytes_of_multiprocessor(uint32_t sm) {
  if (sm == 75) return 64 << 10;
  if (sm == 86 || sm == 89 || sm >= 120) return 100 << 10;
  return (sm < 90 ? 164 : 228) << 10;
}

}  // namespace

uint32_t usual_blocks(uint32_t threads) {
  constexpr uint32_t kThreads = 1280, kMostBlocks = 32;
  const uint32_t blocks = kThreads / threads;
  return blocks > 1 ? std::min(blocks, kMostBlocks) : 0;
}

// A consumer with a worklist waits for memory most of the time, and so runs as many children as it has
// blocks. Around a child it holds about ten registers. The code that records the child's launches waits
// longest, and can keep some values in memory. The assembler by itself takes thirty registers more than the
// child. With 1,280 threads each has 48 registers on every device that runs such kernels. More threads were
// slower: 1,536 by 5 % in the mean of td, th and rbfs on an H200, 2,048 by 17 %.
uint32_t min_worklist_blocks(uint32_t words, uint32_t threads) {
  return words <= kFewWords ? usual_blocks(threads) : 0;
}

// Children of few registers fill a multiprocessor by themselves. Their consumer holds a few more. The
// assembler, which counts eight at a time, would then fit a quarter fewer threads. On an H200 connected
// components take a fifth longer so. Children that hold more are slower with fewer registers: sums along rows
// by a tenth, PageRank by a half.
uint32_t min_consumer_blocks(uint32_t words, uint32_t threads, uint32_t sm) {
  constexpr uint32_t kAround = 16, kMostBlocks = 16;
  const uint32_t have = threads_of_multiprocessor(sm);
  const uint32_t blocks = have / threads;
  return words <= kRegisters / have - kAround && blocks > 1 ? std::min(blocks, kMostBlocks) : 0;
}

// The executor needs a few registers more than its children, if these hold many values.
uint32_t blocks_of_many_words(uint32_t words, uint32_t threads) {
  constexpr uint32_t kBeside = 12;
  const uint32_t lanes = lanes_of(threads);
  const uint32_t blocks = kRegisters / lanes / (words + kBeside);
  const bool two_fit_nearly = kRegisters / lanes / 2 >= words - words / 4;
  return blocks < 2 && two_fit_nearly ? 2 : blocks;
}

// A multiprocessor runs as many blocks of the executor's grids as it holds blocks of the executor. The
// assembler, left alone, may leave room for a single one: with CUB's sort it took 167 registers a thread,
// where the largest kernel needs 111 and the one that does the work 80. A second block is worth that up to a
// quarter of the largest kernel's values lie in memory.
//
// Children of few registers get more threads, but for copies, which hold more data. With as many as a
// multiprocessor has, what the executor itself keeps would be moved to memory and back around every block of
// a child. Children of more registers than a few work on wide grids, one block after another. With 48
// registers a matrix product of 35 values took a tenth longer on an H200 than with 64, a factorisation of 32
// a twentieth.
uint32_t min_executor_blocks(uint32_t words, uint32_t threads, uint64_t shared_bytes, bool copies,
                             uint32_t sm) {
  constexpr uint32_t kMostThreads = 1536, kMostBlocks = 32, kVeryFewWords = 24, kThreadsOfMore = 1024;
  constexpr uint64_t kReserved = 1024;  // of shared memory, by CUDA for each block
  uint32_t blocks =
      words > kFewWords ? blocks_of_many_words(words, threads) : min_worklist_blocks(words, threads);
  if (words > kVeryFewWords && words <= kFewWords)
    blocks = std::min(blocks, kThreadsOfMore / lanes_of(threads));
  if (!copies)
    blocks = std::max(blocks, std::min(min_consumer_blocks(words, threads, sm), kMostThreads / threads));
  const uint64_t room = shared_bytes_of_multiprocessor(sm) / (shared_bytes + kReserved);
  const uint64_t fit = std::min<uint64_t>({blocks, room, kMostBlocks});
  return fit < 2 ? 0 : static_cast<uint32_t>(fit);
}

// Links that look back run side by side, as many as blocks fit. Short ones do little but wait for memory. So
// a multiprocessor is to hold as many blocks as the body's registers leave room for.
uint32_t min_chain_blocks(uint32_t words, uint32_t threads, uint32_t sm) {
  constexpr uint32_t kMostBlocks = 16, kBeside = 4;  // addresses, what is shared
  const uint32_t lanes = lanes_of(threads);
  const uint32_t fit = kRegisters / lanes / (words + kBeside);
  const uint32_t blocks = std::min({fit, threads_of_multiprocessor(sm) / lanes, kMostBlocks});
  return blocks < 2 ? 0 : blocks;
}

}  // namespace klap::transform
