// Random graphs of launches in device-side streams (graphs/random_graph.h), run by one kernel that reads them
// from a table. A few stand here by their seeds; klap_case --graphs runs any number of others.
#include "graphs/graph_table.h"

#ifdef __CUDACC__

using namespace klap::differential::graphs;

// A grid that launches nothing has a kernel of its own.
__device__ void note_in(const int* table, int* logs, int node, Given given) {
  if (blockIdx.x == 0 && threadIdx.x == 0)
    note(logs, given.log, static_cast<unsigned int>(node) + sum_of_logs(logs, given.first_seen, given.seen));
}
__global__ void __launch_bounds__(kMostThreads)
    graph_leaf(const int* table, int* logs, int node, int log, int first_log, int first_seen, int seen) {
  note_in(table, logs, node, {log, first_log, first_seen, seen});
}

extern "C" __global__ void __launch_bounds__(kMostThreads)
    graph_node(const int* table, int* logs, cudaStream_t* handles, int number, int log, int first_log,
               int first_seen, int seen) {
  const Given given = {log, first_log, first_seen, seen};
  const int block = static_cast<int>(blockIdx.x);
  note_in(table, logs, number, given);
  if (threadIdx.x != 0) return;
  const int* const node = node_at(table, number);
  // Handles stand in memory that all grids know.
  cudaStream_t* const created = handles + kCreatedStreams * (first_log + block * node[kLogsPerBlock]);
  for (int i = 0; i < node[kCreates]; ++i) cudaStreamCreateWithFlags(created + i, cudaStreamNonBlocking);
  for (int i = 0; i < node[kLaunches]; ++i) {
    const int* const launch = launch_at(table, node[kFirstLaunch] + i);
    if (launch[kOnlyFirst] != 0 && block != 0) continue;
    const int next = launch[kNode];
    const Given to = given_by(launch, given, node, block);
    const int* const child = node_at(table, next);
    const unsigned int blocks = child[kBlocks], threads = child[kThreads];
    const bool is_leaf = child[kLaunches] == 0;
#define LAUNCH(stream)                                                                         \
  graph_node<<<blocks, threads, 0, stream>>>(table, logs, handles, next, to.log, to.first_log, \
                                             to.first_seen, to.seen)
#define LAUNCH_LEAF(stream) \
  graph_leaf<<<blocks, threads, 0, stream>>>(table, logs, next, to.log, to.first_log, to.first_seen, to.seen)
    switch (launch[kStream]) {
      case kNullStream:
        if (is_leaf) {
          LAUNCH_LEAF(0);
        } else {
          LAUNCH(0);
        }
        break;
      case kThreadStream:
        LAUNCH(cudaStreamPerThread);
        break;
      case kFireAndForgetStream:
        if (is_leaf) {
          LAUNCH_LEAF(cudaStreamFireAndForget);
        } else {
          LAUNCH(cudaStreamFireAndForget);
        }
        break;
      case kTailStream:
        LAUNCH(cudaStreamTailLaunch);
        break;
      default:
        LAUNCH(created[launch[kStream] - kFirstCreated]);
    }
#undef LAUNCH
#undef LAUNCH_LEAF
  }
  for (int i = 0; i < node[kCreates]; ++i) cudaStreamDestroy(created[i]);
}

#else

#include "graphs/random_graph.h"

namespace {

void fill(klap::differential::Builder& c, uint64_t seed) {
  klap::differential::graphs::fill_case(c, seed);
  c.left_on_device("graph_node", "runtime-call");
  c.by_warp("some");
}

}  // namespace

KLAP_CASE(graph_of_streams, "a graph of launches does not run in the order of its streams") {
  c.contract("Any program of launches runs in the order of its streams.", "a random graph of streams");
  fill(c, 6);
}
KLAP_CASE(graph_of_tails, "a graph of launches does not run in the order of its streams") {
  c.contract("Any program of launches runs in the order of its streams.", "a random graph of tail launches");
  fill(c, 4);
}
KLAP_CASE(graph_of_blocks, "a graph of launches does not run in the order of its streams") {
  c.contract("Any program of launches runs in the order of its streams.",
             "a random graph of grids of several blocks");
  fill(c, 7);
}
// A grid was complete, and not yet counted, when the next one in its stream began in another block.
KLAP_CASE(graph_of_counts, "a parent does not wait for a child that is complete and not counted") {
  c.contract("Any program of launches runs in the order of its streams.",
             "a random graph in which a child ends while its stream goes on");
  fill(c, 2175);
}

#endif
