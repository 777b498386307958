// State of the device runtime that belongs to blocks: streams, events, argument buffers, last errors.
//
// The NULL stream belongs to the block: all launches into it, by whichever threads, run one after another,
// each with all that it launches. Every thread has a stream of its own. Created streams and events belong to
// the block that made them. Only events order one stream with another. Tail launches belong to the grid, and
// fire-and-forget is no stream at all.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "emulator/streams/grid_tree.h"

namespace klap::emulator {

// Streams that have a number instead of a handle.
inline constexpr uint64_t kDeviceNullStream = 0, kDeviceLegacyStream = 1, kDevicePerThreadStream = 2,
                          kDeviceTailLaunch = 3, kDeviceFireAndForget = 4;

struct ArgumentBuffer {
  uint64_t bytes = 0;
  const Function* kernel = nullptr;  // described when the buffer was asked for; null in the documented form
  Dim3 grid{}, block{};
  uint32_t dynamic_shared = 0;
};

struct DeviceThread {
  int last_error = 0;
  OperationRef last;  // of its stream
};

struct DeviceBlock {
  OperationRef last;  // of the NULL stream
  std::unordered_map<uint32_t, DeviceThread> threads;
  std::unordered_map<uint64_t, OperationRef> streams;  // handle -> its last operation
  std::unordered_map<uint64_t, OperationRef> events;   // handle -> what it stands for
  std::unordered_map<uint64_t, ArgumentBuffer> buffers;
  std::vector<OperationRef> launched;  // what a wait for children waits for, tail launches left out
  HistoryRef awaited;                  // the history of those that are finished
};

// A stream as seen by one thread.
struct DeviceStream {
  enum class Kind : uint8_t { Ordered, Tail, FireAndForget } kind = Kind::Ordered;
  OperationRef* last = nullptr;  // Ordered only
};

class DeviceStreams {
 public:
  DeviceStreams(Operations& operations, GridTree& grids) : operations_(operations), grids_(grids) {}

  DeviceBlock& block(uint64_t block) { return blocks_[block]; }
  // Takes the block's state for the last time. The caller must give back the resources that are left in it.
  DeviceBlock take(uint64_t block);
  void clear() { blocks_.clear(); }

  // `own`: stream 0 means the thread's own (the functions with _ptsz). Kind and place of the stream; false if
  // the block has no such stream.
  static bool find(DeviceBlock& block, uint32_t thread, uint64_t handle, bool own, DeviceStream& out);
  void put(const DeviceStream& stream, const OperationRef& operation, GridOperation& launcher);

  uint64_t create_stream(DeviceBlock& block);
  uint64_t create_event(DeviceBlock& block);
  // False if there is no such event, or the stream cannot be used with events.
  static bool record(DeviceBlock& block, uint64_t event, const DeviceStream& stream);
  // True if all that the block has launched is finished.
  static bool has_finished(DeviceBlock& block);
  bool wait(DeviceBlock& block, uint64_t event, const DeviceStream& stream);

 private:
  Operations& operations_;
  GridTree& grids_;
  std::unordered_map<uint64_t, DeviceBlock> blocks_;
  uint64_t next_ = 0;
};

}  // namespace klap::emulator
