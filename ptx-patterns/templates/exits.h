// The end of a child's block that is run by a block of a consumer.
//
// In the child, a barrier does not wait for threads that have ended. Here they go on to the end of the child's
// block instead, and must not hold up those that stay. Where whole warps may leave early, all the child's
// barriers are reductions that say "somebody stays", and who has left comes to the same barrier to say "not
// me" until nobody stays any more. So each barrier of the child lets go when all who stay have arrived, as in
// the child itself, and the last one of all is where its block ends for everybody: what it shared may be
// written again. All of it is one hardware barrier, since barriers that reduce must not be mixed with others.
//
// Constants: KLAP_WARPS_LEAVE when whole warps may leave while others have still to meet; otherwise all come
// here together.
#ifndef KLAP_EXITS_H
#define KLAP_EXITS_H

static __device__ __forceinline__ void end_child_block() {
#ifdef KLAP_WARPS_LEAVE
  while (__syncthreads_or(0) != 0) {
  }
#else
  __syncthreads();
#endif
}

#endif
