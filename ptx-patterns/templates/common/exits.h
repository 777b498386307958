// The end of a child's block in a consumer, if warps of it may have left before others meet.
//
// In the child, a barrier does not wait for threads that have ended. Here they go on to the end of the
// child's block instead, and must not hold up the threads that stay.
//
// If whole warps exit (KLAP_WARPS_EXIT), all the child's barriers are reductions that say "some thread
// stays". A thread that has left comes to the same barrier to say "not me" until no thread stays any more. So
// each barrier of the child lets go when all remaining threads have arrived, as in the child itself. At the
// last barrier of all, the block ends for all threads: its shared memory may be written again. All of it is
// one hardware barrier, since barriers that reduce must not be mixed with others. A child that no thread
// exits early keeps its barriers, also beside others of which that is not true: all its threads come to this
// end together.
//
// (Threads that leave the rest of their warp are not handled here. The compiler may keep them at the place
// where the warp is to come together again, before they could say anything.)
#ifndef KLAP_EXITS_H
#define KLAP_EXITS_H

static __device__ __forceinline__ void end_child_block() {
#ifdef KLAP_WARPS_EXIT
  while (__syncthreads_or(0) != 0) {
  }
#else
  __syncthreads();
#endif
}

#endif
