// Algorithms that people write with launches from kernels, in the forms of textbooks and samples: a picture
// by subdivision, sorts, shortest paths, searches, sums, lists. Each is compared with what the CPU makes of
// the same input.
//
// They differ from the programs that test one thing each in what they combine: recursion with streams that
// are destroyed at once, tail launches beside others, a driver of one thread with large kernels, arguments
// that take a loop to compute, kernels with shared memory beside kernels without.
#include <algorithm>
#include <numeric>

#include "program.h"

// ---- a picture: squares whose border has one colour are filled ----

constexpr int kWidth = 128;
constexpr int kMostSteps = 64;
constexpr int kDeepest = 4;
constexpr int kBorderThreads = 32;
constexpr int kMixed = -1;

__host__ __device__ int colour(int x, int y) {
  // Whole numbers let host and device agree.
  const int cx = -2048 + 3072 * x / kWidth, cy = -1536 + 3072 * y / kWidth;
  int zx = cx, zy = cy, steps = 0;
  while (steps < kMostSteps && zx * zx + zy * zy < 4 * 1024 * 1024) {
    const int next = (zx * zx - zy * zy) / 1024 + cx;
    zy = 2 * zx * zy / 1024 + cy;
    zx = next;
    ++steps;
  }
  return steps;
}

__global__ void fill_square(int* picture, int x0, int y0, int size, int with) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < size && y < size) picture[(y0 + y) * kWidth + x0 + x] = with;
}

__global__ void draw_square(int* picture, int x0, int y0, int size) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < size && y < size) picture[(y0 + y) * kWidth + x0 + x] = colour(x0 + x, y0 + y);
}

// The colour of all pixels of a square's border, or kMixed.
__device__ int border_colour(int x0, int y0, int size) {
  __shared__ int is_mixed;
  const int first = colour(x0, y0);
  if (threadIdx.x == 0) is_mixed = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    const bool differs = colour(x0 + i, y0) != first || colour(x0 + i, y0 + size - 1) != first ||
                         colour(x0, y0 + i) != first || colour(x0 + size - 1, y0 + i) != first;
    if (differs) is_mixed = 1;
  }
  __syncthreads();
  return is_mixed != 0 ? kMixed : first;
}

__global__ void subdivide(int* picture, int x0, int y0, int size, int depth) {
  x0 += size * blockIdx.x;
  y0 += size * blockIdx.y;
  const int with = border_colour(x0, y0, size);
  if (threadIdx.x != 0) return;
  const dim3 block(8, 4), grid((size + 7) / 8, (size + 3) / 4);
  if (with != kMixed) {
    fill_square<<<grid, block>>>(picture, x0, y0, size, with);
  } else if (depth + 1 < kDeepest) {
    subdivide<<<dim3(2, 2), kBorderThreads>>>(picture, x0, y0, size / 2, depth + 1);
  } else {
    draw_square<<<grid, block>>>(picture, x0, y0, size);
  }
}

bool fill_on_host(std::vector<int>& picture, int x0, int y0, int size) {
  const int first = colour(x0, y0);
  for (int i = 0; i < size; ++i) {
    if (colour(x0 + i, y0) != first || colour(x0 + i, y0 + size - 1) != first ||
        colour(x0, y0 + i) != first || colour(x0 + size - 1, y0 + i) != first)
      return false;
  }
  for (int y = y0; y < y0 + size; ++y) {
    for (int x = x0; x < x0 + size; ++x) picture[y * kWidth + x] = first;
  }
  return true;
}

void subdivide_on_host(std::vector<int>& picture, int x0, int y0, int size, int depth) {
  if (fill_on_host(picture, x0, y0, size)) return;
  if (depth + 1 == kDeepest) {
    for (int y = y0; y < y0 + size; ++y) {
      for (int x = x0; x < x0 + size; ++x) picture[y * kWidth + x] = colour(x, y);
    }
    return;
  }
  for (int quarter = 0; quarter < 4; ++quarter)
    subdivide_on_host(picture, x0 + quarter % 2 * size / 2, y0 + quarter / 2 * size / 2, size / 2, depth + 1);
}

