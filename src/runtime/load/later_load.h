// Loads of programs that begin with their own kernels (KLAP_ASYNC): the program's image is loaded as it is,
// and rewritten meanwhile (parents/later_images.h). A module that is in the cache is rewritten at once.
#pragma once

#include <functional>
#include <optional>

#include "runtime/load/image_rewrite.h"
#include "runtime/load/load.h"
#include "runtime/load/rewritten_load.h"
#include "runtime/parents/later_images.h"

namespace klap::runtime {

// Loads the program's image as the program asked for it, and says what came out.
using LoadOwn = std::function<CUresult(OwnImage&)>;
LoadOwn own_library(CUlibrary* library, const void* image, const JitOptions& options,
                    const LibraryOptions& library_options);
LoadOwn own_module(CUmodule* module, const void* image, const JitOptions& options);

// `load` loads what is rewritten already. Returns nothing when the program's call is to be made as it is.
std::optional<CUresult> load_as_it_is(const ImageSource& source, const LoadOwn& load_own,
                                      const LoadCubin& load);

}  // namespace klap::runtime
