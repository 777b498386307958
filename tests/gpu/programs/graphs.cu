// Graphs whose kernels launch kernels: captured, made of nodes, within other graphs, cloned, with parameters
// that change, updated, and several executable graphs at the same time. The argument is the number of
// replays.
//
// Natively, replays of such graphs were seen to lose children or to hang (H200, driver 580). So the program
// is not compared with a native run; every result is checked against the processor's.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "graphs.h"

#ifndef REPLAYS
#define REPLAYS 1000
#endif
int replays = REPLAYS;

// Launches outside of graphs come between.
void test_captured(gpu::Report& report) {
  Cells cells, ordered, tree;
  const Stream stream;
  cudaGraph_t const graph = capture(stream, [&] {
    parent<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), 7);
    square<<<kBlocks, kBlockSize, 0, stream>>>(cells.data());
    parent<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), 2);
    in_order<<<3, 32, 0, stream>>>(ordered.data());
    descend<<<1, 1, 0, stream>>>(tree.data(), 4);
    descend<<<1, 1, 0, stream>>>(tree.data(), 2);
  });
  cudaGraphExec_t const executable = instantiate(graph);
  destroy(graph);
  for (int i = 0; i < replays; ++i) {
    launch(executable, stream);
    cells.expect_parent(7);
    cells.expect_square();
    cells.expect_parent(2);
    ordered.expect_in_order(3);
    tree.expect_descent(4);
    tree.expect_descent(2);
    if (i % 3 != 0) continue;
    parent<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), i);
    cells.expect_parent(i);
  }
  cells.compare(report, "captured");
  ordered.compare(report, "captured, in order");
  tree.compare(report, "captured, a tree");
  destroy(executable);
}

// Chains, outside of the graph as well.
void test_chains(gpu::Report& report) {
  Cells cells, passed;
  const Stream stream;
  cudaGraph_t const graph = capture(stream, [&] {
    links<<<1, kBlockSize, 0, stream>>>(cells.data(), 0, 20);
    square<<<1, kBlockSize, 0, stream>>>(cells.data());
    passing<<<1, kBlockSize, 0, stream>>>(passed.data(), 0, 30, 1);
    links<<<1, kBlockSize, 0, stream>>>(cells.data(), 0, 7);
  });
  cudaGraphExec_t const executable = instantiate(graph);
  for (int i = 0; i < replays; ++i) {
    launch(executable, stream);
    cells.expect_links(20);
    cells.expect_square();
    cells.expect_links(7);
    passed.expect_passing(30);
    if (i % 2 != 0) continue;
    links<<<1, kBlockSize, 0, stream>>>(cells.data(), 0, 5);
    cells.expect_links(5);
  }
  cells.compare(report, "chains");
  passed.compare(report, "chains that pass values on");
  destroy(executable);
  destroy(graph);
}

// Streams that part and join again, each with parents.
void test_forks(gpu::Report& report) {
  Cells left, right, trees[2];
  const Stream first, second;
  cudaEvent_t forked = nullptr, joined = nullptr;
  for (cudaEvent_t* event : {&forked, &joined})
    gpu::check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreate");
  cudaGraph_t const graph = capture(first, [&] {
    parent<<<kBlocks, kBlockSize, 0, first>>>(left.data(), 1);
    gpu::check(cudaEventRecord(forked, first), "cudaEventRecord");
    gpu::check(cudaStreamWaitEvent(second, forked, 0), "cudaStreamWaitEvent");
    parent<<<kBlocks, kBlockSize, 0, second>>>(right.data(), 2);
    square<<<kBlocks, kBlockSize, 0, second>>>(right.data());
    descend<<<1, 1, 0, first>>>(trees[0].data(), 5);
    descend<<<1, 1, 0, second>>>(trees[1].data(), 5);
    parent_forget<<<kBlocks, kBlockSize, 0, first>>>(left.data(), 3);
    gpu::check(cudaEventRecord(joined, second), "cudaEventRecord");
    gpu::check(cudaStreamWaitEvent(first, joined, 0), "cudaStreamWaitEvent");
    square<<<kBlocks, kBlockSize, 0, first>>>(left.data());
    parent<<<kBlocks, kBlockSize, 0, first>>>(right.data(), 4);
  });
  cudaGraphExec_t const executable = instantiate(graph);
  for (int i = 0; i < replays; ++i) {
    launch(executable, i % 2 == 0 ? first : second);
    left.expect_parent(1);
    left.expect_parent(3);
    left.expect_square();
    right.expect_parent(2);
    right.expect_square();
    right.expect_parent(4);
    for (Cells& tree : trees) tree.expect_descent(5);
  }
  left.compare(report, "forks, left");
  right.compare(report, "forks, right");
  for (Cells& tree : trees) tree.compare(report, "forks, a tree");
  destroy(executable);
  destroy(graph);
  for (cudaEvent_t event : {forked, joined}) gpu::check(cudaEventDestroy(event), "cudaEventDestroy");
}

