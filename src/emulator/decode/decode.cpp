#include "emulator/decode/decode.h"

#include <optional>

#include "emulator/decode/decode_function.h"
#include "emulator/decode/layout.h"
#include "emulator/decode/link.h"
#include "ptx/lines.h"
#include "support/error.h"

namespace klap::emulator {
namespace {

void decode_bodies(Linker& linker) {
  const ptx::Module* unit = nullptr;
  std::optional<ptx::LineNumbers> lines;
  for (const Linker::Body& body : linker.bodies()) {
    if (body.unit != unit) {
      unit = body.unit;
      lines.emplace(*unit);
    }
    try {
      FunctionDecoder(linker, *unit, *lines, *body.function, *body.out).run();
    } catch (Error& error) {  // in the declarations; run() sees to the instructions
      if (error.code() != ErrorCode::Unsupported) throw;
      body.out->unsupported = error.kernel(body.out->name).what();
    }
  }
}

}  // namespace

std::shared_ptr<Image> link_image(const std::vector<const ptx::Module*>& units, Memory& memory) {
  Linker linker(units, memory);
  try {
    linker.run();
    decode_bodies(linker);
    complete_kernels(*linker.shared_image());
  } catch (...) {
    linker.free_all();
    throw;
  }
  return linker.shared_image();
}

}  // namespace klap::emulator
