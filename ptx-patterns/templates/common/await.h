// The wait of a consumer for its parent. The host may launch a consumer before the parent is complete
// (programmatic dependent launch), so that its blocks are in place when the parent ends. Until a block has
// waited it knows nothing of the parent's writes. So every block begins with this wait, before it reads the
// queue and before it may leave. Work that is enqueued behind the consumer waits for the consumer alone, and
// so for the parent as well.
//
// For the consumer, the parent's writes happen in its own lifetime. So it reads none of them through the
// non-coherent cache, and neither do the children's bodies in it.
//
// The wait ends at once if the kernel was launched in the ordinary way. KLAP_AWAIT_PARENT: the unit is for
// sm_90 or later, which have the instruction.
#ifndef KLAP_AWAIT_H
#define KLAP_AWAIT_H

static __device__ __forceinline__ void await_parent() {
#ifdef KLAP_AWAIT_PARENT
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