// Two parents side by side, with a fill in front of one and a kernel behind both.
void test_nodes(gpu::Report& report) {
  Cells left, right;
  const Stream stream;
  cudaGraph_t graph = nullptr;
  gpu::check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  cudaGraphNode_t fill = nullptr;
  cudaMemsetParams zero{};
  zero.dst = right.data();
  zero.elementSize = 4;
  zero.width = kThreads;
  zero.height = 1;
  gpu::check(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &zero), "cudaGraphAddMemsetNode");
  cudaGraphNode_t const first = ParentNode(left.data(), 3).add(graph);
  cudaGraphNode_t const second = ParentNode(right.data(), 5).add(graph, {fill});
  add_square(graph, left.data(), {first, second});
  add_square(graph, right.data(), {first, second});
  cudaGraphExec_t const executable = instantiate(graph);
  for (int i = 0; i < replays; ++i) {
    if (i == replays / 2) {  // a node that launches nothing
      zero.value = 0x01010101;
      zero.elementSize = 1;
      zero.width = 4 * kThreads;
      gpu::check(cudaGraphExecMemsetNodeSetParams(executable, fill, &zero),
                 "cudaGraphExecMemsetNodeSetParams");
    }
    launch(executable, stream);
    left.expect_parent(3);
    left.expect_square();
  }
  right.expect_fill(0x01010101);
  right.expect_parent(5);
  right.expect_square();
  left.compare(report, "nodes, left");
  right.compare(report, "nodes, right");
  size_t nodes = 0;
  gpu::check(cudaGraphGetNodes(graph, nullptr, &nodes), "cudaGraphGetNodes");
  report.expect(nodes == 5, "the program's graph has %zu nodes instead of 5", nodes);
  destroy(executable);
  destroy(graph);
}

// The same graph twice within another one, and that one changed in place of the first.
void test_within(gpu::Report& report) {
  Cells cells;
  const Stream stream;
  cudaGraph_t inner = nullptr, outer = nullptr, other = nullptr;
  gpu::check(cudaGraphCreate(&inner, 0), "cudaGraphCreate");
  gpu::check(cudaGraphCreate(&outer, 0), "cudaGraphCreate");
  gpu::check(cudaGraphCreate(&other, 0), "cudaGraphCreate");
  add_square(inner, cells.data(), {ParentNode(cells.data(), 4).add(inner)});
  add_square(other, cells.data(), {ParentNode(cells.data(), 9).add(other)});
  cudaGraphNode_t first = nullptr, second = nullptr;
  gpu::check(cudaGraphAddChildGraphNode(&first, outer, nullptr, 0, inner), "cudaGraphAddChildGraphNode");
  gpu::check(cudaGraphAddChildGraphNode(&second, outer, &first, 1, inner), "cudaGraphAddChildGraphNode");
  ParentNode(cells.data(), 1).add(outer, {second});
  cudaGraphExec_t const executable = instantiate(outer);
  int of_first = 4;
  for (int i = 0; i < replays; ++i) {
    if (i == replays / 2) {
      gpu::check(cudaGraphExecChildGraphNodeSetParams(executable, first, other),
                 "cudaGraphExecChildGraphNodeSetParams");
      of_first = 9;
    }
    launch(executable, stream);
    for (const int amount : {of_first, 4}) {
      cells.expect_parent(amount);
      cells.expect_square();
    }
    cells.expect_parent(1);
  }
  cells.compare(report, "within a graph");
  destroy(executable);
  for (cudaGraph_t graph : {inner, outer, other}) destroy(graph);
}