void check_picture(gpu::Report& report) {
  std::vector<int> expected(kWidth * kWidth);
  for (int quarter = 0; quarter < 4; ++quarter)
    subdivide_on_host(expected, quarter % 2 * kWidth / 2, quarter / 2 * kWidth / 2, kWidth / 2, 0);
  gpu::Buffer<int> picture(expected.size());
  subdivide<<<dim3(2, 2), kBorderThreads>>>(picture.data(), 0, 0, kWidth / 2, 0);
  gpu::wait("subdivide");
  report.expect_equal("picture", picture.to_host(), expected);
}

// ---- sorts ----

constexpr int kSorted = 512;
constexpr int kSmallSort = 16;

std::vector<int> numbers(int count) {
  std::vector<int> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) values[i] = (i * 7919 + 13) % 1009;
  return values;
}

__device__ void sort_by_selection(int* values, int count) {
  for (int i = 0; i < count; ++i) {
    int least = i;
    for (int j = i + 1; j < count; ++j) least = values[j] < values[least] ? j : least;
    const int value = values[i];
    values[i] = values[least];
    values[least] = value;
  }
}

__global__ void quicksort(int* values, int left, int right, int depth) {
  if (depth == 12 || right - left < kSmallSort) {
    sort_by_selection(values + left, right - left + 1);
    return;
  }
  const int pivot = values[(left + right) / 2];
  int low = left, high = right;
  while (low <= high) {
    while (values[low] < pivot) ++low;
    while (values[high] > pivot) --high;
    if (low > high) break;
    const int value = values[low];
    values[low++] = values[high];
    values[high--] = value;
  }
  if (left < high) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    quicksort<<<1, 1, 0, stream>>>(values, left, high, depth + 1);
    cudaStreamDestroy(stream);
  }
  if (low < right) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    quicksort<<<1, 1, 0, stream>>>(values, low, right, depth + 1);
    cudaStreamDestroy(stream);
  }
}

__global__ void merge_halves(int* values, int* room, int count) {
  const int half = count / 2;
  for (int i = 0, a = 0, b = half; i < count; ++i) {
    const bool takes_first = b == count || (a < half && values[a] <= values[b]);
    room[i] = takes_first ? values[a++] : values[b++];
  }
  for (int i = 0; i < count; ++i) values[i] = room[i];
}

// It sorts both halves beside each other, and merges them behind both.
__global__ void merge_sort(int* values, int* room, int count) {
  if (count <= kSmallSort) {
    sort_by_selection(values, count);
    return;
  }
  const int half = count / 2;
  merge_sort<<<1, 1, 0, cudaStreamFireAndForget>>>(values, room, half);
  merge_sort<<<1, 1, 0, cudaStreamFireAndForget>>>(values + half, room + half, count - half);
  merge_halves<<<1, 1, 0, cudaStreamTailLaunch>>>(values, room, count);
}

__global__ void compare_and_exchange(int* values, int distance, int length) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ distance;
  if (other <= i) return;
  const bool ascends = (i & length) == 0;
  if ((values[i] > values[other]) != ascends) return;
  const int value = values[i];
  values[i] = values[other];
  values[other] = value;
}

__global__ void bitonic_sort(int* values, int count) {
  for (int length = 2; length <= count; length *= 2) {
    for (int distance = length / 2; distance > 0; distance /= 2)
      compare_and_exchange<<<count / 64, 64>>>(values, distance, length);
  }
}

void check_sorts(gpu::Report& report) {
  const std::vector<int> input = numbers(kSorted);
  std::vector<int> expected = input;
  std::sort(expected.begin(), expected.end());
  gpu::Buffer<int> quick(input), merged(input), bitonic(input), room(input.size());
  quicksort<<<1, 1>>>(quick.data(), 0, kSorted - 1, 0);
  merge_sort<<<1, 1>>>(merged.data(), room.data(), kSorted);
  bitonic_sort<<<1, 1>>>(bitonic.data(), kSorted);
  gpu::wait("sorts");
  report.expect_equal("quicksort", quick.to_host(), expected);
  report.expect_equal("merge sort", merged.to_host(), expected);
  report.expect_equal("bitonic sort", bitonic.to_host(), expected);
}

// ---- graphs ----

constexpr int kVertices = 200;
constexpr int kNear = 40;  // vertices of the graph of distances

struct Graph {
  std::vector<int> first{0}, target;
};

