// Graphs, built and captured.
#include <algorithm>

#include "driver_fixture.h"

namespace klap::emulator::driver_test {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

class GraphTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    scale = function("kernels.ptx", "scale");
    data = device_array({1, 2, 3});
  }

  static std::vector<CUgraphNode> nodes_of(CUgraph graph) {
    size_t count = 0;
    EXPECT_RESULT(CUDA_SUCCESS, cuGraphGetNodes(graph, nullptr, &count));
    std::vector<CUgraphNode> nodes(count);
    EXPECT_RESULT(CUDA_SUCCESS, cuGraphGetNodes(graph, nodes.data(), &count));
    return nodes;
  }

  void run(CUgraph graph, int times = 1) {
    CUgraphExec executable = nullptr;
    OK(cuGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < times; ++i) OK(cuGraphLaunch(executable, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuGraphExecDestroy(executable));
  }

  CUgraphNode kernel_node(CUgraph graph, std::vector<CUgraphNode> after, int factor) {
    int n = 3;
    void* arguments[] = {&data, &n, &factor};
    CUDA_KERNEL_NODE_PARAMS parameters{};
    parameters.func = scale;
    parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
    parameters.blockDimX = 32;
    parameters.blockDimY = parameters.blockDimZ = 1;
    parameters.kernelParams = arguments;
    CUgraphNode node = nullptr;
    EXPECT_RESULT(CUDA_SUCCESS, cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &parameters));
    return node;
  }

  CUstream stream = nullptr;
  CUfunction scale = nullptr;
  CUdeviceptr data = 0;
};

TEST_F(GraphTest, CapturesAStream) {
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureStatus status{};
  OK(cuStreamIsCapturing(stream, &status));
  EXPECT_EQ(CU_STREAM_CAPTURE_STATUS_ACTIVE, status);
  OK(cuMemsetD32Async(data, 5, 2, stream));
  OK(launch(scale, 1, 32, 0, stream, data, 3, 10));
  OK(cuMemcpyDtoDAsync(data, data + 4, 4, stream));
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  EXPECT_THAT(host_array(data, 3), ElementsAre(1, 2, 3));
  const std::vector<CUgraphNode> nodes = nodes_of(graph);
  ASSERT_EQ(3U, nodes.size());
  CUgraphNodeType type{};
  OK(cuGraphNodeGetType(nodes[1], &type));
  EXPECT_EQ(CU_GRAPH_NODE_TYPE_KERNEL, type);
  run(graph, 2);
  EXPECT_THAT(host_array(data, 3), ElementsAre(50, 50, 300));
  OK(cuGraphDestroy(graph));
}

TEST_F(GraphTest, CapturesForkAndJoin) {
  CUstream other = nullptr;
  CUevent fork = nullptr, join = nullptr;
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&fork, 0));
  OK(cuEventCreate(&join, 0));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(launch(scale, 1, 32, 0, stream, data, 3, 2));
  OK(cuEventRecord(fork, stream));
  OK(cuStreamWaitEvent(other, fork, 0));
  OK(launch(scale, 1, 32, 0, other, data, 1, 3));
  EXPECT_RESULT(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(fork));
  OK(launch(scale, 1, 32, 0, stream, data + 4, 1, 5));
  OK(cuEventRecord(join, other));
  OK(cuStreamWaitEvent(stream, join, 0));
  OK(cuMemcpyDtoDAsync(data + 8, data, 4, stream));
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  size_t roots = 0, edges = 0;
  OK(cuGraphGetRootNodes(graph, nullptr, &roots));
  OK(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(1U, roots);
  EXPECT_EQ(4U, edges);
  run(graph);
  EXPECT_THAT(host_array(data, 3), ElementsAre(6, 20, 6));
  OK(cuGraphDestroy(graph));
}

