// Launch idioms: what a device-side launch looks like in PTX, per toolchain, and what else device code can
// ask of the device runtime. Both are data, read from ptx-patterns/idioms.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace klap::analysis {

// Which of the two calls describes the launch (callee, grid, block, shared memory).
enum class LaunchForm { Described, Documented };

struct Idiom {
  std::string name;
  LaunchForm form = LaunchForm::Described;
  std::string get_buffer;  // described: buffer = f(callee, grid[12], block[12], shared)
                           // documented: buffer = f(alignment, size)
  std::string launch;      // described: error = f(buffer, stream)
                           // documented: error = f(callee, buffer, grid[12], block[12], shared, stream)
  bool stream_zero_is_per_thread = false;
  std::string rewrite_with;  // the described idiom whose functions a rewritten parent calls; may be empty

  // Version 1 of dynamic parallelism, which is recognised but never rewritten itself
  // (jit/plan/newer_version.h).
  [[nodiscard]] bool is_version_1() const { return rewrite_with.empty(); }
};

// A kind of device-runtime function, for a reader and for the checks that treat some kinds specially.
struct RuntimeKind {
  std::string name;  // "copy"
  std::string says;  // "copies memory in a stream", completing "the kernel ..."
};

struct IdiomTable {
  std::vector<Idiom> idioms;
  std::vector<std::string> runtime_prefixes;
  std::map<std::string, RuntimeKind, std::less<>> runtime_kinds;  // by name without prefix and `_ptsz`

  [[nodiscard]] const Idiom* by_name(std::string_view name) const;
  [[nodiscard]] const Idiom* by_launch(std::string_view function) const;
  [[nodiscard]] const Idiom* by_get_buffer(std::string_view function) const;  // the first of several
  [[nodiscard]] bool is_get_buffer(std::string_view function) const {
    return by_get_buffer(function) != nullptr;
  }
  // The kind of a device-runtime function; null if the name is not listed.
  [[nodiscard]] const RuntimeKind* kind(std::string_view function) const;
  [[nodiscard]] bool is_kind(std::string_view function, std::string_view kind_name) const;
  // True for a function that only describes the error it is given.
  [[nodiscard]] bool is_error_text(std::string_view function) const;
  [[nodiscard]] bool is_last_error(std::string_view function) const;       // reads and clears
  [[nodiscard]] bool is_peek_last_error(std::string_view function) const;  // reads
  // Any call into the device runtime, the ones above included.
  [[nodiscard]] bool is_device_runtime(std::string_view function) const;
  // "copies memory in a stream (__cudaCDP2MemcpyAsync)"; of an unlisted function, that it is one.
  [[nodiscard]] std::string describe(std::string_view function) const;
};

// The built-in table, parsed once.
const IdiomTable& idioms();

}  // namespace klap::analysis
