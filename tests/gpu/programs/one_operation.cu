// A launch is one operation of its stream, however many children it has. One host thread launches parents;
// others enqueue copies, fills, kernels, events and callbacks in the same stream, or in the legacy stream
// beside it. A parent counts itself, and its children count themselves: whoever comes between would see more
// of the one than of the other.
//
// Arguments: launches in each part, 3,000 by default, and threads beside the launching one, where there may
// be several.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "program.h"

constexpr int kChildren = 8;
int launches = 3000, threads_beside = 0;

struct Counts {
  int parents, children;
};

__global__ void count_child(int* children) {
  if (threadIdx.x == 0) atomicAdd(children, 1);
}

__global__ void parent(Counts* counts) {
  if (threadIdx.x == 0) atomicAdd(&counts->parents, 1);
  if (threadIdx.x < kChildren) count_child<<<1, 32>>>(&counts->children);
}

__global__ void look(const Counts* counts, int* torn) {
  if (counts->children != kChildren * counts->parents) atomicAdd(torn, 1);
}

bool is_whole(const Counts& counts) { return counts.children == kChildren * counts.parents; }

struct Shared {
  cudaStream_t stream;
  Counts* counts;
  int* seen_torn;  // on the device
  std::atomic<int> launched{0};
  std::atomic<int> torn{0};
  std::atomic<long long> looks{0};
  std::atomic<bool> is_over{false};
};

void launch_parents(Shared& shared) {
  for (int i = 0; i < launches; ++i) {
    parent<<<1, 64, 0, shared.stream>>>(shared.counts);
    ++shared.launched;
    // The host runs ahead of the device, but not by more than its queue takes.
    if (i % 256 == 255) gpu::check(cudaStreamSynchronize(shared.stream), "cudaStreamSynchronize");
  }
  gpu::check(cudaGetLastError(), "launching parents");
}

using Enqueue = void (*)(Shared&, cudaStream_t, Counts* host);

void copy(Shared& shared, cudaStream_t stream, Counts* host) {
  gpu::check(cudaMemcpyAsync(host, shared.counts, sizeof *host, cudaMemcpyDeviceToHost, stream), "copying");
  gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  if (!is_whole(*host)) ++shared.torn;
}

void copy_and_wait(Shared& shared, cudaStream_t, Counts* host) {
  gpu::check(cudaMemcpy(host, shared.counts, sizeof *host, cudaMemcpyDeviceToHost), "copying");
  if (!is_whole(*host)) ++shared.torn;
}

void run_kernel(Shared& shared, cudaStream_t stream, Counts*) {
  look<<<1, 1, 0, stream>>>(shared.counts, shared.seen_torn);
  gpu::check(cudaGetLastError(), "launching look");
  gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void fill(Shared& shared, cudaStream_t stream, Counts* host) {
  gpu::check(cudaMemsetAsync(shared.counts, 0, sizeof *shared.counts, stream), "filling");
  copy(shared, stream, host);
}

void call_back(Shared& shared, cudaStream_t stream, Counts* host) {
  struct Data {
    Shared& shared;
    Counts* host;
  } data{shared, host};
  gpu::check(cudaMemcpyAsync(host, shared.counts, sizeof *host, cudaMemcpyDeviceToHost, stream), "copying");
  const auto run = [](void* of) {
    const auto* const its = static_cast<Data*>(of);
    if (!is_whole(*its->host)) ++its->shared.torn;
  };
  gpu::check(cudaLaunchHostFunc(stream, run, &data), "cudaLaunchHostFunc");
  gpu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

// The copy in another stream waits for an event behind whole launches. A gate keeps later ones out of view.
void record_event(Shared& shared, cudaStream_t stream, Counts* host) {
  static thread_local cudaEvent_t event = nullptr;
  if (!event) gpu::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  gpu::check(cudaEventRecord(event, stream), "cudaEventRecord");
  gpu::check(cudaEventSynchronize(event), "cudaEventSynchronize");
  copy(shared, stream, host);
}

void run(gpu::Report& report, const char* what, cudaStream_t launches_in, cudaStream_t others_in,
         Enqueue enqueue, int others) {
  if (others > 1 && threads_beside != 0) others = threads_beside;
  gpu::Buffer<Counts> counts(1);
  gpu::Buffer<int> torn(1);
  gpu::wait("clearing");
  Shared shared{launches_in, counts.data(), torn.data()};
  std::vector<std::thread> threads;
  for (int i = 0; i < others; ++i) {
    threads.emplace_back([&] {
      Counts* host = nullptr;
      gpu::check(cudaMallocHost(&host, sizeof *host), "cudaMallocHost");
      while (!shared.is_over) {
        const int before = shared.launched;
        enqueue(shared, others_in, host);
        ++shared.looks;
        // The driver's lock goes to whoever asks first. Seven threads that ask all the time were seen to keep
        // the launching thread from it for seconds, and 31 for ever, with the library and without. So each
        // looks once a launch.
        do {
          std::this_thread::sleep_for(std::chrono::microseconds(20));
        } while (!shared.is_over && shared.launched == before);
      }
      gpu::check(cudaFreeHost(host), "cudaFreeHost");
    });
  }
  launch_parents(shared);
  shared.is_over = true;
  for (std::thread& thread : threads) thread.join();
  gpu::wait(what);
  const int seen = shared.torn + torn.to_host()[0];
  if (launches > 3000)
    std::printf("%s: %d launches, %d threads beside, %lld looks\n", what, launches, others,
                shared.looks.load());
  std::fflush(stdout);  // a long run that is ended shows how far it came
  report.expect(seen == 0, "%s: %d torn views", what, seen);
  report.expect(is_whole(counts.to_host()[0]), "%s: torn at the end", what);
}

int main(int argc, char** argv) {
  gpu::Report report("one_operation");
  if (argc > 1) launches = std::atoi(argv[1]);
  if (argc > 2) threads_beside = std::atoi(argv[2]);
  cudaStream_t alone = nullptr, blocking = nullptr;
  gpu::check(cudaStreamCreateWithFlags(&alone, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  gpu::check(cudaStreamCreate(&blocking), "cudaStreamCreate");
  run(report, "copies in one stream", alone, alone, copy, 1);
  run(report, "copies of seven threads", alone, alone, copy, 7);
  run(report, "kernels", alone, alone, run_kernel, 2);
  run(report, "fills", alone, alone, fill, 1);
  run(report, "callbacks", alone, alone, call_back, 2);
  run(report, "events", alone, alone, record_event, 2);
  run(report, "the legacy stream", nullptr, nullptr, copy, 2);
  run(report, "the legacy stream beside a blocking one", blocking, nullptr, copy, 2);
  run(report, "copies in the legacy stream that wait", blocking, nullptr, copy_and_wait, 2);
  run(report, "a blocking stream beside the legacy one", nullptr, blocking, run_kernel, 2);
  gpu::check(cudaStreamDestroy(alone), "cudaStreamDestroy");
  gpu::check(cudaStreamDestroy(blocking), "cudaStreamDestroy");
  return report.finish();
}