TEST_F(GraphTest, DoesNotEndACaptureThatHasNotComeBack) {
  CUstream other = nullptr;
  CUevent fork = nullptr;
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&fork, 0));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuEventRecord(fork, stream));
  OK(cuStreamWaitEvent(other, fork, 0));
  OK(launch(scale, 1, 32, 0, other, data, 1, 3));
  CUgraph graph = nullptr;
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(stream, &graph));
  EXPECT_EQ(nullptr, graph);
  OK(launch(scale, 1, 32, 0, other, data, 1, 3));
  OK(cuStreamSynchronize(other));
}

TEST_F(GraphTest, SpoilsACaptureByWaiting) {
  CUgraph graph = nullptr;
  CUdeviceptr memory = 0;
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&memory, 4));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, launch(scale, 1, 32, 0, stream, data, 3, 2));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
  CUevent event = nullptr;
  OK(cuEventCreate(&event, 0));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuEventQuery(event));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(CU_STREAM_PER_THREAD));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuMemAlloc(&memory, 4));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(CU_STREAM_CAPTURE_MODE_GLOBAL, mode);
  OK(cuMemAlloc(&memory, 4));
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphDestroy(graph));
}

TEST_F(GraphTest, KeepsTheLegacyStreamOutOfCaptures) {
  CUstream blocking = nullptr;
  OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, launch(scale, 1, 32, 0, nullptr, data, 3, 2));
  CUgraph graph = nullptr;
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &graph));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(launch(scale, 1, 32, 0, nullptr, data, 3, 2));
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphDestroy(graph));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

TEST_F(GraphTest, IsBuiltByHand) {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS set{data, 0, 7, 4, 3, 1};
  CUgraphNode set_node = nullptr;
  OK(cuGraphAddMemsetNode(&set_node, graph, nullptr, 0, &set, context));
  CUgraphNode const twice = kernel_node(graph, {set_node}, 2);
  CUgraphNode const thrice = kernel_node(graph, {}, 3);
  OK(cuGraphAddDependencies(graph, &twice, &thrice, nullptr, 1));
  static int seen;
  seen = 0;
  CUDA_HOST_NODE_PARAMS host{[](void* by) { seen += *static_cast<int*>(by); }, &seen};
  int step = 4;
  host.userData = &step;
  CUgraphNode host_node = nullptr;
  OK(cuGraphAddHostNode(&host_node, graph, &thrice, 1, &host));
  run(graph, 3);
  EXPECT_THAT(host_array(data, 3), ElementsAre(42, 42, 42));
  EXPECT_EQ(12, seen);

  CUDA_KERNEL_NODE_PARAMS parameters{};
  OK(cuGraphKernelNodeGetParams(twice, &parameters));
  EXPECT_EQ(scale, parameters.func);
  EXPECT_EQ(2, *static_cast<int*>(parameters.kernelParams[2]));
  int factor = 5;
  void* arguments[] = {parameters.kernelParams[0], parameters.kernelParams[1], &factor};
  parameters.kernelParams = arguments;
  OK(cuGraphKernelNodeSetParams(twice, &parameters));
  run(graph);
  EXPECT_THAT(host_array(data, 3), ElementsAre(105, 105, 105));

  OK(cuGraphAddDependencies(graph, &thrice, &set_node, nullptr, 1));
  CUgraphExec executable = nullptr;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&executable, graph, 0));
  OK(cuGraphDestroy(graph));
}

TEST_F(GraphTest, ChangesInstantiatedGraphs) {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUgraphNode const node = kernel_node(graph, {}, 2);
  CUgraphExec executable = nullptr;
  OK(cuGraphInstantiate(&executable, graph, 0));
  CUDA_KERNEL_NODE_PARAMS parameters{};
  OK(cuGraphKernelNodeGetParams(node, &parameters));
  int n = 1, factor = 100;
  void* arguments[] = {&data, &n, &factor};
  parameters.kernelParams = arguments;
  OK(cuGraphExecKernelNodeSetParams(executable, node, &parameters));
  OK(cuGraphLaunch(executable, stream));
  OK(cuStreamSynchronize(stream));
  EXPECT_THAT(host_array(data, 3), ElementsAre(100, 2, 3));
  OK(cuGraphNodeSetEnabled(executable, node, 0));
  OK(cuGraphLaunch(executable, stream));
  OK(cuStreamSynchronize(stream));
  EXPECT_THAT(host_array(data, 3), ElementsAre(100, 2, 3));
  OK(cuGraphExecDestroy(executable));
  OK(cuGraphDestroy(graph));
}