// Several executable graphs of one graph and of its clone run at the same time.
void test_side_by_side(gpu::Report& report) {
  Cells cells;
  const Stream streams[4];
  cudaGraph_t graph = nullptr, clone = nullptr;
  gpu::check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  ParentNode(cells.data(), 1).add(graph);
  gpu::check(cudaGraphClone(&clone, graph), "cudaGraphClone");
  cudaGraphExec_t const executables[] = {instantiate(graph), instantiate(graph), instantiate(clone),
                                         instantiate(graph)};
  destroy(graph);
  for (int i = 0; i < replays; ++i) {
    for (int k = 0; k < 4; ++k) launch(executables[k], streams[(k + i) % 4]);
    for (int k = 0; k < 4; ++k) cells.expect_parent(1);
  }
  // They may end while they run.
  for (cudaGraphExec_t executable : executables) destroy(executable);
  destroy(clone);
  cells.compare(report, "side by side");
}

// Parameters of a node change between launches that nobody waits for; so do the sizes of its grid.
void test_parameters(gpu::Report& report) {
  Cells cells;
  const Stream stream;
  cudaGraph_t graph = nullptr;
  gpu::check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  cudaGraphNode_t const node = ParentNode(cells.data(), 1).add(graph);
  add_square(graph, cells.data(), {node});
  cudaGraphExec_t const executable = instantiate(graph);
  for (int i = 0; i < replays; ++i) {
    const int blocks = 1 + i * 5 % kMostBlocks;
    ParentNode changed(cells.data(), i % 5, blocks);
    if (i % 3 == 0) changed.params.func = reinterpret_cast<void*>(parent_forget);
    gpu::check(cudaGraphExecKernelNodeSetParams(executable, node, &changed.params),
               "cudaGraphExecKernelNodeSetParams");
    const bool is_enabled = i % 7 != 0;
    gpu::check(cudaGraphNodeSetEnabled(executable, node, is_enabled ? 1 : 0), "cudaGraphNodeSetEnabled");
    launch(executable, stream);
    if (is_enabled) cells.expect_parent(i % 5, blocks);
    cells.expect_square();
  }
  cells.compare(report, "parameters");
  destroy(executable);
  destroy(graph);
}

// A graph is captured anew and the executable one updated from it, as programs do for each step.
void test_updates(gpu::Report& report) {
  Cells cells;
  const Stream stream;
  cudaGraphExec_t executable = nullptr;
  for (int i = 0; i < replays; ++i) {
    const int blocks = 1 + i * 3 % kMostBlocks;
    cudaGraph_t const graph = capture(stream, [&] {
      parent<<<blocks, kBlockSize, 0, stream>>>(cells.data(), i % 4);
      square<<<kBlocks, kBlockSize, 0, stream>>>(cells.data());
    });
    if (i == 0) executable = instantiate(graph);
    cudaGraphExecUpdateResultInfo info{};
    if (i != 0) gpu::check(cudaGraphExecUpdate(executable, graph, &info), "cudaGraphExecUpdate");
    destroy(graph);
    launch(executable, stream);
    cells.expect_parent(i % 4, blocks);
    cells.expect_square();
  }
  cells.compare(report, "updates");
  destroy(executable);
}

