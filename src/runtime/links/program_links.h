// Code that a program links itself, by the driver's linker or by nvJitLink (link_calls.h).
//
// The result of a link is machine code, of which nothing can be rewritten. So what the program adds to a link
// is copied, and kept until its result is loaded. The module is then made from these inputs, as if they were
// the units of one image. A copy of the result in the program's own memory is the same result.
//
// Only links whose result launches kernels from the device are kept behind their end. The oldest of them are
// forgotten when all together are too large. Then the result is loaded as it is, as are links of which an
// input is not understood.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "container/image.h"
#include "jit/data/unit.h"

namespace klap::runtime {

// PTX; another kind of code, told by its first bytes; or code for link-time optimisation, which nvJitLink can
// compile to PTX.
enum class CodeKind : uint8_t { Ptx, Binary, LtoIr };

struct AddedCode {
  CodeKind kind = CodeKind::Ptx;
  std::string name;      // for messages
  std::string bytes;     // PTX without the NUL that ends it
  std::string options;   // of PTX, as ptxas options
  std::string ptx = {};  // of machine code, where it is known (compiled_code.h)
};

struct ProgramLink {
  std::vector<AddedCode> inputs;
  std::vector<std::string> lto_options;  // of nvJitLink, for code for link-time optimisation
  std::string problem;                   // why it is not understood; empty if it is
  [[nodiscard]] size_t bytes() const;
};

// Calls `visit` with each image in the bytes of an input that is not PTX, of archives with those of all
// members, and with its name. An image is valid during the call. Throws Error(Container).
void for_each_image(const std::string& bytes, const std::string& name,
                    const std::function<void(const container::FileImage&, const std::string&)>& visit);

// The link's inputs as units, for a device of compute capability `sm`. All code for link-time optimisation
// becomes one unit. Throws Error(Unsupported) for a link that is not understood, Error(Container), and
// Error(Link) where that code cannot be compiled.
jit::Program program_from(const ProgramLink& link, uint32_t sm);

class ProgramLinks {
 public:
  static ProgramLinks& instance();

  // Each call says that the program did that with a link of this handle.
  using Handle = const void*;
  // `ptxas_options` are for all PTX of the link. `target` is the device that the program names, as the linker
  // spells it, and empty if it names none.
  void begin(Handle link, std::string ptxas_options, std::vector<std::string> lto_options = {},
             std::string target = "");
  struct Options {
    std::string ptxas, target;
  };
  // Nothing if the link is not known or not understood.
  std::optional<Options> options_of(Handle link);
  void add(Handle link, AddedCode code);
  void spoil(Handle link, const std::string& problem);
  // The result launches kernels. Returns the link that is kept for it, null if it is not known.
  std::shared_ptr<const ProgramLink> complete(Handle link, std::string_view machine_code);
  void end(Handle link);

  // True if no result is kept.
  [[nodiscard]] bool none() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
  // The link whose result this machine code is; null if there is none.
  std::shared_ptr<const ProgramLink> link_of(std::string_view machine_code);

 private:
  struct OpenLink {
    Options options;
    ProgramLink link;
  };
  struct Result {
    size_t bytes = 0;  // of the machine code
    std::array<uint64_t, 2> hash{};
    std::shared_ptr<const ProgramLink> link;
  };

  void keep(Result result);  // the caller holds the mutex

  std::mutex mutex_;
  std::map<Handle, OpenLink> open_;
  std::deque<Result> results_;  // the oldest first
  std::atomic<size_t> count_{0};
};

}  // namespace klap::runtime
