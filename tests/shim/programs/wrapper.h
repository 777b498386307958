/* The image that a program linked from nvcc's objects registers, without the CUDA runtime behind it. */
#ifndef KLAP_TEST_WRAPPER_H
#define KLAP_TEST_WRAPPER_H

/* What the program's start-up code passed to __cudaRegisterFatBinary. */
const void* registered_wrapper(void);

#endif
