// This file makes the image that is loaded in place of the one that the program hands to the driver, or
// decides to leave that.
//
// Almost every image of almost every process has no device launch in it, so the order of the questions
// matters most. The kind is told by the first bytes, then the names of the relocatable code are looked at.
// Only the images that are left then are parsed.
#pragma once

#include <cuda.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "container/image.h"
#include "jit/module.h"
#include "runtime/stats.h"

namespace klap::runtime {

struct ImageSource {
  const char* load_path = "";  // the driver function, for messages
  const void* image = nullptr;
  uint64_t readable_bytes = container::kMaxImageBytes;  // known for files only
  bool every_device = false;                            // a library, which may be used on any device
  // The program's options for the driver's compiler, as ptxas options. They apply to code that the driver
  // would compile.
  std::string compiler_options;
};

// True for the result of a link in which stand-ins are linked (stand_ins.h). It must not be loaded.
bool is_stand_in(const ImageSource& source);

// A program that is to be rewritten, taken out of its image. It holds nothing of that.
struct TakenProgram {
  std::string load_path;
  jit::Program program;
  bool every_device = false;  // as ImageSource
  uint32_t sm = 0;
  bool is_linked = false;  // by the program itself
};

// Both of the following in one call.
std::shared_ptr<const jit::RewrittenModule> rewrite_image(const ImageSource& source, ModuleRecord& record);

// Nothing when the program's own image is to be loaded. `record` then says why; it stays empty (`how`) for
// images that cannot contain device launches. Throws Error when the image could not be taken apart.
std::optional<TakenProgram> take_program(const ImageSource& source, ModuleRecord& record);

// The rewritten module, null when nothing in it is rewritten, or with `only_cached` when the cache has none.
// Throws Error when it could not be rewritten. May be called again if the driver takes no machine code.
std::shared_ptr<const jit::RewrittenModule> rewrite_program(TakenProgram taken, ModuleRecord& record,
                                                            bool only_cached = false);

// The options of a JIT load that change code, in ptxas' spelling.
std::string ptxas_options(std::span<const CUjit_option> options, void* const* values);

}  // namespace klap::runtime
