// The contract where the host takes part: its streams, copies and module variables, beside grids that launch
// from the device.
#include "contract_forms.h"

namespace klap::differential::contract::host {

#ifdef __CUDACC__

__global__ void add(int* cell, int value) {
  if (threadIdx.x == 0) atomicAdd(cell, value);
}
__global__ void fold_later(int* cell, int value) {
  fold(cell, value);
  add<<<2, 2, 0, cudaStreamFireAndForget>>>(cell, value);
}

// Grids of the host whose work goes on long after their own threads have ended.
extern "C" __global__ void contract_deep_work(int* cells, int value) {
  fold_later<<<1, 1>>>(cells, value);
  fold_later<<<1, 1>>>(cells, value + 1);
}
extern "C" __global__ void contract_work_at_end(int* cells, int value) {
  fold_later<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, value);
  fold_later<<<1, 1, 0, cudaStreamTailLaunch>>>(cells, value + 1);
}
extern "C" __global__ void contract_work_in_streams(int* cells, int value) {
  const cudaStream_t stream = create();
  fold_later<<<1, 1, 0, stream>>>(cells, value);
  fold_later<<<1, 1, 0, stream>>>(cells, value + 1);
  cudaStreamDestroy(stream);
}
extern "C" __global__ void contract_forgotten_work(int* cells, int value) {
  add<<<3, 2, 0, cudaStreamFireAndForget>>>(cells, value);
  add<<<2, 2, 0, cudaStreamFireAndForget>>>(cells, value);
}
// The host and the device launch it.
extern "C" __global__ void contract_both(int* cells, int value) {
  note(cells, value);
  if (value % 4 == 0) return;
  contract_both<<<1, 1>>>(cells, value - 1);
  contract_both<<<1, 1>>>(cells, value / 4 * 4);
}
// It launches nothing, and reads what the grid before it led to.
extern "C" __global__ void contract_read(const int* cells, int* to) { note(to, *cells); }

// ---- variables of the module ----

__device__ int contract_cells[16];
__device__ int contract_sum;
__constant__ int contract_constants[16];
__global__ void fill_module(int value) {
  const int t = static_cast<int>(threadIdx.x);
  contract_cells[t] += value * contract_constants[t];
}
__global__ void sum_module() {
  for (const int cell : contract_cells) fold(&contract_sum, cell);
}
__global__ void module_round(int value) {
  fill_module<<<1, 16>>>(value);
  sum_module<<<1, 1>>>();
}
extern "C" __global__ void contract_module_parent(int value) {
  module_round<<<1, 1>>>(value);
  module_round<<<1, 1>>>(value + 1);
}
// A child takes the variable's address from its launcher.
__global__ void fold_at(int* cell, int value) { fold(cell, value); }
__global__ void fold_sum(int value) {
  fold_at<<<1, 1>>>(&contract_sum, value);
  fold_at<<<1, 1>>>(&contract_sum, value + 1);
}
extern "C" __global__ void contract_address_parent(int value) {
  fold_sum<<<1, 1>>>(value);
  fold_sum<<<1, 1>>>(value + 2);
}

#else

// The device's work on its cell, for one grid of the host.
void ordered_work(int& cell, int value) {
  for (int i = 0; i < 2; ++i) {
    fold(&cell, value + i);
    cell += 2 * (value + i);
  }
}
void forgotten_work(int& cell, int value) { cell += 5 * value; }

constexpr const char* kNextGrid =
    "The host's next grid in a stream begins when all is complete that the grid before it launched.";

// Grids of the host into one stream, each of which is followed by one that reads.
void fill_next_grid(Builder& c, const char* parent, const char* form, void (*work)(int&, int),
                    uint32_t stream) {
  int cell = 0;
  std::vector<int> log(32);
  for (int i = 1; i < 6; ++i) {
    work(cell, i);
    note(log.data(), cell);
  }
  const auto cells = c.buffer("cells", std::vector<int>(1), std::vector<int>{cell});
  const auto to = c.buffer("log", std::vector<int>(log.size()), log);
  for (int i = 1; i < 6; ++i) {
    c.launch_in(stream, parent, {1, 1, 1}, {1, 1, 1}, c.address(cells), i);
    c.launch_in(stream, "contract_read", {1, 1, 1}, {1, 1, 1}, c.address(cells), c.address(to));
  }
  c.contract(kNextGrid, form);
  c.setting("KLAP_OPTIMISE", kExecutor);
}

// Copies and fills of the host behind and before such grids.
void fill_copies(Builder& c, const char* parent, const char* form, void (*work)(int&, int), uint32_t stream) {
  int cell = 0, other = 0;
  work(cell, 3);
  other = cell;
  work(other, 4);
  const auto cells = c.buffer("cells", std::vector<int>(1), std::vector<int>{0x01010101});
  const auto copy = c.buffer("copy", std::vector<int>(1), std::vector<int>{other});
  c.launch_in(stream, parent, {1, 1, 1}, {1, 1, 1}, c.address(cells), 3);
  c.copy(copy, cells, stream);
  c.fill(cells, 1, stream);
  c.launch_in(stream, parent, {1, 1, 1}, {1, 1, 1}, c.address(copy), 4);
  c.contract(
      "The host's copies and fills in a stream wait for all that the grid before them launched, and grids "
      "behind them see them.",
      form);
  c.setting("KLAP_OPTIMISE", kExecutor);
}

