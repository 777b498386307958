// The parameters of a launch with some more behind them: the queues of the variant, the slice of the grid
// that it is launched for, and the rows and layers that the program asked for.
//
// The driver takes parameters in two forms, an array of pointers (`kernelParams`) or one packed buffer
// (`extra`). Both are extended in a copy; the program's own arrays are never written to.
#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "jit/data/variant.h"
#include "runtime/launch_reasons.h"

namespace klap::runtime {

class ExtendedParams {
 public:
  // Null on success, otherwise the reason why this launch must run the original. `queues` are the values of
  // the added parameters.
  MaybeReason extend(const jit::Variant& variant, void** params, void** extra, std::span<CUdeviceptr> queues);

  // Sets the parameters for the next launch: the queues that there are now, and the slice and the extents if
  // the variant takes them (Variant::in_slices, takes_extents()).
  void begin_part(const jit::GridSlice& slice, const jit::ProgramExtents& extents);

  // The two forms to hand to the launch; one of them is null.
  [[nodiscard]] void** params() { return pointers_; }
  [[nodiscard]] void** extra() { return pointers_ ? nullptr : extra_.data(); }

 private:
  MaybeReason extend_array(const jit::Variant& variant, void** params);
  MaybeReason extend_buffer(const jit::Variant& variant, void** extra);

  // Room for almost every kernel without touching the heap; larger ones get their own.
  std::array<void*, 64> few_pointers_;
  std::array<unsigned char, 512> small_buffer_;
  std::unique_ptr<void*[]> many_pointers_;
  std::unique_ptr<unsigned char[]> large_buffer_;

  std::span<CUdeviceptr> queues_;
  jit::GridSlice slice_;
  jit::ProgramExtents extents_;
  unsigned char* queues_in_buffer_ = nullptr;  // null: the parameters are an array
  unsigned char* slice_in_buffer_ = nullptr;   // null: there is none; likewise
  unsigned char* extents_in_buffer_ = nullptr;
  void** pointers_ = nullptr;
  size_t buffer_bytes_ = 0;
  std::array<void*, 5> extra_{};
};

}  // namespace klap::runtime
