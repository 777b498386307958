// This file describes an access to memory as the memory model sees it: how strong it is, how far it reaches,
// and where its instruction stands in the code. Decoded instructions use it as well (decode/code.h).
#pragma once

#include <cstdint>
#include <string>

namespace klap::emulator {

enum class Semantics : uint8_t { Weak, NonCoherent, Volatile, Relaxed, Acquire, Release, AcquireRelease };
enum class Scope : uint8_t { Cta, Cluster, Gpu, Sys };

// A function of a linked program, as messages name it.
struct FunctionName {
  std::string name;
  std::string unit;  // its module's name
};

// Describes one access, for messages. The function must live until the next synchronise_all().
struct Place {
  const FunctionName* function = nullptr;
  uint32_t line = 0;
};

struct AccessKind {
  Semantics semantics = Semantics::Weak;
  Scope scope = Scope::Sys;
  bool is_atomic = false;  // atom and red
};

}  // namespace klap::emulator
