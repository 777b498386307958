// A consumer that the host enqueues right behind the parent may be launched before the parent is complete
// (programmatic dependent launch), so that its blocks are in place when the parent ends. Until it has waited
// it knows nothing of what the parent did: every block begins with this wait, before it reads the queue and
// before it may leave. What is enqueued behind the consumer waits for the consumer alone, and so for the
// parent as well.
//
// To the consumer, what the parent writes is written in its own lifetime: it reads none of it through the
// non-coherent cache, and neither do the children's bodies in it.
//
// The wait ends at once where the kernel was launched in the ordinary way. KLAP_AWAIT_PARENT: the unit is for
// sm_90 or later, which have the instruction.
#ifndef KLAP_AWAIT_H
#define KLAP_AWAIT_H

static __device__ __forceinline__ void await_parent() {
#ifdef KLAP_AWAIT_PARENT
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
