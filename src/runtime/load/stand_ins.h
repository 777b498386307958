// Stand-ins for code that linkers refuse because its kernels wait for their children.
//
// Version 1 of dynamic parallelism is refused for devices of compute capability 9.0 and later: by the
// driver's linker with error 225, by nvJitLink with one of ptxas. klap_jit rewrites such code, but a
// program's link is only known when its result is loaded (program_links.h). So the link goes on with a
// stand-in for that input: the same functions and variables, without code. The result is never loaded. The
// module is made from what the program gave, and if it cannot be, the load fails as the link would have.
//
// The result may also end up where nobody knows what it was made from. Then klap_jit refuses to load it, and
// without klap_jit each of the kernels traps. A variable in the machine code tells it from others. Its name
// has the hash of the code that is missing, so different code has different results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/links/program_links.h"

namespace klap::runtime {

struct LinkPiece {
  enum class Kind : uint8_t { Ptx, Cubin, Fatbin };
  Kind kind = Kind::Ptx;
  std::string name, bytes;
};

// True if the code that a device of compute capability `sm` gets of an input may wait in version 1. Throws
// Error(Container).
bool may_wait(const AddedCode& code, uint32_t sm);

// The input in pieces, with stand-ins for those that wait. `options` are those of the link. Throws
// Error(Unsupported) if klap_jit cannot rewrite one of them, which says why, and Error(Parse).
std::vector<LinkPiece> with_stand_ins(const AddedCode& code, const std::string& options, uint32_t sm);

// Part of a name in each of them.
inline constexpr std::string_view kStandInMark = "__klap_stand_in_";
bool holds_stand_in(std::string_view machine_code);

// One of the program's links, and how its linker takes code.
struct CalledLinker {
  ProgramLinks::Handle link = nullptr;
  const char* entry_point = "";
  // Whether it refuses the code in question, in a link of its own for that target.
  std::function<bool(const std::string& target)> refuses;
  std::function<int(const LinkPiece&)> add;  // returns the linker's result, 0 for success
};

// Adds a stand-in if the linker refuses the code, and keeps the code as the link's input. Returns the result
// of the program's call; nothing if that is to be made as it is. Throws as with_stand_ins() does.
std::optional<int> add_stand_in(const CalledLinker& linker, const AddedCode& code);

}  // namespace klap::runtime
