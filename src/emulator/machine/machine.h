// A GPU in software: memory, loaded images, streams, and the grids that run in them.
//
// The emulated driver (driver/) and the tests use this. Work is put into streams and done when a caller waits
// for it (or looks), never earlier. So a program that forgets to wait is found out. Not thread-safe: the
// driver holds a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/device_runtime/launch_counts.h"
#include "emulator/executor/executor.h"
#include "emulator/streams/stream_ids.h"

namespace klap::emulator {

struct MachineOptions {
  ExecutorOptions executor;
  uint32_t pending_launches = 2048;  // cudaLimitDevRuntimePendingLaunchCount
  uint64_t heap_bytes = 8 << 20;     // device malloc
  // Receives the output of device code, and each finding of the checks (race, uninitialised read, ...).
  std::function<void(std::string_view text)> print;
  std::function<void(const std::string& finding)> finding;
};

class Machine {
 public:
  explicit Machine(const MachineOptions& options);
  ~Machine();

  Memory& memory();
  Executor& executor();
  // The host reports here the memory that it allocates, frees and writes itself (MemoryModel::allocated,
  // freed, initialised).
  MemoryModel& order();

  // ---- images ----
  struct UnitText {
    std::string name, ptx;
  };
  // Links the units and puts their variables into memory. Throws Error(Parse, Unsupported, Link) with its
  // place.
  std::shared_ptr<const Image> load(const std::vector<UnitText>& units);
  void unload(const std::shared_ptr<const Image>& image);

  // ---- streams ----
  StreamId create_stream(StreamFlags flags);
  // Work that is in it is still done.
  void destroy_stream(StreamId stream);
  // Nonzero: a CUDA error number, and nothing was enqueued: launch_error()'s, 801 for a kernel with something
  // in it that the emulator does not know (error_text() names it), or the machine's sticky error.
  // `dependent`: a programmatic dependent launch. Where the work before it in the stream is a grid, it begins
  // when the blocks of that have exited.
  int launch(StreamId stream, Launch launch, bool dependent = false);
  // Anything else that happens in stream order, on the host's side: copies, sets, host functions.
  void enqueue(StreamId stream, std::function<void()> work);
  EventId create_event();
  void destroy_event(EventId event);
  void record(EventId event, StreamId stream);
  void wait(StreamId stream, EventId event);
  // These do a little of the pending work first, so that polling ends.
  [[nodiscard]] bool is_complete(StreamId stream);
  [[nodiscard]] bool is_event_complete(EventId event);

  // Runs until the stream, the event or everything is done. Returns 0 or the CUDA error number of a failed
  // grid (719 launch failure, 700 illegal address, 702 time-out for a deadlock, ...); after that the machine
  // refuses everything with that number, as a context does after a sticky error. error_text() tells the
  // cause.
  int synchronise(StreamId stream);
  int synchronise_event(EventId event);
  int synchronise_all();
  [[nodiscard]] int error_code() const;  // the sticky one; 0 while all is well
  [[nodiscard]] const std::string& error_text() const;

  [[nodiscard]] const DeviceLaunchCounts& counts() const;
  void set_pending_limit(uint32_t launches);
  [[nodiscard]] uint32_t pending_limit() const;
  void set_heap_bytes(uint64_t bytes);
  [[nodiscard]] uint64_t heap_bytes() const;
  [[nodiscard]] uint64_t heap_allocations() const;  // made since the beginning, freed or not
  [[nodiscard]] uint64_t heap_used() const;         // bytes, with a header for each allocation
  // Dynamic shared memory that launches of the kernel may ask for, from the host and from the device
  // (cuFuncSetAttribute). 48 KB less its static shared memory unless told.
  void set_dynamic_shared_limit(const Function& kernel, uint32_t bytes);
  [[nodiscard]] uint32_t dynamic_shared_limit(const Function& kernel) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace klap::emulator