// The bytes that are free when all that has run is done.
size_t free_memory() {
  gpu::wait("free memory");
  size_t free = 0, total = 0;
  gpu::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

// A node's kernel changes, also to one that launches nothing and back. Queues are used again, so that memory
// does not go on to be taken.
void test_kernels(gpu::Report& report) {
  Cells cells;
  const Stream stream;
  cudaGraph_t graph = nullptr;
  gpu::check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  ParentNode at_first(cells.data(), 1);
  at_first.params.func = reinterpret_cast<void*>(parent_of_two);
  cudaGraphNode_t const node = at_first.add(graph);
  add_square(graph, cells.data(), {node});
  cudaGraphExec_t const executable = instantiate(graph);
  void* const kernels[] = {reinterpret_cast<void*>(parent), reinterpret_cast<void*>(alone),
                           reinterpret_cast<void*>(parent_forget), reinterpret_cast<void*>(parent_of_two)};
  size_t before = 0;
  for (int i = 0; i < replays; ++i) {
    if (i == 12) before = free_memory();
    const int blocks = 1 + i * 5 % kMostBlocks;
    ParentNode changed(cells.data(), i % 5, blocks);
    changed.params.func = kernels[i % 4];
    gpu::check(cudaGraphExecKernelNodeSetParams(executable, node, &changed.params),
               "cudaGraphExecKernelNodeSetParams");
    launch(executable, stream);
    cells.expect_parent(i % 5, blocks);
    cells.expect_square();
  }
  const size_t taken = before - free_memory();
  report.expect(before == 0 || taken < size_t{8} << 20, "kernels: %zu bytes are taken by changes", taken);
  cells.compare(report, "kernels");
  destroy(executable);
  destroy(graph);
}

// Updates do so, too.
void test_updated_kernels(gpu::Report& report) {
  Cells cells;
  const Stream stream;
  cudaGraphExec_t executable = nullptr;
  size_t before = 0;
  for (int i = 0; i < replays; ++i) {
    if (i == 12) before = free_memory();
    const int blocks = 1 + i * 3 % kMostBlocks;
    cudaGraph_t const graph = capture(stream, [&] {
      if (i % 3 == 1)
        alone<<<blocks, kBlockSize, 0, stream>>>(cells.data(), i % 4);
      else if (i % 6 == 0)
        parent<<<blocks, kBlockSize, 0, stream>>>(cells.data(), i % 4);
      else
        parent_forget<<<blocks, kBlockSize, 0, stream>>>(cells.data(), i % 4);
      square<<<kBlocks, kBlockSize, 0, stream>>>(cells.data());
      if (i % 2 == 0)
        parent<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), 3);
      else
        alone<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), 3);
    });
    if (i == 0) executable = instantiate(graph);
    cudaGraphExecUpdateResultInfo info{};
    if (i != 0) gpu::check(cudaGraphExecUpdate(executable, graph, &info), "cudaGraphExecUpdate");
    destroy(graph);
    launch(executable, stream);
    cells.expect_parent(i % 4, blocks);
    cells.expect_square();
    cells.expect_parent(3);
  }
  const size_t taken = before - free_memory();
  report.expect(before == 0 || taken < size_t{8} << 20, "updated kernels: %zu bytes are taken", taken);
  cells.compare(report, "updated kernels");
  destroy(executable);
}

// A launch of `parent_of_followers` whose pointers are apart, or not.
struct FollowersNode {
  FollowersNode(int* from, int* to) : in(from), out(to) {
    params.func = reinterpret_cast<void*>(parent_of_followers);
    params.gridDim = dim3(1);
    params.blockDim = dim3(kThreads / 8);
    params.kernelParams = arguments;
  }
  FollowersNode(const FollowersNode&) = delete;
  FollowersNode& operator=(const FollowersNode&) = delete;
  cudaGraphNode_t add(cudaGraph_t graph) const {
    cudaGraphNode_t node = nullptr;
    gpu::check(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params), "cudaGraphAddKernelNode");
    return node;
  }

  int *in, *out;
  void* arguments[2] = {&in, &out};
  cudaKernelNodeParams params{};
};

