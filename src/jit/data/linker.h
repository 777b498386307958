// The linker: nvJitLink, or the one inside the driver if nvJitLink is missing.
//
// The jit layer knows nvJitLink only; the runtime, which has the driver, brings the other one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace klap::jit {

// LtoIr: code in any container that is not machine code yet, for lower_to_ptx() alone.
enum class LinkInputKind { Ptx, Cubin, Library, LtoIr };
struct LinkInput {
  LinkInputKind kind{};
  std::string_view bytes;  // Library: a file name
  std::string name;        // for messages
};

// The name of the linker that is used where nobody brings one.
inline constexpr std::string_view kNvJitLink = "nvjitlink";

class Linker {
 public:
  virtual ~Linker() = default;
  // Links device code to one image. `options` are nvJitLink's: "-arch=sm_90", "-Xptxas=...", "-lineinfo".
  // Throws as link_to_cubin() does.
  [[nodiscard]] virtual std::string link(const std::vector<LinkInput>& inputs,
                                         const std::vector<std::string>& options) const = 0;
  // Whose code comes out, for the keys of caches.
  [[nodiscard]] virtual std::string_view name() const = 0;
};

}  // namespace klap::jit
