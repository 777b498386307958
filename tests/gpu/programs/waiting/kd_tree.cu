// A k-d tree over points of the plane. Each block sorts its range of points by one coordinate and launches a
// block for each half. Two threads wait for the halves, and afterwards four threads compute the sides of the
// bounding box from the boxes of the halves.
#include "sizes.h"

struct Point {
  int at[2];
};

namespace {

constexpr int leaf_points = 4;

// Orders points by one coordinate, and by the other one where they are equal.
struct Before {
  int axis;
  __host__ __device__ bool operator()(const Point& a, const Point& b) const {
    if (a.at[axis] != b.at[axis]) return a.at[axis] < b.at[axis];
    return a.at[1 - axis] < b.at[1 - axis];
  }
};

}  // namespace

// A box has four sides: least x, least y, and the negatives of greatest x and greatest y. So each side is the
// least of something. The halves of node k are the nodes 2k + 1 and 2k + 2.
extern "C" __global__ void build(Point* points, Point* other, int* boxes, int node, int begin, int end,
                                 int axis);

#ifdef __CUDACC__
namespace {

__device__ void sort(Point* points, Point* other, int begin, int end, int axis) {
  const Before before{axis};
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += static_cast<int>(blockDim.x)) {
    int place = begin;
    for (int j = begin; j < end; ++j) place += before(points[j], points[i]) ? 1 : 0;
    other[place] = points[i];
  }
  __syncthreads();
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += static_cast<int>(blockDim.x)) {
    points[i] = other[i];
  }
  __syncthreads();
}

}  // namespace

extern "C" __global__ void build(Point* points, Point* other, int* boxes, int node, int begin, int end,
                                 int axis) {
  const int thread = static_cast<int>(threadIdx.x);
  if (end - begin <= leaf_points) {
    if (thread >= 4) return;
    int side = thread < 2 ? points[begin].at[thread] : -points[begin].at[thread - 2];
    for (int i = begin + 1; i < end; ++i) {
      side = min(side, thread < 2 ? points[i].at[thread] : -points[i].at[thread - 2]);
    }
    boxes[4 * node + thread] = side;
    return;
  }
  sort(points, other, begin, end, axis);
  const int middle = begin + (end - begin) / 2;
  if (thread < 2) {
    build<<<1, 32>>>(points, other, boxes, 2 * node + 1 + thread, thread == 0 ? begin : middle,
                     thread == 0 ? middle : end, 1 - axis);
    cudaDeviceSynchronize();
  }
  __syncthreads();
  if (thread >= 4) return;
  boxes[4 * node + thread] = min(boxes[4 * (2 * node + 1) + thread], boxes[4 * (2 * node + 2) + thread]);
}
#endif

#ifndef __CUDACC_RTC__
#include <algorithm>

namespace {

void on_cpu(std::vector<Point>& points, std::vector<int>& boxes, int node, int begin, int end, int axis) {
  const auto first = points.begin() + begin, last = points.begin() + end;
  const auto [left, right] = std::minmax_element(first, last, Before{0});
  const auto [low, high] = std::minmax_element(first, last, Before{1});
  const int sides[4] = {left->at[0], low->at[1], -right->at[0], -high->at[1]};
  std::copy(sides, sides + 4, boxes.begin() + 4 * node);
  if (end - begin <= leaf_points) return;
  std::sort(first, last, Before{axis});
  const int middle = begin + (end - begin) / 2;
  on_cpu(points, boxes, 2 * node + 1, begin, middle, 1 - axis);
  on_cpu(points, boxes, 2 * node + 2, middle, end, 1 - axis);
}

std::vector<int> coordinates(const std::vector<Point>& points) {
  std::vector<int> all;
  for (const Point& point : points) all.insert(all.end(), point.at, point.at + 2);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  return waiting::at_sizes("kd_tree", argc, argv, [](gpu::Report& report, int size) {
    const int n = 10 + 120 * size;
    std::vector<Point> want;
    for (int i = 0; i < n; ++i) want.push_back({{i * 367 % 1009, i * i * 31 % 97}});
    gpu::Buffer<Point> points(want), other(n);
    std::vector<int> want_boxes(4 * 2 * n);
    gpu::Buffer<int> boxes(want_boxes);
    WAITING_LAUNCH(build, 1, 32)(points.data(), other.data(), boxes.data(), 0, 0, n, 0);
    gpu::wait("build");
    on_cpu(want, want_boxes, 0, 0, n, 0);
    report.expect_equal("a coordinate", coordinates(points.to_host()), coordinates(want));
    report.expect_equal("a side of a box", boxes.to_host(), want_boxes);
  });
}
#endif
