// Children of one block that update a counter up and down, and somebody who looks at it meanwhile: a block of
// the parent, or a child of another block. CUDA runs the children one after another, so the counter is never
// above 1, though all updates commute (src/analysis/order/launch_order.h).
#include "case.h"

namespace klap::differential::looks {

constexpr int kCounter = 0, kWork = 1, kSeen = 3, kCells = 4;
constexpr int kRounds = 40;

#ifdef __CUDACC__

__global__ void count_itself(int* cells) {
  atomicAdd(cells + kCounter, 1);
  for (int i = 0; i < kRounds; ++i) atomicAdd(cells + kWork + i % 2, 1);
  atomicAdd(cells + kCounter, -1);
}
__device__ void look(int* cells) {
  int most = 0;
  for (int i = 0; i < 400; ++i) most = max(most, *static_cast<volatile int*>(cells + kCounter));
  if (most > 1) atomicAdd(cells + kSeen, most);
}
__global__ void looker(int* cells) { look(cells); }

extern "C" __global__ void looking_parent(int* cells) {
  if (blockIdx.x == 0) {
    count_itself<<<1, 1>>>(cells);
  } else if (threadIdx.x == 0) {
    look(cells);
  }
}
extern "C" __global__ void parent_of_looker(int* cells) {
  if (blockIdx.x == 0) {
    count_itself<<<1, 1>>>(cells);
  } else if (threadIdx.x == 0) {
    looker<<<1, 1>>>(cells);
  }
}

#else

namespace {
void looked_at(Builder& c, const char* parent) {
  constexpr int kChildren = 20;
  std::vector<int> cells(kCells);
  cells[kWork] = cells[kWork + 1] = kChildren * kRounds / 2;
  const auto of_cells = c.buffer("cells", std::vector<int>(kCells), cells);
  c.launch(parent, {2, 1, 1}, {kChildren, 1, 1}, c.address(of_cells));
}
}  // namespace

KLAP_CASE(looked_at_by_parent, "a block of the parent sees two children of another block at once") {
  looked_at(c, "looking_parent");
  c.left("looking_parent", "parent-waits");
  c.by_warp("order-kept");
}
KLAP_CASE(looked_at_by_child, "a child sees two children of another block at once") {
  looked_at(c, "parent_of_looker");
  c.left("parent_of_looker", "child-waits");
  c.by_warp("any");
}

#endif
}  // namespace klap::differential::looks
