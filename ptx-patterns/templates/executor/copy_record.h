// In place of the program's calls that copy or fill memory: a launch of the executor's own kernel
// (copies.h). executor_record.cu includes this.
//
// The codes are those that an H100 returns with driver 580. Nothing is checked if there are no bytes. CUDA
// launches a kernel for such a call as well, and tells no more of its failure than that it did not work. That
// holds for a stream that does not exist, and is taken for a launch that is pending too much.
//
// Constants: KLAP_COPIES, the number of that kernel.
#ifndef KLAP_COPY_RECORD_H
#define KLAP_COPY_RECORD_H

#include "executor/copy_arguments.h"

enum : unsigned int { kInvalidPitch = 12, kInvalidDirection = 21, kUnknown = 999 };  // of cudaError_t

// CUDA copies only memory that all threads have.
static __device__ __forceinline__ bool is_device_address(unsigned long long address) {
  const void* const pointer = reinterpret_cast<const void*>(address);
  return address != 0 && !__isShared(pointer) && !__isLocal(pointer);
}

// True if the rows lie one behind the other on both sides.
static __device__ __forceinline__ bool is_one_row(const KlapCopy& copy) {
  const bool one_to = copy.to_pitch == copy.width;
  const bool one_from = copy.does == KLAP_DOES_FILL || copy.from_pitch == copy.width;
  return copy.height == 1 || (copy.slice_rows == 0 && one_to && one_from);
}

static __device__ __forceinline__ unsigned long long blocks_of(const KlapCopy& copy) {
  if (copy.height == 1) return (copy.width - 1) / KLAP_COPY_BYTES + 1;
  const unsigned long long rows = copy.width > KLAP_COPY_BYTES ? 1 : KLAP_COPY_BYTES / copy.width;
  return (copy.height - 1) / rows + 1;
}

// Launches the copy, which is not empty and has pitches that CUDA takes.
static __device__ __forceinline__ KlapGridQueued launch_copy(const Place& place, KlapCopy copy,
                                                             unsigned long long last, unsigned int stream,
                                                             unsigned long long handle) {
  if (!is_device_address(copy.to) || (copy.does == KLAP_DOES_COPY && !is_device_address(copy.from)))
    return {last, kInvalidValue};
  if (is_one_row(copy)) {
    copy.width *= copy.height;
    copy.height = 1;
  }
  const unsigned long long blocks = blocks_of(copy);
  if (stream == KLAP_STREAM_INVALID || blocks > 0x7fffffffu) return {last, kUnknown};
  const unsigned int link = find_record(place);
  if (link == 0) return {last, kUnknown};
  const unsigned long long item = fill_header(place, link, dim3(static_cast<unsigned int>(blocks), 1, 1),
                                              dim3(1, 1, 1), KLAP_COPIES, stream);
  *reinterpret_cast<KlapCopy*>(reinterpret_cast<unsigned char*>(place.at(link)) + KLAP_ARGS_OFFSET) = copy;
  return {publish(place, item, last, stream, handle), kSuccess};
}

// `kind` is that of cudaMemcpyKind: from device to device, or as the addresses say.
extern "C" __device__ KlapGridQueued __klap_grid_copy(KlapWorkQueue* queue, unsigned long long self,
                                                      KlapGridBlock* block, unsigned long long last,
                                                      unsigned int of_stream, unsigned long long handle,
                                                      unsigned int null_stream, unsigned long long to,
                                                      unsigned long long to_pitch, unsigned long long from,
                                                      unsigned long long from_pitch, unsigned long long width,
                                                      unsigned long long height, unsigned int kind) {
  if (width == 0 || height == 0) return {last, kSuccess};
  if (kind != 3 && kind != 4) return {last, kInvalidDirection};
  if (height > 1 && (to_pitch < width || from_pitch < width)) return {last, kInvalidPitch};
  const Place place(queue, self, block);
  return launch_copy(place, {to, to_pitch, from, from_pitch, width, height, KLAP_DOES_COPY, 0}, last,
                     resolve(place, of_stream, handle, null_stream), handle);
}