// A condition of the rewriting holds at first and not later, or the other way round.
void test_conditions(gpu::Report& report) {
  Cells from, to;
  const Stream stream;
  const auto target = [&](bool is_apart) { return is_apart ? to.data() : from.data(); };
  for (const bool is_apart_first : {true, false}) {
    cudaGraph_t graph = nullptr;
    gpu::check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
    cudaGraphNode_t const node = FollowersNode(from.data(), target(is_apart_first)).add(graph);
    cudaGraphExec_t const executable = instantiate(graph);
    for (int i = 0; i < replays; ++i) {
      const bool is_apart = (i % 3 == 0) == is_apart_first;
      const FollowersNode changed(from.data(), target(is_apart));
      cudaGraph_t other = nullptr;
      gpu::check(cudaGraphCreate(&other, 0), "cudaGraphCreate");
      changed.add(other);
      cudaGraphExecUpdateResultInfo info{};
      if (i % 4 < 2) {
        gpu::check(cudaGraphExecKernelNodeSetParams(executable, node, &changed.params),
                   "cudaGraphExecKernelNodeSetParams");
      } else {
        gpu::check(cudaGraphExecUpdate(executable, other, &info), "cudaGraphExecUpdate");
      }
      destroy(other);
      launch(executable, stream);
      (is_apart ? to : from).expect_followers(from);
    }
    destroy(executable);
    destroy(graph);
  }
  from.compare(report, "conditions, from");
  to.compare(report, "conditions, to");
}

cudaGraphNode_t add_child(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& after, cudaGraph_t child) {
  cudaGraphNode_t node = nullptr;
  gpu::check(cudaGraphAddChildGraphNode(&node, graph, after.data(), after.size(), child),
             "cudaGraphAddChildGraphNode");
  return node;
}

cudaGraphNode_t node_within(cudaGraphNode_t node, size_t number) {
  cudaGraph_t graph = nullptr;
  gpu::check(cudaGraphChildGraphNodeGetGraph(node, &graph), "cudaGraphChildGraphNodeGetGraph");
  std::vector<cudaGraphNode_t> nodes(8);
  size_t count = nodes.size();
  gpu::check(cudaGraphGetNodes(graph, nodes.data(), &count), "cudaGraphGetNodes");
  return nodes[number];
}

// Graphs three deep. A node in the innermost one changes, and a graph in the middle is replaced.
void test_deep(gpu::Report& report) {
  Cells cells;
  const Stream stream;
  cudaGraph_t graphs[5] = {};
  for (cudaGraph_t& graph : graphs) gpu::check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  const auto& [inner, middle, outer, other_inner, other_middle] = graphs;
  add_square(inner, cells.data(), {ParentNode(cells.data(), 4).add(inner)});
  add_square(other_inner, cells.data(), {ParentNode(cells.data(), 9).add(other_inner)});
  add_child(middle, {ParentNode(cells.data(), 2).add(middle)}, inner);
  add_child(other_middle, {ParentNode(cells.data(), 5).add(other_middle)}, other_inner);
  cudaGraphNode_t const first = add_child(outer, {}, middle);
  cudaGraphNode_t const second = add_child(outer, {first}, middle);
  cudaGraphNode_t const deepest = node_within(node_within(second, 1), 0);
  cudaGraphExec_t const executable = instantiate(outer);
  int of_first[2] = {2, 4}, of_second[2] = {2, 4};
  for (int i = 0; i < replays; ++i) {
    if (i % 4 == 2) {
      const bool is_other = i % 8 == 2;
      gpu::check(cudaGraphExecChildGraphNodeSetParams(executable, first, is_other ? other_middle : middle),
                 "cudaGraphExecChildGraphNodeSetParams");
      of_first[0] = is_other ? 5 : 2;
      of_first[1] = is_other ? 9 : 4;
    }
    if (i % 3 == 1) {
      ParentNode changed(cells.data(), i);
      if (i % 2 == 0) changed.params.func = reinterpret_cast<void*>(alone);
      gpu::check(cudaGraphExecKernelNodeSetParams(executable, deepest, &changed.params),
                 "cudaGraphExecKernelNodeSetParams");
      of_second[1] = i;
    }
    launch(executable, stream);
    for (const int* amounts : {of_first, of_second}) {
      cells.expect_parent(amounts[0]);
      cells.expect_parent(amounts[1]);
      cells.expect_square();
    }
  }
  cells.compare(report, "deep");
  destroy(executable);
  for (cudaGraph_t graph : graphs) destroy(graph);
}

