// The machine's users name streams and events by these numbers.
#pragma once

#include <cstdint>

namespace klap::emulator {

using StreamId = uint64_t;
using EventId = uint64_t;
inline constexpr StreamId kLegacyStream = 0;
enum class StreamFlags : uint8_t { Default, NonBlocking };

}  // namespace klap::emulator
