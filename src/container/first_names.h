// The names in a cubin, read without unpacking the code behind them.
//
// Names tell whether code launches. An ELF file says at its end where they are, so a compressed one would have
// to be unpacked in full, which took 5 ms for 8 MB. The toolkits write the names first, and what is behind them
// is no text. So the beginning is enough to say of most code that it does not launch.
#pragma once

#include <span>
#include <string_view>

#include "container/image.h"

namespace klap::container {

// False if none of the cubin's names contains one of `words`. True if some may; then the whole file tells.
// That is so as well if the file is not laid out as the toolkits do it. Throws Error(Container).
bool may_name(const FatbinEntry& cubin, std::span<const std::string_view> words);

}  // namespace klap::container