// Host threads that each capture, instantiate, update and launch, while others do.
void test_threads(gpu::Report& report) {
  constexpr int kHostThreads = 3;
  Cells cells[kHostThreads];
  std::vector<std::thread> threads;
  for (Cells& own : cells) {
    threads.emplace_back([&own] {
      const Stream stream;
      cudaGraphExec_t executable = nullptr;
      for (int i = 0; i < replays; ++i) {
        const int blocks = 1 + i * 3 % kMostBlocks;
        cudaGraph_t const graph = capture(
            stream,
            [&] {
              parent<<<blocks, kBlockSize, 0, stream>>>(own.data(), i % 4);
              square<<<kBlocks, kBlockSize, 0, stream>>>(own.data());
            },
            cudaStreamCaptureModeThreadLocal);  // else other threads must not instantiate meanwhile
        cudaGraphExecUpdateResultInfo info{};
        if (i % 5 != 0) gpu::check(cudaGraphExecUpdate(executable, graph, &info), "cudaGraphExecUpdate");
        if (i % 5 == 0 && executable != nullptr) destroy(executable);
        if (i % 5 == 0) executable = instantiate(graph);
        destroy(graph);
        launch(executable, stream);
        own.expect_parent(i % 4, blocks);
        own.expect_square();
      }
      stream.synchronize();
      destroy(executable);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Cells& own : cells) own.compare(report, "host threads");
}

// A graph of another form cannot be taken over, as natively, and the executable one stays as it is.
void test_refused(gpu::Report& report) {
  Cells cells;
  const Stream stream;
  cudaGraph_t const graph = capture(stream, [&] {
    parent<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), 5);
    square<<<kBlocks, kBlockSize, 0, stream>>>(cells.data());
  });
  cudaGraph_t const other =
      capture(stream, [&] { square<<<kBlocks, kBlockSize, 0, stream>>>(cells.data()); });
  cudaGraphExec_t const executable = instantiate(graph);
  cudaGraphExecUpdateResultInfo info{};
  const cudaError_t refused = cudaGraphExecUpdate(executable, other, &info);
  report.expect(refused == cudaErrorGraphExecUpdateFailure, "an update to another form: code %d",
                static_cast<int>(refused));
  cudaGetLastError();
  gpu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  const cudaError_t captured = cudaGraphLaunch(executable, stream);
  report.expect(captured == cudaErrorStreamCaptureUnsupported, "a launch that is captured: code %d",
                static_cast<int>(captured));
  cudaGraph_t spoilt = nullptr;
  cudaStreamEndCapture(stream, &spoilt);
  cudaGetLastError();
  launch(executable, stream);
  cells.expect_parent(5);
  cells.expect_square();
  cells.compare(report, "after refused calls");
  destroy(executable);
  for (cudaGraph_t each : {graph, other}) destroy(each);
}

