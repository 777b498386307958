#include "runtime/launch/launch_params.h"

#include <algorithm>
#include <cstring>

#include "runtime/program_launch.h"

namespace klap::runtime {

MaybeReason ExtendedParams::extend(const jit::Variant& variant, void** params, void** extra,
                                   std::span<CUdeviceptr> queues) {
  queues_ = queues;
  if (params && extra)
    return &reasons::kBothParameterForms;  // the driver refuses it, and shall say so itself
  if (extra) return extend_buffer(variant, extra);
  if (!params && variant.parent_param_count != 0) return &reasons::kParametersMissing;
  return extend_array(variant, params);
}

MaybeReason ExtendedParams::extend_array(const jit::Variant& variant, void** params) {
  const size_t count = variant.parent_param_count;
  const size_t all = count + queues_.size() + (variant.in_slices ? 1 : 0) + (variant.takes_extents() ? 1 : 0);
  pointers_ = few_pointers_.data();
  if (all > few_pointers_.size()) {
    many_pointers_ = std::make_unique<void*[]>(all);
    pointers_ = many_pointers_.get();
  }
  if (count != 0) std::copy_n(params, count, pointers_);
  size_t added = count;
  for (CUdeviceptr& queue : queues_) pointers_[added++] = &queue;
  if (variant.in_slices) pointers_[added++] = &slice_;
  if (variant.takes_extents()) pointers_[added++] = &extents_;
  return nullptr;
}

void ExtendedParams::begin_part(const jit::GridSlice& slice, const jit::ProgramExtents& extents) {
  slice_ = slice;
  extents_ = extents;
  if (queues_in_buffer_) std::memcpy(queues_in_buffer_, queues_.data(), queues_.size_bytes());
  if (slice_in_buffer_) std::memcpy(slice_in_buffer_, &slice_, sizeof slice_);
  if (extents_in_buffer_) std::memcpy(extents_in_buffer_, &extents_, sizeof extents_);
}

MaybeReason ExtendedParams::extend_buffer(const jit::Variant& variant, void** extra) {
  const auto given = packed_parameters(extra);
  if (!given) return &reasons::kUnknownLaunchOption;
  if (given->size() < variant.parent_param_bytes) return &reasons::kParametersMissing;

  const size_t slice_offset = variant.queue_param_offset + queues_.size_bytes();
  const size_t extents_offset = slice_offset + (variant.in_slices ? sizeof slice_ : 0);
  buffer_bytes_ = extents_offset + (variant.takes_extents() ? sizeof extents_ : 0);
  unsigned char* copy = small_buffer_.data();
  if (buffer_bytes_ > small_buffer_.size()) {
    large_buffer_ = std::make_unique<unsigned char[]>(buffer_bytes_);
    copy = large_buffer_.get();
  }
  std::memset(copy, 0, buffer_bytes_);
  if (variant.parent_param_bytes != 0) std::memcpy(copy, given->data(), variant.parent_param_bytes);
  queues_in_buffer_ = copy + variant.queue_param_offset;
  std::memcpy(queues_in_buffer_, queues_.data(), queues_.size_bytes());
  if (variant.in_slices) slice_in_buffer_ = copy + slice_offset;
  if (variant.takes_extents()) extents_in_buffer_ = copy + extents_offset;

  extra_ = {CU_LAUNCH_PARAM_BUFFER_POINTER, copy, CU_LAUNCH_PARAM_BUFFER_SIZE, &buffer_bytes_,
            CU_LAUNCH_PARAM_END};
  return nullptr;
}

}  // namespace klap::runtime
