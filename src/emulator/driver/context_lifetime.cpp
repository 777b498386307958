#include "emulator/driver/context_lifetime.h"

#include "emulator/driver/context.h"
#include "emulator/driver/images/module.h"
#include "emulator/driver/streams/graph.h"
#include "emulator/driver/streams/stream_objects.h"

namespace klap::emulator::driver {

CUcontext make_context(Process& process, int device, unsigned flags, bool is_primary) {
  CUcontext const context =
      process.contexts.make(++process.last_id, device, flags, is_primary, process.settings);
  CUstream const legacy = process.streams.make();
  legacy->id = ++process.last_id;
  legacy->context = context;
  legacy->stream = kLegacyStream;
  legacy->is_default = true;
  context->legacy_stream = legacy;
  return context;
}

namespace {

void add_counts(Totals& totals, const CUctx_st& context) {
  const DeviceLaunchCounts& counts = context.machine->counts();
  totals.launches.device_launches += counts.device_launches;
  totals.launches.refused += counts.refused;
  totals.launches.over_limit += counts.over_limit;
  totals.launches.host_launches += counts.host_launches;
  totals.steps += context.machine->executor().steps();
  totals.heap_allocations += context.machine->heap_allocations();
  totals.heap_kept += context.machine->heap_used();
}

}  // namespace

void destroy_context(Process& process, CUcontext context) {
  context->machine->synchronise_all();
  add_counts(process.gone, *context);
  const auto is_in = [&](const auto& object) { return object.context == context; };
  process.functions.destroy_if([&](const CUfunc_st& f) { return f.module->context == context; });
  process.modules.destroy_if(is_in);
  process.libraries.for_each([&](CUlib_st& library) { library.modules.erase(context); });
  process.streams.destroy_if(is_in);
  process.events.destroy_if(is_in);
  process.executables.for_each([&](CUgraphExec_st& executable) {
    if (executable.last_context == context) executable.last_context = nullptr;
  });
  process.contexts.destroy(context);
}

Totals totals(Process& process) {
  Totals all = process.gone;
  process.contexts.for_each([&](CUctx_st& context) { add_counts(all, context); });
  return all;
}

}  // namespace klap::emulator::driver
