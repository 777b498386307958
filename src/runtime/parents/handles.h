// The shim reports here when the program learns, changes or gives up handles of device code.
//
// Each function is called after the driver's own function succeeded (the forget_ ones before it runs), with
// the arguments and results of the program's call. None has an effect that the program sees.
#pragma once

#include <cuda.h>

namespace klap::runtime {

// True while no loaded image has a rewritten kernel, or may get one: two relaxed loads, for the hooks' fast
// path.
bool nothing_rewritten() noexcept;

// Has the driver load the kernels that it would otherwise load at the first launch of a rewritten parent in
// the current context. Takes the memory for that launch. With lazy loading the driver waits for all running
// kernels then, which may wait for this thread. So this belongs where the program loads or allocates itself.
// Does nothing the second time.
void make_kernels_ready();
// Loads kernels of images that came before there was any context. It is called before a launch, which is
// late.
void load_kernels_for_launch();

void learn_kernel(CUlibrary library, const char* name, CUkernel kernel);
void learn_module(CUlibrary library, CUmodule module);
void learn_function(CUmodule module, const char* name, CUfunction function);
void learn_function_of(CUkernel kernel, CUfunction function);

void forget_library(CUlibrary library);
void forget_module(CUmodule module);

// Settings of an original are made on its variant as well, so that both launch under the same conditions. A
// setting that the variant refuses is logged. If it matters, the variant's launch fails and the original
// runs.
void mirror_attribute(CUfunction function, CUfunction_attribute attribute, int value);
void mirror_cache_config(CUfunction function, CUfunc_cache cache);
void mirror_attribute(CUkernel kernel, CUfunction_attribute attribute, int value, CUdevice device);
void mirror_cache_config(CUkernel kernel, CUfunc_cache cache, CUdevice device);

}  // namespace klap::runtime