void fill_module(Builder& c, const char* parent, const char* says, const char* form, bool is_by_address) {
  std::vector<int> cells(16), constants(16);
  for (int i = 0; i < 16; ++i) constants[static_cast<size_t>(i)] = i * i + 1;
  int sum = 0;
  for (int value = 3; value < 6; ++value) {
    for (int round = 0; round < 2; ++round) {
      if (is_by_address) {
        fold(&sum, value + 2 * round), fold(&sum, value + 2 * round + 1);
        continue;
      }
      for (size_t i = 0; i < 16; ++i) cells[i] += (value + round) * constants[i];
      for (const int cell : cells) fold(&sum, cell);
    }
  }
  const std::string scope = "_ZN4klap12differential8contract4host";
  c.variable(scope + "14contract_cellsE", std::vector<int>(16), cells);
  c.variable(scope + "12contract_sumE", std::vector<int>(1), std::vector<int>{sum});
  c.variable(scope + "18contract_constantsE", constants, constants);
  for (int value = 3; value < 6; ++value) c.launch(parent, {1, 1, 1}, {1, 1, 1}, value);
  c.contract(says, form);
  c.setting("KLAP_OPTIMISE", kExecutor);
}

#define NEXT_GRID(name, parent, form, work)                                                         \
  KLAP_CASE(contract_next_##name, "the host's next grid begins before a grandchild is complete") {  \
    fill_next_grid(c, parent, form "; the host's NULL stream", work, 0);                            \
  }                                                                                                 \
  KLAP_CASE(contract_next_##name##_in_stream, "a grid in a stream of the host begins too early") {  \
    fill_next_grid(c, parent, form "; a stream of the host", work, 1);                              \
  }                                                                                                 \
  KLAP_CASE(contract_copies_##name, "a copy of the host comes before a grandchild is complete") {   \
    fill_copies(c, parent, form "; the host's NULL stream", work, 0);                               \
  }                                                                                                 \
  KLAP_CASE(contract_copies_##name##_in_stream, "a copy in a stream of the host comes too early") { \
    fill_copies(c, parent, form "; a stream of the host", work, 2);                                 \
  }

NEXT_GRID(deep, "contract_deep_work", "grandchildren", ordered_work)
NEXT_GRID(end, "contract_work_at_end", "children of tail launches", ordered_work)
NEXT_GRID(streams, "contract_work_in_streams", "grandchildren in a created stream", ordered_work)
NEXT_GRID(forgotten, "contract_forgotten_work", "fire-and-forget children", forgotten_work)

KLAP_CASE(contract_host_streams, "grids of two streams of the host share streams or records of the device") {
  constexpr uint32_t kStreams = 3;
  std::vector<int> cells(kStreams);
  for (size_t stream = 0; stream < kStreams; ++stream) {
    for (int i = 1; i < 5; ++i) ordered_work(cells[stream], i);
  }
  const auto of_cells = c.buffer("cells", std::vector<int>(kStreams), cells);
  for (int i = 1; i < 5; ++i) {
    for (uint32_t stream = 0; stream < kStreams; ++stream)
      c.launch_in(stream + 1, "contract_deep_work", {1, 1, 1}, {1, 1, 1},
                  c.address(of_cells, sizeof(int) * stream), i);
  }
  c.contract("Grids of different streams of the host have nothing to do with each other's launches.",
             "three streams, four grids each");
  c.setting("KLAP_OPTIMISE", kExecutor);
}

KLAP_CASE(contract_host_synchronises, "a stream of the host is empty before a grandchild is complete") {
  int cell = 0, other = 5;
  for (int i = 1; i < 4; ++i) ordered_work(cell, i), ordered_work(other, i);
  const auto cells = c.buffer("cells", std::vector<int>{0, 5}, std::vector<int>{cell, other});
  for (int i = 1; i < 4; ++i) {
    // Other streams of the host launch into the same cells, which only the host orders.
    c.launch_in(static_cast<uint32_t>(i), "contract_deep_work", {1, 1, 1}, {1, 1, 1}, c.address(cells), i);
    c.synchronise_stream(static_cast<uint32_t>(i));
    c.launch_in(static_cast<uint32_t>(i), "contract_deep_work", {1, 1, 1}, {1, 1, 1},
                c.address(cells, sizeof(int)), i);
    c.synchronise();
  }
  c.contract(
      "If the host waits for a stream or for the device, it waits for all that grids there have launched.",
      "three streams of the host on the same cells");
  c.setting("KLAP_OPTIMISE", kExecutor);
}

KLAP_CASE(contract_both_sides, "a kernel behaves otherwise if the device launches it") {
  std::vector<int> log(64);
  const auto visit = [&](const auto& self, int value) -> void {
    note(log.data(), value);
    if (value % 4 == 0) return;
    self(self, value - 1);
    self(self, value / 4 * 4);
  };
  visit(visit, 7);
  visit(visit, 3);
  const auto cells = c.buffer("log", std::vector<int>(log.size()), log);
  c.launch("contract_both", {1, 1, 1}, {1, 1, 1}, c.address(cells), 7);
  c.launch("contract_both", {1, 1, 1}, {1, 1, 1}, c.address(cells), 3);
  c.contract("A kernel may be launched by the host and by the device.", "recursion");
  c.setting("KLAP_OPTIMISE", kExecutor);
}

KLAP_CASE(contract_module_variables, "a grid sees an old value of a variable of the module") {
  fill_module(
      c, "contract_module_parent",
      "Variables of the module are global memory, which all grids share; constants hold what the host wrote.",
      "grandchildren write and read", false);
}
KLAP_CASE(contract_module_addresses, "the address of a variable of the module is another one in a child") {
  fill_module(
      c, "contract_address_parent",
      "Addresses of variables of the module are the same in all grids, and may be passed to children.",
      "by argument", true);
}

#endif

}  // namespace klap::differential::contract::host
