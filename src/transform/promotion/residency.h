// How many blocks of a kernel a multiprocessor must have registers for.
//
// The assembler gives a kernel the registers that make one thread fast. Most kernels made here wait for
// memory, and wait less the more threads there are beside theirs. Where that was measured to matter, a kernel
// asks for room for so many blocks (`.minnctapersm`); everywhere else it is left to the assembler.
#pragma once

#include <cstdint>

namespace klap::transform {

// Blocks of `threads` threads that run children which hold `words` registers of 32 bits at a time; 0 where
// nothing is asked for. Of consumers that feed themselves.
uint32_t least_feeding_blocks(uint32_t words, uint32_t threads);
// The same of other consumers, for children without loops that were unrolled and without shared memory, on
// devices of compute capability `sm`, 90 for 9.0.
uint32_t least_consumer_blocks(uint32_t words, uint32_t threads, uint32_t sm);
// Of chains that look back: `words` are those of a block's links.
uint32_t least_chain_blocks(uint32_t words, uint32_t threads, uint32_t sm);

}  // namespace klap::transform
