// The device runtime: the functions that a thread can call, as if NVIDIA's library had been linked.
//
// A launch is taken from the thread, checked as CUDA checks it, and put into the stream that the program
// named. Errors are the thread's, as cudaGetLastError tells them. Functions that the machine cannot provide
// throw Error(Unsupported) with their name.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emulator/device_runtime/device_heap.h"
#include "emulator/device_runtime/device_runtime_call.h"
#include "emulator/device_runtime/device_runtime_streams.h"
#include "emulator/device_runtime/launch_counts.h"

namespace klap::emulator {

// The parts of the machine that the runtime needs.
struct RuntimeHost {
  Memory& memory;
  MemoryModel& order;
  Operations& operations;
  GridTree& grids;
  DeviceHeap& heap;
  DeviceLaunchCounts& counts;
  const DeviceShape& device;
  bool ordered = false;  // MemoryModel wants to know of every access
  // The calling thread's memory (Executor::read and write).
  std::function<void(const ThreadCall&, uint64_t address, std::span<std::byte>)> read;
  std::function<void(const ThreadCall&, uint64_t address, std::span<const std::byte>)> write;
  std::function<void(std::string_view)> print;
  // Stops the machine: something that no thread waits for went wrong.
  std::function<void(int code, const std::string& text)> fail;
  // Why a kernel cannot run at all; empty if it can.
  std::function<std::string(const Image&, const Function&)> unsupported;
  std::function<uint32_t(const Function&)> shared_limit;  // static and dynamic
  std::function<uint32_t(const Function&, uint32_t threads, uint32_t dynamic_shared)> occupancy;
};

class DeviceRuntime {
 public:
  explicit DeviceRuntime(RuntimeHost host);
  void call(const ThreadCall& call);
  void block_finished(uint64_t block);
  void clear();

 private:
  // Each returns a cudaError number, which becomes the thread's last error, unless it says otherwise.
  using Call = const ThreadCall&;
  int launch_described(Call call, bool own);
  int launch_documented(Call call, bool own);
  int launch(Call call, Launch launch, uint64_t stream, bool own);
  uint64_t described_buffer(Call call);
  uint64_t documented_buffer(Call call);
  uint64_t make_buffer(Call call, ArgumentBuffer buffer, uint64_t align);
  void release_buffer(uint64_t address, const ArgumentBuffer& buffer);

  void put(Call call, const DeviceStream& stream, const OperationRef& operation);
  void wait_for_children(Call call);

  int create_stream(Call call);
  int destroy_stream(Call call);
  int create_event(Call call);
  int destroy_event(Call call);
  int record_event(Call call, bool own, bool has_flags);
  int wait_event(Call call, bool own);

  int copy(Call call, bool own);
  int copy_2d(Call call, bool own);
  int copy_3d(Call call, bool own);
  int set(Call call, bool own);
  int set_2d(Call call, bool own);
  int set_3d(Call call, bool own);
  int put_copy(Call call, const struct CopyBox& box, uint64_t stream, bool own);

  int runtime_malloc(Call call);
  void heap_free(Call call, uint64_t address);
  void note_free(Call call, uint64_t address);

  int attribute(Call call);
  int limit(Call call);
  int function_attributes(Call call);
  int occupancy(Call call);
  int store_int(Call call, int value);  // to where the first argument points
  uint64_t text_address(std::string_view text);

  int print(Call call);
  [[noreturn]] void fail_assertion(Call call);
  [[noreturn]] static void refuse(Call call);
  [[noreturn]] static void end_grid(Call call, int code, const std::string& text);

  // False if the function is of another group.
  bool call_launch(Call call);
  bool call_stream(Call call);
  bool call_copy(Call call);
  bool call_query(Call call);
  bool call_language(Call call);

  DeviceBlock& block_of(Call call) { return streams_.block(call.block); }
  DeviceThread& thread_of(Call call) { return block_of(call).threads[calling_thread(call)]; }
  void finish(Call call, int error);  // gives the error, and remembers it
  // The function at a code address of the calling grid's image, null if there is none.
  static const Function* function_at(Call call, uint64_t address);
  std::string read_text(Call call, uint64_t address);
  template <typename T>
  T read_value(Call call, uint64_t address) {
    std::byte bytes[sizeof(T)];
    host_.read(call, address, bytes);
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  template <typename T>
  void write_value(Call call, uint64_t address, const T& value) {
    host_.write(call, address, std::as_bytes(std::span(&value, 1)));
  }

  RuntimeHost host_;
  DeviceStreams streams_;
  std::unordered_map<std::string, uint64_t> texts_;  // in device memory
  uint64_t copies_ = 0;
};

}  // namespace klap::emulator