// As on an H200 with driver 580.
TEST_F(GraphTest, LaunchesFromTheDeviceOnlyWhereANodeBeganToDoSo) {
  CUfunction const parent = function("kernels.ptx", "parent");
  CUgraph plain = nullptr, launching = nullptr;
  for (CUgraph* graph : {&plain, &launching}) OK(cuGraphCreate(graph, 0));
  CUgraphNode const node = kernel_node(plain, {}, 3), began = kernel_node(launching, {}, 3);
  CUDA_KERNEL_NODE_PARAMS as_scale{}, as_parent{};
  OK(cuGraphKernelNodeGetParams(node, &as_scale));
  as_parent = as_scale;
  as_parent.func = parent;
  OK(cuGraphKernelNodeSetParams(began, &as_parent));
  CUgraphExec first = nullptr, second = nullptr;
  OK(cuGraphInstantiate(&first, plain, 0));
  OK(cuGraphInstantiate(&second, launching, 0));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(first, node, &as_parent));
  CUgraphExecUpdateResultInfo info{};
  EXPECT_RESULT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(first, launching, &info));
  OK(cuGraphExecKernelNodeSetParams(second, began, &as_scale));
  OK(cuGraphExecKernelNodeSetParams(second, began, &as_parent));
  OK(cuGraphExecUpdate(second, plain, &info));
  OK(cuGraphExecUpdate(second, launching, &info));
  for (CUgraph graph : {plain, launching}) OK(cuGraphDestroy(graph));
  for (CUgraphExec executable : {first, second}) OK(cuGraphExecDestroy(executable));
}

TEST_F(GraphTest, HoldsGraphs) {
  CUgraph inner = nullptr, outer = nullptr;
  OK(cuGraphCreate(&inner, 0));
  OK(cuGraphCreate(&outer, 0));
  kernel_node(inner, {}, 3);
  CUgraphNode child = nullptr;
  OK(cuGraphAddChildGraphNode(&child, outer, nullptr, 0, inner));
  kernel_node(outer, {child}, 2);
  OK(cuGraphDestroy(inner));
  run(outer);
  EXPECT_THAT(host_array(data, 3), ElementsAre(6, 12, 18));
  CUgraph embedded = nullptr, copy = nullptr;
  OK(cuGraphChildGraphNodeGetGraph(child, &embedded));
  EXPECT_EQ(1U, nodes_of(embedded).size());
  OK(cuGraphClone(&copy, outer));
  OK(cuGraphDestroy(outer));
  EXPECT_EQ(2U, nodes_of(copy).size());
  run(copy);
  EXPECT_THAT(host_array(data, 3), ElementsAre(36, 72, 108));
  OK(cuGraphDestroy(copy));
}

