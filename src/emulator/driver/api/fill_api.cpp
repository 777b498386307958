// Setting memory. The forms without Async are not waited for either, as with the real driver.
#include "emulator/driver/context.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/capture.h"
#include "emulator/driver/streams/stream.h"

using namespace klap::emulator::driver;

namespace {

void enqueue(Process& process, const Fill& fill, CUstream stream) {
  validate(process, fill);
  submit(process, resolve(process, stream), fill);
}

void fill_now(Process& process, const Fill& fill) {
  working(process);
  forbid_capture(resolve(process, CUstream{}));
  enqueue(process, fill, nullptr);
}

Fill row(CUdeviceptr to, uint32_t value, uint32_t element_bytes, size_t count) {
  return {.to = to, .value = value, .element_bytes = element_bytes, .width = count};
}

}  // namespace

KLAP_DRIVER_API cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return call("cuMemsetD8", [&](Process& process) { fill_now(process, row(to, value, 1, count)); });
}

KLAP_DRIVER_API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return call("cuMemsetD8Async",
              [&](Process& process) { enqueue(process, row(to, value, 1, count), stream); });
}

KLAP_DRIVER_API cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                size_t height) {
  return call("cuMemsetD2D8", [&](Process& process) {
    fill_now(process, {to, value, 1, width, height, pitch});
  });
}

KLAP_DRIVER_API cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                                  size_t height, CUstream stream) {
  return call("cuMemsetD2D8Async", [&](Process& process) {
    enqueue(process, {to, value, 1, width, height, pitch}, stream);
  });
}

KLAP_DRIVER_API cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return call("cuMemsetD16", [&](Process& process) { fill_now(process, row(to, value, 2, count)); });
}

KLAP_DRIVER_API cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return call("cuMemsetD16Async",
              [&](Process& process) { enqueue(process, row(to, value, 2, count), stream); });
}

KLAP_DRIVER_API cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                 size_t height) {
  return call("cuMemsetD2D16", [&](Process& process) {
    fill_now(process, {to, value, 2, width, height, pitch});
  });
}

KLAP_DRIVER_API cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                                   size_t height, CUstream stream) {
  return call("cuMemsetD2D16Async", [&](Process& process) {
    enqueue(process, {to, value, 2, width, height, pitch}, stream);
  });
}

KLAP_DRIVER_API cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  return call("cuMemsetD32", [&](Process& process) { fill_now(process, row(to, value, 4, count)); });
}

KLAP_DRIVER_API cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  return call("cuMemsetD32Async",
              [&](Process& process) { enqueue(process, row(to, value, 4, count), stream); });
}

KLAP_DRIVER_API cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height) {
  return call("cuMemsetD2D32", [&](Process& process) {
    fill_now(process, {to, value, 4, width, height, pitch});
  });
}

KLAP_DRIVER_API cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                                   CUstream stream) {
  return call("cuMemsetD2D32Async", [&](Process& process) {
    enqueue(process, {to, value, 4, width, height, pitch}, stream);
  });
}
