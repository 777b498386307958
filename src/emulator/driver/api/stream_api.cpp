// Streams.
#include <utility>

#include "emulator/driver/context.h"
#include "emulator/driver/process.h"
#include "emulator/driver/streams/begin_work.h"
#include "emulator/driver/streams/capture.h"
#include "emulator/driver/streams/stream.h"

using namespace klap::emulator;
using namespace klap::emulator::driver;

namespace {

void create(Process& process, CUstream* stream, unsigned flags, int priority) {
  require(stream != nullptr && (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) == 0);
  CUctx_st& context = working(process);
  *stream = process.streams.make();
  CUstream_st& made = **stream;
  made.id = ++process.last_id;
  made.context = &context;
  made.stream = context.machine->create_stream((flags & CU_STREAM_NON_BLOCKING) != 0
                                                   ? klap::emulator::StreamFlags::NonBlocking
                                                   : klap::emulator::StreamFlags::Default);
  made.flags = flags;
  made.priority = priority;
}

// Work that is in it is still done.
void destroy(Process& process, CUstream stream) {
  require(process.streams.knows(stream), CUDA_ERROR_INVALID_HANDLE);
  require(!stream->is_default, CUDA_ERROR_INVALID_HANDLE);
  if (stream->capture) stream->capture->is_valid = false;
  stream->context->machine->destroy_stream(stream->stream);
  process.streams.destroy(stream);
}

}  // namespace

KLAP_DRIVER_API cuStreamCreate(CUstream* stream, unsigned flags) {
  return call("cuStreamCreate", [&](Process& process) { create(process, stream, flags, 0); });
}

// The device has one priority; others are moved into the range, as in the driver.
KLAP_DRIVER_API cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  return call("cuStreamCreateWithPriority", [&](Process& process) { create(process, stream, flags, 0); });
}

KLAP_DRIVER_API cuStreamDestroy_v2(CUstream stream) {
  return call("cuStreamDestroy", [&](Process& process) { destroy(process, stream); });
}

KLAP_DRIVER_API cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }

KLAP_DRIVER_API cuStreamGetPriority(CUstream stream, int* priority) {
  return call("cuStreamGetPriority", [&](Process& process) {
    require(priority != nullptr);
    *priority = resolve(process, stream).priority;
  });
}

KLAP_DRIVER_API cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return call("cuStreamGetFlags", [&](Process& process) {
    require(flags != nullptr);
    *flags = resolve(process, stream).flags;
  });
}

KLAP_DRIVER_API cuStreamGetId(CUstream stream, unsigned long long* id) {
  return call("cuStreamGetId", [&](Process& process) {
    require(id != nullptr);
    *id = resolve(process, stream).id;
  });
}

KLAP_DRIVER_API cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return call("cuStreamGetCtx", [&](Process& process) {
    require(context != nullptr);
    *context = resolve(process, stream).context;
  });
}

KLAP_DRIVER_API cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(stream, context);
}

// There are no green contexts.
KLAP_DRIVER_API cuStreamGetGreenCtx(CUstream stream, CUgreenCtx* green) {
  return call("cuStreamGetGreenCtx", [&](Process& process) {
    require(green != nullptr);
    resolve(process, stream);
    *green = nullptr;
  });
}

KLAP_DRIVER_API cuStreamGetDevice(CUstream stream, CUdevice* device) {
  return call("cuStreamGetDevice", [&](Process& process) {
    require(device != nullptr);
    *device = resolve(process, stream).context->device;
  });
}

KLAP_DRIVER_API cuStreamQuery(CUstream stream) {
  return call("cuStreamQuery", [&](Process& process) {
    CUstream_st& asked = resolve(process, stream);
    forbid_capture(asked);
    forbid_implicit_capture(process, asked);
    forbid_unsafe_call(process);
    require(asked.context->machine->is_complete(asked.stream), CUDA_ERROR_NOT_READY);
    asked.context->after_synchronising(asked.context->machine->error_code());
  });
}

KLAP_DRIVER_API cuStreamSynchronize(CUstream stream) {
  return call("cuStreamSynchronize",
              [&](Process& process) { synchronise(process, resolve(process, stream)); });
}

KLAP_DRIVER_API cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return call("cuStreamWaitEvent", [&](Process& process) {
    require(process.events.knows(event), CUDA_ERROR_INVALID_HANDLE);
    wait_event(process, resolve(process, stream), *event);
  });
}

KLAP_DRIVER_API cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return call("cuLaunchHostFunc", [&](Process& process) {
    require(function != nullptr);
    submit(process, resolve(process, stream), HostCall{function, data});
  });
}

KLAP_DRIVER_API cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned flags) {
  return call("cuStreamAddCallback", [&](Process& process) {
    require(callback != nullptr && flags == 0);
    CUstream_st& in = resolve(process, stream);
    forbid_capture(in);
    forbid_implicit_capture(process, in);
    in.context->require_alive();
    in.context->machine->enqueue(in.stream,
                                 [=] { call_host_function([&] { callback(stream, CUDA_SUCCESS, data); }); });
  });
}

KLAP_DRIVER_API cuStreamSetAttribute(CUstream stream, CUstreamAttrID which, const CUstreamAttrValue* value) {
  return call("cuStreamSetAttribute", [&](Process& process) {
    require(value != nullptr);
    resolve(process, stream).attributes[which] = *value;
  });
}

KLAP_DRIVER_API cuStreamGetAttribute(CUstream stream, CUstreamAttrID which, CUstreamAttrValue* value) {
  return call("cuStreamGetAttribute", [&](Process& process) {
    require(value != nullptr);
    CUstream_st& asked = resolve(process, stream);
    const auto found = asked.attributes.find(which);
    *value = found == asked.attributes.end() ? CUstreamAttrValue{} : found->second;
  });
}

KLAP_DRIVER_API cuStreamCopyAttributes(CUstream to, CUstream from) {
  return call("cuStreamCopyAttributes",
              [&](Process& process) { resolve(process, to).attributes = resolve(process, from).attributes; });
}