TEST_F(GraphTest, ChangesNodesOfGraphsWithin) {
  CUgraph inner = nullptr, middle = nullptr, outer = nullptr;
  for (CUgraph* graph : {&inner, &middle, &outer}) OK(cuGraphCreate(graph, 0));
  CUgraphNode const not_within = kernel_node(inner, {}, 3);
  CUgraphNode in_middle = nullptr, in_outer = nullptr;
  OK(cuGraphAddChildGraphNode(&in_middle, middle, nullptr, 0, inner));
  OK(cuGraphAddChildGraphNode(&in_outer, outer, nullptr, 0, middle));
  const auto within = [](CUgraphNode node) {
    CUgraph graph = nullptr;
    EXPECT_RESULT(CUDA_SUCCESS, cuGraphChildGraphNodeGetGraph(node, &graph));
    return nodes_of(graph).at(0);
  };
  CUgraphNode const node = within(within(in_outer));
  CUgraphExec first = nullptr, second = nullptr;
  for (CUgraphExec* each : {&first, &second}) OK(cuGraphInstantiate(each, outer, 0));
  const auto launch = [&](CUgraphExec executable) {
    OK(cuGraphLaunch(executable, stream));
    OK(cuStreamSynchronize(stream));
  };
  CUDA_KERNEL_NODE_PARAMS parameters{};
  OK(cuGraphKernelNodeGetParams(node, &parameters));
  int n = 3, factor = 10;
  void* arguments[] = {&data, &n, &factor};
  parameters.kernelParams = arguments;
  OK(cuGraphExecKernelNodeSetParams(first, node, &parameters));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphExecKernelNodeSetParams(first, not_within, &parameters));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(first, not_within, 0));
  launch(first);
  EXPECT_THAT(host_array(data, 3), ElementsAre(10, 20, 30));
  launch(second);
  EXPECT_THAT(host_array(data, 3), ElementsAre(30, 60, 90));

  // After an update from another graph, the nodes are those of the first one.
  CUgraph other = nullptr;
  OK(cuGraphClone(&other, outer));
  CUgraphExecUpdateResultInfo info{};
  OK(cuGraphExecUpdate(first, other, &info));
  OK(cuGraphNodeSetEnabled(first, node, 0));
  launch(first);
  EXPECT_THAT(host_array(data, 3), ElementsAre(30, 60, 90));

  kernel_node(middle, {in_middle}, 2);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuGraphExecChildGraphNodeSetParams(first, in_outer, middle));
  for (CUgraph graph : {inner, middle, outer, other}) OK(cuGraphDestroy(graph));
  for (CUgraphExec executable : {first, second}) OK(cuGraphExecDestroy(executable));
}

TEST_F(GraphTest, HasTheUserObjectsOfItsLastUpdate) {
  bool has_ended[2] = {};
  CUgraph first = nullptr, second = nullptr;
  const auto make = [&](CUgraph& graph, bool& ended) {
    OK(cuGraphCreate(&graph, 0));
    kernel_node(graph, {}, 2);
    CUuserObject object = nullptr;
    const CUhostFn end = [](void* of) { *static_cast<bool*>(of) = true; };
    OK(cuUserObjectCreate(&object, &ended, end, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  };
  make(first, has_ended[0]);
  make(second, has_ended[1]);
  CUgraphExec executable = nullptr;
  OK(cuGraphInstantiate(&executable, first, 0));
  OK(cuGraphDestroy(first));
  OK(cuGraphLaunch(executable, stream));
  CUgraphExecUpdateResultInfo info{};
  OK(cuGraphExecUpdate(executable, second, &info));
  OK(cuGraphDestroy(second));
  EXPECT_FALSE(has_ended[0]);  // its launch may be running
  OK(cuCtxSynchronize());
  EXPECT_TRUE(has_ended[0]);
  OK(cuGraphLaunch(executable, stream));
  OK(cuGraphExecDestroy(executable));
  EXPECT_FALSE(has_ended[1]);
  OK(cuCtxSynchronize());
  EXPECT_TRUE(has_ended[1]);
}

TEST_F(GraphTest, LaunchesIntoNoCapture) {
  CUgraph graph = nullptr, captured = nullptr;
  OK(cuGraphCreate(&graph, 0));
  kernel_node(graph, {}, 2);
  CUgraphExec executable = nullptr;
  OK(cuGraphInstantiate(&executable, graph, 0));
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuGraphLaunch(executable, stream));
  EXPECT_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &captured));
  OK(cuGraphExecDestroy(executable));
  OK(cuGraphDestroy(graph));
}

}  // namespace
}  // namespace klap::emulator::driver_test