Graph sample_graph() {
  Graph graph;
  for (int v = 0; v < kVertices; ++v) {
    const int degree = (v * v + 3) % 13 + (v % 50 == 7 ? 150 : 0);
    for (int k = 0; k < degree; ++k) graph.target.push_back((v * 31 + k * k * 7 + k + 1) % kVertices);
    graph.first.push_back(static_cast<int>(graph.target.size()));
  }
  return graph;
}

std::vector<int> levels_on_host(const Graph& graph) {
  std::vector<int> level(kVertices, -1), queue = {0};
  level[0] = 0;
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int e = graph.first[queue[i]]; e < graph.first[queue[i] + 1]; ++e) {
      const int to = graph.target[e];
      if (level[to] != -1) continue;
      level[to] = level[queue[i]] + 1;
      queue.push_back(to);
    }
  }
  return level;
}

struct Search {
  const int* first;
  const int* target;
  int* level;
  int* queues[2];
  int* counts;
};

__global__ void expand(Search search, int level) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= search.counts[level % 2]) return;
  const int v = search.queues[level % 2][i];
  for (int e = search.first[v]; e < search.first[v + 1]; ++e) {
    const int to = search.target[e];
    if (atomicCAS(&search.level[to], -1, level + 1) != -1) continue;
    search.queues[(level + 1) % 2][atomicAdd(&search.counts[(level + 1) % 2], 1)] = to;
  }
}

__global__ void search_by_tails(Search search, int level) {
  const int count = search.counts[level % 2];
  if (count == 0) return;
  search.counts[(level + 1) % 2] = 0;
  expand<<<(count + 31) / 32, 32>>>(search, level);
  search_by_tails<<<1, 1, 0, cudaStreamTailLaunch>>>(search, level + 1);
}

__global__ void visit(const int* target, int begin, int end, int* levels, int level) {
  const int e = begin + blockIdx.x * blockDim.x + threadIdx.x;
  if (e < end) atomicCAS(&levels[target[e]], -1, level + 1);
}

__global__ void visit_level(const int* first, const int* target, int* levels, int level) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= kVertices || levels[v] != level) return;
  const int begin = first[v], end = first[v + 1];
  if (end > begin) visit<<<(end - begin + 31) / 32, 32>>>(target, begin, end, levels, level);
}

__global__ void relax(int* distances, int through) {
  const int to = blockIdx.x * blockDim.x + threadIdx.x, from = blockIdx.y;
  if (to >= kNear) return;
  const int by = distances[from * kNear + through] + distances[through * kNear + to];
  if (by < distances[from * kNear + to]) distances[from * kNear + to] = by;
}

__global__ void all_distances(int* distances) {
  for (int through = 0; through < kNear; ++through)
    relax<<<dim3((kNear + 31) / 32, kNear), 32>>>(distances, through);
}

void check_searches(gpu::Report& report) {
  const Graph graph = sample_graph();
  const std::vector<int> expected = levels_on_host(graph);
  std::vector<int> begin(kVertices, -1);
  begin[0] = 0;
  gpu::Buffer<int> first(graph.first), target(graph.target), by_tails(begin), by_level(begin);
  gpu::Buffer<int> queue(kVertices), other_queue(kVertices), counts(std::vector<int>{1, 0});
  search_by_tails<<<1, 1>>>(
      {first.data(), target.data(), by_tails.data(), {queue.data(), other_queue.data()}, counts.data()}, 0);
  const int deepest = *std::max_element(expected.begin(), expected.end());
  for (int level = 0; level <= deepest; ++level) {
    visit_level<<<(kVertices + 63) / 64, 64>>>(first.data(), target.data(), by_level.data(), level);
    gpu::wait("a level");
  }
  gpu::wait("searches");
  report.expect_equal("search by tail launches", by_tails.to_host(), expected);
  report.expect_equal("search by levels", by_level.to_host(), expected);

  std::vector<int> distances = numbers(kNear * kNear);
  gpu::Buffer<int> all(distances);
  for (int k = 0; k < kNear; ++k) {
    for (int i = 0; i < kNear; ++i) {
      for (int j = 0; j < kNear; ++j)
        distances[i * kNear + j] =
            std::min(distances[i * kNear + j], distances[i * kNear + k] + distances[k * kNear + j]);
    }
  }
  all_distances<<<1, 1>>>(all.data());
  gpu::wait("all_distances");
  report.expect_equal("distances", all.to_host(), distances);
}