extern "C" __device__ KlapGridQueued __klap_grid_fill(KlapWorkQueue* queue, unsigned long long self,
                                                      KlapGridBlock* block, unsigned long long last,
                                                      unsigned int of_stream, unsigned long long handle,
                                                      unsigned int null_stream, unsigned long long to,
                                                      unsigned long long to_pitch, unsigned long long width,
                                                      unsigned long long height, unsigned int value) {
  if (width == 0 || height == 0) return {last, kSuccess};
  if (height > 1 && to_pitch < width) return {last, kInvalidValue};
  const Place place(queue, self, block);
  return launch_copy(place, {to, to_pitch, 0, 0, width, height, KLAP_DOES_FILL, value & 0xffu}, last,
                     resolve(place, of_stream, handle, null_stream), handle);
}

// Makes a copy or a fill of slices. `to_rows` and `from_rows` are the rows from one slice to the next.
static __device__ __forceinline__ void set_slices(KlapCopy& copy, unsigned long long depth,
                                                  unsigned long long to_rows, unsigned long long from_rows) {
  const bool is_even = depth == 1 || (to_rows == copy.height && from_rows == copy.height);
  copy.slice_rows = is_even ? 0 : copy.height;
  copy.to_slice = is_even ? 0 : copy.to_pitch * to_rows;
  copy.from_slice = is_even ? 0 : copy.from_pitch * from_rows;
  copy.height *= depth;
}

// cudaPitchedPtr, cudaExtent or cudaPos, and cudaMemcpy3DParms (driver_types.h).
struct KlapPitchedPointer {
  unsigned long long pointer, pitch, width, height;
};
struct KlapExtent {
  unsigned long long width, height, depth;
};
struct KlapCopyOfSlices {
  unsigned long long from_array;
  KlapExtent from_position;
  KlapPitchedPointer from;
  unsigned long long to_array;
  KlapExtent to_position;
  KlapPitchedPointer to;
  KlapExtent extent;
  unsigned int kind;
};

static __device__ __forceinline__ unsigned long long begin_of(const KlapPitchedPointer& from,
                                                              const KlapExtent& position) {
  return from.pointer + position.width + from.pitch * (position.height + from.height * position.depth);
}

// The device runtime copies no arrays.
extern "C" __device__ KlapGridQueued __klap_grid_copy_slices(KlapWorkQueue* queue, unsigned long long self,
                                                             KlapGridBlock* block, unsigned long long last,
                                                             unsigned int of_stream,
                                                             unsigned long long handle,
                                                             unsigned int null_stream,
                                                             const KlapCopyOfSlices* call) {
  if (call == nullptr || call->from_array != 0 || call->to_array != 0) return {last, kInvalidValue};
  const KlapExtent extent = call->extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return {last, kSuccess};
  if (call->kind != 3 && call->kind != 4) return {last, kInvalidDirection};
  const KlapPitchedPointer to = call->to, from = call->from;
  const unsigned long long to_begin = begin_of(to, call->to_position),
                           from_begin = begin_of(from, call->from_position);
  if (to_begin == 0 || from_begin == 0) return {last, kInvalidValue};
  const bool has_rows = extent.height > 1 || extent.depth > 1;
  if (has_rows && (to.pitch < extent.width || from.pitch < extent.width)) return {last, kInvalidPitch};
  if (extent.depth > 1 && (to.height < extent.height || from.height < extent.height))
    return {last, kInvalidPitch};
  const Place place(queue, self, block);
  KlapCopy copy = {to_begin, to.pitch, from_begin, from.pitch, extent.width, extent.height, KLAP_DOES_COPY};
  set_slices(copy, extent.depth, to.height, from.height);
  return launch_copy(place, copy, last, resolve(place, of_stream, handle, null_stream), handle);
}

// `slice_rows` is the height of the program's pitched pointer.
extern "C" __device__ KlapGridQueued __klap_grid_fill_slices(
    KlapWorkQueue* queue, unsigned long long self, KlapGridBlock* block, unsigned long long last,
    unsigned int of_stream, unsigned long long handle, unsigned int null_stream, unsigned long long to,
    unsigned long long to_pitch, unsigned long long slice_rows, unsigned long long width,
    unsigned long long height, unsigned long long depth, unsigned int value) {
  if (width == 0 || height == 0 || depth == 0) return {last, kSuccess};
  if ((height > 1 || depth > 1) && to_pitch < width) return {last, kInvalidValue};
  if (depth > 1 && slice_rows < height) return {last, kInvalidValue};
  const Place place(queue, self, block);
  KlapCopy copy = {to, to_pitch, 0, 0, width, height, KLAP_DOES_FILL, value & 0xffu};
  set_slices(copy, depth, slice_rows, height);
  return launch_copy(place, copy, last, resolve(place, of_stream, handle, null_stream), handle);
}

#endif
