// The version of the library, in a section of its own. So a program can tell this library from others, and
// from other versions of it, before it preloads it into a process.
#include "klap/version.h"

namespace {

[[gnu::section(".klap_version"), gnu::used]] constexpr char kLibraryVersion[] = KLAP_VERSION;

}  // namespace