// ---- sums and counts ----

constexpr int kSummed = 20000;
constexpr int kSumBlock = 64;
constexpr int kQueens = 6;
constexpr int kSolutions = 4;  // of that many queens

__global__ void sum_blocks(int* to, const int* from, int count) {
  __shared__ int sums[kSumBlock];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  sums[threadIdx.x] = i < count ? from[i] : 0;
  __syncthreads();
  for (int half = kSumBlock / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) to[blockIdx.x] = sums[0];
}

// The sums of one step are the values of the next one.
__global__ void sum_all(int* values, int* sums, int count) {
  if (count == 1) return;
  const int blocks = (count + kSumBlock - 1) / kSumBlock;
  sum_blocks<<<blocks, kSumBlock>>>(sums, values, count);
  sum_all<<<1, 1, 0, cudaStreamTailLaunch>>>(sums, values, blocks);
}

__device__ unsigned finished_blocks;

__global__ void add_sum(int* values, int count, const int* sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] += *sum;
}

// The last block to end launches what needs the results of all.
__global__ void sum_then_add(int* values, int count, int* sum) {
  __shared__ bool is_last;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(sum, values[i]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicInc(&finished_blocks, gridDim.x - 1) == gridDim.x - 1;
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  __threadfence();  // what the others added before they counted themselves
  add_sum<<<(count + kSumBlock - 1) / kSumBlock, kSumBlock>>>(values, count, sum);
}

// A thread for each column of a row.
__global__ void place_queens(int row, unsigned columns, unsigned rising, unsigned falling, int* solutions) {
  const unsigned column = 1u << threadIdx.x;
  if (((columns | rising | falling) & column) != 0) return;
  if (row + 1 == kQueens) {
    atomicAdd(solutions, 1);
    return;
  }
  place_queens<<<1, kQueens>>>(row + 1, columns | column, (rising | column) << 1, (falling | column) >> 1,
                               solutions);
}

void check_sums(gpu::Report& report) {
  std::vector<int> input = numbers(kSummed);
  const int sum = std::accumulate(input.begin(), input.end(), 0);
  gpu::Buffer<int> values(input), sums(kSummed), added(input), total(1), solutions(1);
  // Three steps: 313 blocks, 5 and 1, so the result is where the sums of the first step were.
  sum_all<<<1, 1>>>(values.data(), sums.data(), kSummed);
  sum_then_add<<<(kSummed + kSumBlock - 1) / kSumBlock, kSumBlock>>>(added.data(), kSummed, total.data());
  place_queens<<<1, kQueens>>>(0, 0, 0, 0, solutions.data());
  gpu::wait("sums");
  report.expect(sums.to_host()[0] == sum, "sum by tail launches: %d instead of %d", sums.to_host()[0], sum);
  for (int& value : input) value += sum;
  report.expect_equal("values with their sum", added.to_host(), input);
  report.expect(solutions.to_host()[0] == kSolutions, "%d solutions", solutions.to_host()[0]);
}

// ---- lists on the device's heap ----

constexpr int kLists = 64;

struct Node {
  int value;
  Node* next;
};

__global__ void fold_list(Node* list, int* result) {
  int folded = 0;
  while (list != nullptr) {
    folded = folded * 3 + list->value;
    Node* const next = list->next;
    delete list;
    list = next;
  }
  *result = folded;
}

__global__ void make_lists(int* results) {
  const int t = threadIdx.x;
  Node* list = nullptr;
  for (int i = 0; i <= t % 5; ++i) list = new Node{i + t, list};
  fold_list<<<1, 1>>>(list, results + t);
}

void check_lists(gpu::Report& report) {
  std::vector<int> expected(kLists);
  for (int t = 0; t < kLists; ++t) {
    for (int i = t % 5; i >= 0; --i) expected[t] = expected[t] * 3 + i + t;
  }
  gpu::Buffer<int> results(kLists);
  make_lists<<<1, kLists>>>(results.data());
  gpu::wait("make_lists");
  report.expect_equal("lists", results.to_host(), expected);
}

int main() {
  gpu::Report report("classics");
  check_picture(report);
  check_sorts(report);
  check_searches(report);
  check_sums(report);
  check_lists(report);
  return report.finish();
}
