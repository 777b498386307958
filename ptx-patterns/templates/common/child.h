// The markers of a consumer's template: functions that are never there. The code of the child is spliced in
// where they are called.
//
// Constants: KLAP_BLOCKS_DIFFER if a child's block is not the same at every launch (sizes.h); KLAP_ONE_ROW if
// the child is told a larger block than it was launched with (split_iterations.h).
#ifndef KLAP_CHILD_H
#define KLAP_CHILD_H

// Runs the thread of the child that has that place in the child's grid and block. `arguments` is their
// address in the record.
extern "C" __device__ void __klap_child_body(const unsigned char* arguments, unsigned int ctaid_x,
                                             unsigned int ctaid_y, unsigned int ctaid_z,
                                             unsigned int nctaid_x, unsigned int nctaid_y,
                                             unsigned int nctaid_z, unsigned int tid_x, unsigned int tid_y,
                                             unsigned int tid_z
#if defined(KLAP_BLOCKS_DIFFER) || defined(KLAP_ONE_ROW)
                                             ,
                                             unsigned int ntid_x, unsigned int ntid_y, unsigned int ntid_z
#endif
);

// The child's arguments are read here, for the bodies that follow with the same `arguments`. These would read
// them again, each for itself: it could be that one of them has changed them, for all that the compiler
// knows.
extern "C" __device__ void __klap_child_arguments(const unsigned char* arguments);

#endif
