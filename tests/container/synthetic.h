// Fatbins and wrappers made up in memory: forms that no toolkit at hand produces, and forms that none should
// produce.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "container/image.h"
#include "support/error.h"

namespace klap::container {

// The fields of an entry's header, with the values that nvcc would give an uncompressed PTX entry.
struct SyntheticEntry {
  uint16_t kind = 1;
  uint16_t version = 0x101;
  uint32_t arch = 90;
  uint64_t flags = 0x11;
  std::string payload;             // as stored
  uint32_t compressed_size = 0;    // 0 unless compressed
  uint64_t uncompressed_size = 0;  // 0 unless compressed
  std::string name;
  std::string options;  // empty: no options record
};

SyntheticEntry raw_entry(std::string payload);
SyntheticEntry lz4_entry(const std::string& payload);
SyntheticEntry zstd_entry(const std::string& payload, bool state_size = true);

// The entry's bytes, header and padded payload.
std::string to_bytes(const SyntheticEntry& entry);
std::string fatbin_of(const std::vector<SyntheticEntry>& entries);

// Finished machine code that launches kernels, as far as its headers and its symbols go. `content` tells it
// from others.
std::string minimal_machine_code(const std::string& content = "code");

// Overwrites a number inside bytes.
template <class T>
void poke(std::string& bytes, size_t offset, T value) {
  bytes.replace(offset, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
}

Fatbin parse(std::string_view bytes);

// The text of the error that calling `act` throws, or an empty string. Anything but Error(Container) fails
// the test.
template <class Act>
std::string container_error(Act act) {
  try {
    act();
  } catch (const Error& e) {
    return e.code() == ErrorCode::Container ? e.what() : std::string("other code: ") + e.what();
  }
  return {};
}

// A wrapper as the driver gets it.
struct Wrapper {
  uint32_t magic = 0x466243B1;
  uint32_t version = 1;
  const void* fatbin = nullptr;
  const void* second = nullptr;
};

std::string fixture(const std::string& name);

// The most memory this process has had so far.
long peak_memory_kb();

}  // namespace klap::container
