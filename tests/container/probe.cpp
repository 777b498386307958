// A shared library around the container layer, as the preload library is one: see LazyBinding in
// compression_test.cpp.
#include <exception>

#include "container/image.h"

// Bytes that the file's fatbin entries unpack to, or -1.
extern "C" __attribute__((visibility("default"))) long klap_probe_unpack(const char* path) {
  try {
    long bytes = 0;
    for (const auto& image : klap::container::open_file(path).images) {
      for (const auto& unit : image.units) {
        for (const auto& entry : unit.entries) bytes += static_cast<long>(entry.payload().size());
      }
    }
    return bytes;
  } catch (const std::exception&) {
    return -1;
  }
}
