#include "runtime/launch/thread_streams.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/process.h"
#include "runtime/queues/launch_context.h"
#include "support/boundary.h"

namespace klap::runtime {

namespace {

class StreamsOfThread {
 public:
  ~StreamsOfThread() {
    contain("end of a thread", "its queues are kept", [this] { release(); });
  }

  void add(uint64_t context_id, uint64_t stream_id) {
    const std::pair stream(context_id, stream_id);
    if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
  }

 private:
  void release() const {
    if (!active()) return;  // a forked child: other threads' locks may be taken for ever
    for (const auto& [context_id, stream_id] : streams_) {
      if (const auto context = LaunchContexts::instance().remove(context_id, stream_id)) {
        context->release_after_last_use();
      }
    }
  }

  std::vector<std::pair<uint64_t, uint64_t>> streams_;
};

bool is_main_thread() {
  static thread_local const bool is_main = gettid() == getpid();
  return is_main;
}

}  // namespace

bool is_ending_thread_stream(CUstream stream) { return stream == CU_STREAM_PER_THREAD && !is_main_thread(); }

void release_at_thread_end(uint64_t context_id, uint64_t stream_id) {
  static thread_local StreamsOfThread streams;
  streams.add(context_id, stream_id);
}

}  // namespace klap::runtime