// Executable graphs end while they run, also after an update from another graph. Their queues must not be
// used by the next ones before that.
void test_ending(gpu::Report& report) {
  Cells cells[3];
  const Stream streams[3];
  for (int i = 0; i < replays; ++i) {
    if (i % 3 == 0) gpu::wait("graphs that end while they run");  // no more launches wait than CUDA holds
    Cells& own = cells[i % 3];
    const auto graph_of = [&](int amount) {
      cudaGraph_t graph = nullptr;
      gpu::check(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
      ParentNode(own.data(), amount).add(graph);
      return graph;
    };
    cudaGraph_t const graph = graph_of(1), other = graph_of(2);
    cudaGraphExec_t const executable = instantiate(graph);
    cudaGraphExecUpdateResultInfo info{};
    if (i % 4 != 0) gpu::check(cudaGraphExecUpdate(executable, other, &info), "cudaGraphExecUpdate");
    launch(executable, streams[i % 3]);
    own.expect_parent(i % 4 != 0 ? 2 : 1);
    destroy(executable);
    for (cudaGraph_t each : {graph, other}) destroy(each);
  }
  for (Cells& own : cells) own.compare(report, "graphs that end while they run");
}

// Graphs come and go: their queues are used again.
void test_many(gpu::Report& report) {
  Cells cells;
  const Stream stream;
  for (int i = 0; i < replays; ++i) {
    cudaGraph_t const graph =
        capture(stream, [&] { parent<<<kBlocks, kBlockSize, 0, stream>>>(cells.data(), 1); });
    cudaGraphExec_t const executable = instantiate(graph);
    launch(executable, stream);
    destroy(graph);
    destroy(executable);
    cells.expect_parent(1);
  }
  cells.compare(report, "graphs that come and go");
}

// An allocation takes what the queues of ended graphs had.
void test_memory(gpu::Report& report) {
  Cells cells;
  const Stream stream;
  const size_t before = free_memory();
  cudaGraph_t const graph = capture(stream, [&] { descend<<<1, 1, 0, stream>>>(cells.data(), 3); });
  cudaGraphExec_t const executable = instantiate(graph);
  launch(executable, stream);
  cells.expect_descent(3);
  cells.compare(report, "before memory is full");
  destroy(executable);
  destroy(graph);
  constexpr size_t kSpare = size_t{160} << 20;  // less than a queue of a recursion
  void* most = nullptr;
  cudaError_t taken = cudaErrorMemoryAllocation;
  // The driver may say a moment later that nothing uses the queues any more.
  for (int i = 0; i < 100 && taken == cudaErrorMemoryAllocation; ++i) {
    if (i != 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    gpu::wait("an allocation");
    taken = cudaMalloc(&most, before - kSpare);
    cudaGetLastError();
  }
  report.expect(taken == cudaSuccess, "memory: %zu of %zu bytes cannot be allocated", before - kSpare,
                before);
  gpu::check(cudaFree(most), "cudaFree");
}

struct Test {
  const char* name;
  void (*run)(gpu::Report&);
};
constexpr Test kTests[] = {{"memory", test_memory},
                           {"nodes", test_nodes},
                           {"captured", test_captured},
                           {"chains", test_chains},
                           {"forks", test_forks},
                           {"within", test_within},
                           {"side_by_side", test_side_by_side},
                           {"parameters", test_parameters},
                           {"updates", test_updates},
                           {"kernels", test_kernels},
                           {"updated_kernels", test_updated_kernels},
                           {"conditions", test_conditions},
                           {"deep", test_deep},
                           {"threads", test_threads},
                           {"ending", test_ending},
                           {"refused", test_refused},
                           {"many", test_many}};

int main(int argc, char** argv) {
  gpu::Report report("graphs");
  if (argc > 1) replays = std::atoi(argv[1]);
  {  // device code may not be loaded while a stream is captured
    Cells cells;
    square<<<kBlocks, kBlockSize>>>(cells.data());
    cells.compare(report, "outside of graphs");
  }
  const std::string which = argc > 2 ? argv[2] : "";
  bool is_known = which.empty();
  for (const Test& test : kTests) {
    is_known = is_known || which == test.name || which == std::string("-") + test.name;
    const bool is_meant =
        which.empty() || which == test.name || (which[0] == '-' && which.substr(1) != test.name);
    if (is_meant) test.run(report);
  }
  report.expect(is_known, "there is no test of that name");
  return report.finish();
}
