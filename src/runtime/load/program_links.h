// Code that a program links itself, by the driver's linker (cuLink*).
//
// The result of a link is machine code, of which nothing can be rewritten. So what the program adds to a link
// is copied, and kept until its result is loaded. The module is then made from these inputs, as if they were
// the units of one image. A copy of the result in the program's own memory is the same result.
//
// Only links whose code launches kernels from the device are kept behind their end. Of these, the oldest are
// forgotten when all together are too large. Then the result is loaded as it is, as are links of which an
// input is not understood.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "jit/data/unit.h"

namespace klap::runtime {

// PTX; another kind of code, told by its first bytes; or code that is not machine code yet, for the linker's
// own compiler.
enum class CodeKind : uint8_t { Ptx, Binary, LtoIr };

struct AddedCode {
  CodeKind kind = CodeKind::Ptx;
  std::string name;     // for messages
  std::string bytes;    // PTX without the NUL that ends it
  std::string options;  // of PTX, as ptxas options
};

struct ProgramLink {
  std::vector<AddedCode> inputs;
  std::string problem;  // why it is not understood; empty if it is
  [[nodiscard]] size_t bytes() const;
};

// True if code of the link launches kernels from the device. Throws Error(Container) for damaged inputs.
bool launches(const ProgramLink& link);

// The link's inputs as units, for a device of compute capability `sm`. Throws Error(Unsupported) for a link
// that is not understood, and Error(Container).
jit::Program program_from(const ProgramLink& link, uint32_t sm);

class ProgramLinks {
 public:
  static ProgramLinks& instance();

  // Each call says that the program did that with a link of this handle.
  using Handle = const void*;
  // `options` are those for all PTX of the link, as ptxas options.
  void begin(Handle link, std::string options);
  void add(Handle link, AddedCode code);
  void spoil(Handle link, const std::string& problem);
  void complete(Handle link, const void* image, size_t readable_bytes);
  void end(Handle link);

  // True if no result is kept.
  [[nodiscard]] bool none() const noexcept { return count_.load(std::memory_order_acquire) == 0; }
  // The link whose result this machine code is; null if there is none.
  std::shared_ptr<const ProgramLink> link_of(std::string_view machine_code);

 private:
  struct OpenLink {
    std::string options;
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

// The driver's calls, after their success; the last one before it. Options are those of the call.
struct JitOptions;
void link_created(CUlinkState link, const JitOptions& options);
void link_data_added(CUlinkState link, CUjitInputType type, const void* data, size_t bytes, const char* name,
                     const JitOptions& options);
void link_file_added(CUlinkState link, CUjitInputType type, const char* path, const JitOptions& options);
void link_completed(CUlinkState link, const void* image, size_t bytes);
void link_about_to_end(CUlinkState link);

}  // namespace klap::runtime
