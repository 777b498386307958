// The dialect of PTX that a module is written in: the version of the language and the target architecture.
//
// A target's suffix says which devices its code runs on. Plain sm_90 runs on 9.0 and everything later.
// sm_100f uses features that only the family has: it runs on 10.0 and later members of 10.x. sm_90a runs on
// 9.0 alone. Each narrower form may use all that the wider one may.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ptx/tree.h"

namespace klap::ptx {

struct Version {
  uint32_t major = 0, minor = 0;
  auto operator<=>(const Version&) const = default;
};

struct Target {
  uint32_t arch = 0;   // 90 for sm_90
  char suffix = '\0';  // 'a', 'f' or 0
  bool operator==(const Target&) const = default;
};

struct Dialect {
  Version version;
  Target target;
  bool operator==(const Dialect&) const = default;
};

// "9.0", "sm_90a"; nothing for anything else.
std::optional<Version> parse_version(std::string_view text);
std::optional<Target> parse_target(std::string_view text);
std::string to_string(const Version& version);
std::string to_string(const Target& target);

// The token of the .target directive, for messages; the text's first where there is none.
uint32_t target_directive(const Module& module);

// Throws Error(Unsupported) with the place of the directive if its directives have another form.
Dialect dialect_of(const Module& module);

// Whether code for `target` runs on a device of compute capability `sm` (90 for 9.0).
bool runs_on(const Target& target, uint32_t sm);

// The widest dialect in which code of both can stand. Nothing where no device runs both, as with sm_90a and
// sm_100.
std::optional<Dialect> merged(const Dialect& a, const Dialect& b);

// Threads of a warp may be at different places from sm_70 on, and code for earlier targets may rely on the
// contrary. So a change of target across this line changes the meaning of code.
bool runs_in_lockstep(const Target& target);

}  // namespace klap::ptx
