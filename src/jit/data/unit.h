// Programs as the pipeline takes them: their translation units, with everything decompressed that may be
// needed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "container/image.h"

namespace klap::jit {

// One translation unit as it comes out of the container, with everything decompressed that may be needed.
struct Unit {
  std::string name;          // for messages: "unit 0", or the file's name
  std::string ptx;           // for this target or, where the unit carries none, for another; may be empty
  std::string options;       // ptxas options of the PTX entry
  std::string cubin;         // relocatable machine code for the target, empty when there is none
  char cubin_suffix = '\0';  // 'a' or 'f' of the machine code's target, as in sm_90a
  bool is_device_runtime = false;
  // Its code calls the device runtime's launch functions, or cannot be looked into.
  bool launches = false;
  std::string without_code;  // why it has neither PTX nor machine code, if it launches and has none
};

struct Program {
  std::vector<Unit> units;
  // Set when the image carries no device runtime of its own (a bare PTX module): where to find
  // libcudadevrt.a.
  std::string device_runtime_archive;
  // The driver has the device runtime built in (it takes no machine code, in which that comes): none is
  // linked.
  bool built_in_runtime = false;
};

// Units of a wrapper or a fatbin, of machine code, or of bare PTX, chosen for compute capability `sm`.
Program program_from_fatbins(const std::vector<container::Fatbin>& fatbins, uint32_t sm);
Program program_from_machine_code(std::string cubin, std::string name);
Program program_from_ptx(std::string_view ptx, std::string name);

}  // namespace klap::jit
