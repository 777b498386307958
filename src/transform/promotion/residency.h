// This file chooses the min blocks per SM of a generated kernel: the blocks that a multiprocessor must have
// registers for.
//
// The assembler gives a kernel the registers that make one thread fast. Most generated kernels wait for
// memory, and wait less the more threads run beside theirs. Where measurements showed that this matters, a
// kernel asks for room for so many blocks (`.minnctapersm`). Everywhere else it is left to the assembler.
#pragma once

#include <cstdint>

namespace klap::transform {

// The number for consumers with a worklist: blocks of `threads` threads that run children which hold `words`
// registers of 32 bits at a time. It is 0 if nothing is asked for.
uint32_t min_worklist_blocks(uint32_t words, uint32_t threads);
// The number for the executor, whose blocks have up to `shared_bytes` of shared memory. `copies`: it also
// copies and fills memory.
uint32_t min_executor_blocks(uint32_t words, uint32_t threads, uint64_t shared_bytes, bool copies,
                             uint32_t sm);
// The number for other consumers, for children without unrolled loops and without shared memory. The device
// has compute capability `sm`, 90 for 9.0.
uint32_t min_consumer_blocks(uint32_t words, uint32_t threads, uint32_t sm);
// A number that leaves each thread 48 registers, which is fewer than the assembler often takes; 0 for blocks
// so large that a multiprocessor has one of them anyway.
uint32_t usual_blocks(uint32_t threads);
// The number for chains that look back: `words` are the registers of a block's links.
uint32_t min_chain_blocks(uint32_t words, uint32_t threads, uint32_t sm);

}  // namespace klap::transform
