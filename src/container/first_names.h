// The names in a cubin, read without unpacking the code behind them.
//
// Names tell whether code launches. An ELF file says at its end where they are, so a compressed one would
// have to be unpacked in full, which took 5 ms for 8 MB. The toolkits write the names first, and what is
// behind them is no text. So the beginning is enough to say of most code that it does not launch.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "container/image.h"

namespace klap::container {

// False if none of the cubin's names contains one of `words`. True if some may; then the whole file tells.
// That is so as well if the file is not laid out as the toolkits do it. Throws Error(Container).
bool may_name(const FatbinEntry& cubin, std::span<const std::string_view> words);

// A file that is read in parts.
struct PartlyRead {
  uint64_t bytes = 0;
  std::function<std::string(uint64_t offset, uint64_t bytes)> read;  // less where the file ends
};

// Says it of the machine code that the driver takes out of the file for a device of compute capability `sm`.
// It reads only headers and names of a fatbin or a cubin. True for all other files. Throws Error(Container)
// and what `read` throws.
bool file_may_name(const PartlyRead& file, uint32_t sm, std::span<const std::string_view> words);

// The words that the names of the functions contain by which code launches kernels.
std::span<const std::string_view> launch_words();

}  // namespace klap::container
