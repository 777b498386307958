// Images that were linked before and are wanted again. A process that starts the device anew for each of many
// runs loads one module each time, and linking takes as long as a short run.
//
// Decoded code depends on the module's text and on where its variables lie. So an image is used again only if
// that text gets the same addresses. It is never used twice at a time nor twice by one machine: functions are
// told apart by their addresses in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "emulator/decode/code.h"
#include "emulator/memory_model/memory.h"

namespace klap::emulator {

class LoadedBefore {
 public:
  // The images of the calling thread.
  static LoadedBefore& images();

  // The image, with its variables in `memory` as they are after linking; null if it must be linked. `text` is
  // all that is linked, `machine` a number that no other machine has or had.
  std::shared_ptr<const Image> find(const std::string& text, uint64_t machine, Memory& memory);
  // To be called right after linking.
  void keep(std::string text, uint64_t machine, const Memory& memory, std::shared_ptr<const Image> image);

  [[nodiscard]] uint64_t found() const { return found_; }

 private:
  struct Known {
    std::string text;
    uint64_t machine = 0, range_begin = 0;
    std::shared_ptr<const Image> image;
    std::vector<std::vector<std::byte>> values;  // of its variables; empty for zeros
  };
  static bool place(const Known& known, Memory& memory);

  std::list<Known> known_;  // the latest first
  uint64_t found_ = 0;
};

}  // namespace klap::emulator
