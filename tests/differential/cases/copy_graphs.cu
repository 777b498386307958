// Random graphs of launches (graphs/random_graph.h) whose grids also copy and fill memory, in any stream.
//
// Around a launch, the log that its grid notes in is copied, and the copy is filled in part, in the same
// stream. The grid notes what it finds there. So a copy that changes places leaves another log. Sometimes it
// is a copy of another stream's log, and both streams wait for each other. Streams are handles that only the
// table tells.
#include "graphs/graph_table.h"

#ifdef __CUDACC__

using namespace klap::differential::graphs;

__device__ cudaStream_t stream_of(int stream, const cudaStream_t* created) {
  switch (stream) {
    case kNullStream:
      return nullptr;
    case kThreadStream:
      return cudaStreamPerThread;
    case kFireAndForgetStream:
      return cudaStreamFireAndForget;
    case kTailStream:
      return cudaStreamTailLaunch;
    default:
      return created[stream - kFirstCreated];
  }
}

extern "C" __global__ void __launch_bounds__(kMostThreads)
    copying_node(const int* table, int* logs, int* copies, cudaStream_t* handles, int number, int log,
                 int first_log, int first_seen, int seen) {
  const Given given = {log, first_log, first_seen, seen};
  const int block = static_cast<int>(blockIdx.x);
  if (threadIdx.x != 0) return;
  if (block == 0) {
    note(logs, log,
         static_cast<unsigned int>(number) + sum_of_logs(logs, first_seen, seen) +
             sum_of_logs(copies, log, 1));
  }
  const int* const node = node_at(table, number);
  cudaStream_t* const created = handles + kCreatedStreams * (first_log + block * node[kLogsPerBlock]);
  for (int i = 0; i < node[kCreates]; ++i) cudaStreamCreateWithFlags(created + i, cudaStreamNonBlocking);
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  int before = -1, log_before = 0;  // the launch before, in a stream that can wait
  for (int i = 0; i < node[kLaunches]; ++i) {
    const int* const launch = launch_at(table, node[kFirstLaunch] + i);
    if (launch[kOnlyFirst] != 0 && block != 0) continue;
    const Given to = given_by(launch, given, node, block);
    const int* const child = node_at(table, launch[kNode]);
    const cudaStream_t stream = stream_of(launch[kStream], created);
    int* const copy = copies + 2 * to.log;
    if (has_events(launch) && joins(launch[kStream], before, i)) {
      const cudaStream_t other = stream_of(before, created);
      cudaEventRecord(event, other);
      cudaStreamWaitEvent(stream, event, 0);
      cudaMemcpyAsync(copy, logs + 2 * log_before, 2 * sizeof(int), cudaMemcpyDefault, stream);
      cudaEventRecord(event, stream);
      cudaStreamWaitEvent(other, event, 0);
    } else if (copies_before(launch, i)) {
      cudaMemcpyAsync(copy, logs + 2 * to.log, 2 * sizeof(int), cudaMemcpyDeviceToDevice, stream);
    }
    copying_node<<<child[kBlocks], child[kThreads], 0, stream>>>(
        table, logs, copies, handles, launch[kNode], to.log, to.first_log, to.first_seen, to.seen);
    if (fills_behind(launch, i)) cudaMemsetAsync(reinterpret_cast<char*>(copy) + 3, fill_value(i), 3, stream);
    if (!has_events(launch)) continue;
    before = launch[kStream];
    log_before = to.log;
  }
  cudaEventDestroy(event);
  for (int i = 0; i < node[kCreates]; ++i) cudaStreamDestroy(created[i]);
}

#else

#include "graphs/random_graph.h"

namespace {

void fill(klap::differential::Builder& c, uint64_t seed) {
  klap::differential::graphs::fill_copying_case(c, seed);
  c.left_on_device("copying_node", "runtime-call");
  c.by_warp("stream-unsupported");
}

}  // namespace

KLAP_CASE(graph_of_copies, "copies and launches do not run in the order of their streams") { fill(c, 6); }
KLAP_CASE(graph_of_copied_tails, "copies and launches do not run in the order of their streams") {
  fill(c, 4);
}
KLAP_CASE(graph_of_copied_blocks, "copies and launches do not run in the order of their streams") {
  fill(c, 7);
}

#endif
