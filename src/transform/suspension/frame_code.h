// PTX for what a block that stops leaves behind: its frame.
//
// A frame is one piece of device memory. It begins with the block's place in its grid (frame.h). Then follow,
// for each thread, the number of the point where it stands (0 for one that has ended), the block's shared
// variables, and the threads' values in rows of eight bytes a thread, so that the threads of a warp access
// one line.
//
//     KlapFrame | one number a thread | shared variables | rows
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "analysis/suspension/suspension.h"
#include "suspension/frame.h"

namespace klap::transform {

inline constexpr uint32_t kFrameHeaderBytes = KLAP_FRAME_BYTES,
                          kFrameDynamicBytes = offsetof(KlapFrame, dynamic_bytes);

class FrameCode {
 public:
  explicit FrameCode(const analysis::Suspension& suspension);

  // Declares the registers that all this code uses.
  static std::string registers();
  // Fills in the thread's number and the number of threads.
  static std::string threads();
  // Computes where the parts of a frame begin, as offsets, and its size.
  [[nodiscard]] std::string layout() const;
  // Turns these into addresses. %klap_w_frame is the frame's, in global memory.
  static std::string addresses();
  // Copies the shared variables to the frame or back, by all threads of the block.
  [[nodiscard]] std::string shared(bool to_frame) const;
  // Stores the thread's values at the point of that number and its local variables, or loads them.
  [[nodiscard]] std::string values(size_t number, bool to_frame) const;

  // True if the kernel has shared memory whose size the launch decides.
  [[nodiscard]] bool has_dynamic() const { return has_dynamic_; }
  // Bytes that a thread has there, for a reader.
  [[nodiscard]] uint64_t bytes_per_thread() const { return rows_ * kRowBytes; }

 private:
  static constexpr uint64_t kRowBytes = 8;
  [[nodiscard]] std::string local(const analysis::SavedVariable& variable, bool to_frame,
                                  const std::string& label) const;

  const analysis::Suspension& of_;
  uint64_t static_bytes_ = 0;  // of shared variables, each at a multiple of 8
  bool has_dynamic_ = false;
  uint64_t rows_ = 0;
};

}  // namespace klap::transform
