// What is recorded for a child where much of it need not be: arguments that are the same for the whole grid,
// for a block or for nobody, arguments and fields that no child reads, grids whose extents are constants.
#include "case.h"

constexpr int kBlocks = 5;
constexpr int kThreads = 64;
constexpr int kAll = kBlocks * kThreads;
constexpr int kBig = (1 << 16) + 3;

struct Fields {
  long long unread_first;
  int read;
  int unread;
  double also_read;
  short never[6];
};
struct Table {
  int values[40];
};
struct Larger {
  int values[64];
};

#ifdef __CUDACC__

__global__ void tally(unsigned* counts, int from, int step) {
  atomicAdd(counts + from + step * threadIdx.x, 1U);
}
__global__ void put(int* out, int at, int value, int factor) {
  if (threadIdx.x == 0) out[at] = value * factor;
}
__global__ void unused(int, int* out, const double*, int at, int* never, short value) {
  if (threadIdx.x == 0) out[at] = value;
}
__global__ void some_fields(double* out, int at, Fields fields) {
  if (threadIdx.x == 0) out[at] = fields.read + fields.also_read;
}
__global__ void vectors(float* out, int at, float4 a, int4 b, double2 c) {
  if (threadIdx.x == 0) out[at] = a.x + 2.0F * a.w + static_cast<float>(b.y * b.z) + static_cast<float>(c.y);
}
__global__ void from_table(int* out, int at, Table table) {
  out[at * 4 + threadIdx.x] = table.values[(at + threadIdx.x) % 40];
}
__global__ void from_larger(int* out, int at, Larger table, int more) {
  out[at * 4 + threadIdx.x] = table.values[(at + threadIdx.x) % 64] + more;
}
__global__ void blocks_of(unsigned* counts, int at, int by) {
  if (threadIdx.x == 0) atomicAdd(counts + at, by);
}
__global__ void where(int* out, int at) {
  const int position = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  if (threadIdx.x == 0)
    atomicAdd(out + at, (position + 1) * (1 + static_cast<int>(gridDim.x + 2 * gridDim.y + 3 * gridDim.z)));
}

extern "C" __global__ void same_for_all(unsigned* counts, int from) {
  if (threadIdx.x % 3 == 0) tally<<<2, 32>>>(counts, from + static_cast<int>(blockDim.x), 2);
}
extern "C" __global__ void same_in_block(int* out, int factor) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  put<<<1, 32>>>(out, t, static_cast<int>(blockIdx.x) + 1, factor);
}
// Of the values, one is read from memory that nobody writes, and one depends on the way a thread came.
extern "C" __global__ void found_by_block(int* out, const int* __restrict__ factors) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  const int factor = factors[blockIdx.x];
  int value = static_cast<int>(blockIdx.x) + 1;
  if (threadIdx.x % 4 == 1) {
    value = static_cast<int>(blockIdx.x) + 5;
    __threadfence();  // the compiler does not choose without a branch
  }
  put<<<1, 32>>>(out, t, value, factor);
}
extern "C" __global__ void nobody_reads(int* out, const double* some, int n) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  unused<<<1, 32>>>(t, out, some + t, t, out - t, static_cast<short>(3 * t - n));
}
extern "C" __global__ void reads_some_fields(double* out, double same) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  Fields fields = {t, 7 * t, -t, same, {1, 2, 3, 4, 5, 6}};
  some_fields<<<1, 32>>>(out, t, fields);
}
extern "C" __global__ void stores_vectors(float* out, float4 a, int4 b) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  vectors<<<1, 32>>>(out, t, make_float4(a.x, t, 1.0F, a.w), make_int4(t, b.y, t % 7, b.w),
                     make_double2(1.0, t % 5));
}
extern "C" __global__ void same_table(int* out, Table table) {
  from_table<<<1, 4>>>(out, blockIdx.x * blockDim.x + threadIdx.x, table);
}
extern "C" __global__ void same_larger(int* out, Larger table, int more) {
  from_larger<<<1, 4>>>(out, blockIdx.x * blockDim.x + threadIdx.x, table, more);
}
// Records from both ends of the queue, or from the far end alone.
extern "C" __global__ void from_both_ends(unsigned* counts, int big, int by) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  blocks_of<<<t % big == 0 ? kBig : t % 3, 1>>>(counts, t, by);
}
extern "C" __global__ void same_child_twice(int* out, int factor) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t % 2 == 0) {
    put<<<1, 32>>>(out, t, t, factor);
  } else {
    put<<<2, 32>>>(out, t, factor, t);
  }
}
extern "C" __global__ void same_child_elsewhere(int* out, int factor) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  put<<<1, 32>>>(out, t, t, factor);
}
// One launch a kernel: a compiler would make one of several.
#define EXTENTS(name, width, height, depth)                             \
  extern "C" __global__ void name(int* out) {                           \
    const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;           \
    [[maybe_unused]] const unsigned n = 1 + t % 3;                      \
    where<<<dim3(width, height, depth), 2>>>(out, static_cast<int>(t)); \
  }
EXTENTS(extents_xy, 2, 3, n)
EXTENTS(extents_xz, 2, n, 3)
EXTENTS(extents_yz, n, 2, 3)
EXTENTS(extents_x, 2, n, n + 1)
EXTENTS(extents_y, n, 2, n + 1)
EXTENTS(extents_z, n, n + 1, 3)
EXTENTS(extents_xyz, 2, 3, 4)

#else

#include <utility>

namespace {

template <class Value, class Function>
std::vector<Value> numbers(int count, const Function& value_of) {
  std::vector<Value> out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<Value>(value_of(i)));
  return out;
}

// A thread's one child writes one element.
template <class Value, class Function, class... Arguments>
void one_each(klap::differential::Builder& c, const char* parent, const Function& expected_of,
              const Arguments&... arguments) {
  const auto out = c.buffer("out", std::vector<Value>(kAll), numbers<Value>(kAll, expected_of));
  c.launch(parent, {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(out), arguments...);
  c.rewritten(parent);
}

}  // namespace

KLAP_CASE(arguments_all_the_same, "of arguments that are passed once, a child reads none or others'") {
  // The second parent's are not the first one's.
  constexpr int kFirst = 4, kSecond = 9;
  std::vector<unsigned> after(256);
  for (const int from : {kFirst, kSecond}) {
    for (int lane = 0; lane < 32; ++lane)
      after[static_cast<size_t>(from + kThreads + 2 * lane)] += 2 * kBlocks * ((kThreads + 2) / 3);
  }
  const auto counts = c.buffer("counts", std::vector<unsigned>(256), after);
  for (const int from : {kFirst, kSecond})
    c.launch("same_for_all", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(counts), from);
  c.rewritten("same_for_all");
}
KLAP_CASE(arguments_same_in_block, "an argument that differs between blocks is passed once for all") {
  one_each<int>(
      c, "same_in_block", [](int t) { return 11 * (t / kThreads + 1); }, 11);
}
KLAP_CASE(arguments_found_by_block, "what a block's threads take different ways to is passed once for them") {
  const auto factors = c.input("factors", numbers<int>(kBlocks, [](int block) { return 10 * block + 3; }));
  one_each<int>(
      c, "found_by_block",
      [](int t) {
        const int block = t / kThreads;
        return (block + (t % 4 == 1 ? 5 : 1)) * (10 * block + 3);
      },
      c.address(factors));
}
KLAP_CASE(arguments_not_read, "where nothing is stored of some arguments, others move") {
  const auto some = c.input("some", std::vector<double>(kAll));
  one_each<int>(
      c, "nobody_reads", [](int t) { return 3 * t - 100; }, c.address(some), 100);
}
KLAP_CASE(fields_not_read, "where nothing is stored of some fields, others move") {
  one_each<double>(
      c, "reads_some_fields", [](int t) { return 7 * t + 0.25; }, 0.25);
}
KLAP_CASE(arguments_in_vectors, "a vector is stored or read whole although its elements have parted") {
  struct alignas(16) Float4 {
    float x, y, z, w;
  };
  struct alignas(16) Int4 {
    int x, y, z, w;
  };
  one_each<float>(
      c, "stores_vectors", [](int t) { return 1.5F + 2 * 2.5F + static_cast<float>(3 * (t % 7) + t % 5); },
      Float4{1.5F, 0, 0, 2.5F}, Int4{0, 3, 0, 0});
}
KLAP_CASE(argument_indexed, "a structure that is passed once is indexed at another place") {
  Table table{};
  for (int i = 0; i < 40; ++i) table.values[i] = 100 + i;
  const auto out = c.buffer("out", std::vector<int>(4 * kAll),
                            numbers<int>(4 * kAll, [](int i) { return 100 + (i / 4 + i % 4) % 40; }));
  c.launch("same_table", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(out), table);
  c.rewritten("same_table");
}
KLAP_CASE(argument_too_large, "what the area of arguments that are passed once has no room for is lost") {
  Larger table{};
  for (int i = 0; i < 64; ++i) table.values[i] = 100 + i;
  const auto out = c.buffer("out", std::vector<int>(4 * kAll),
                            numbers<int>(4 * kAll, [](int i) { return 107 + (i / 4 + i % 4) % 64; }));
  c.launch("same_larger", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(out), table, 7);
  c.rewritten("same_larger");
}
KLAP_CASE(arguments_of_big_children, "nobody passes what is the same where records come from the far end") {
  // The first parent has a big child only.
  constexpr int kFew = 2;
  std::vector<unsigned> alone(1, 5U * kBig), both;
  for (int t = 0; t < 2 * kFew; ++t) both.push_back(7U * (t % 4 == 0 ? kBig : t % 3));
  const auto first = c.buffer("alone", std::vector<unsigned>(1), alone);
  const auto second = c.buffer("both", std::vector<unsigned>(both.size()), both);
  c.launch("from_both_ends", {1, 1, 1}, {1, 1, 1}, c.address(first), 1, 5);
  c.launch("from_both_ends", {2, 1, 1}, {kFew, 1, 1}, c.address(second), 4, 7);
  c.rewritten("from_both_ends");
}
KLAP_CASE(arguments_differ_by_site,
          "a child reads its arguments as another site of its kernel records them") {
  one_each<int>(
      c, "same_child_twice", [](int t) { return 13 * t; }, 13);
  const auto out = c.buffer("out", std::vector<int>(kAll), numbers<int>(kAll, [](int t) { return 17 * t; }));
  c.launch("same_child_elsewhere", {kBlocks, 1, 1}, {kThreads, 1, 1}, c.address(out), 17);
  c.rewritten("same_child_elsewhere");
}
KLAP_CASE(extents_constant, "an extent of a child's grid is not that of its launch") {
  using Extents = klap::differential::Dim3 (*)(unsigned n);
  const std::vector<std::pair<const char*, Extents>> parents = {
      {"extents_xy",
       [](unsigned n) {
         return klap::differential::Dim3{2, 3, n};
       }},
      {"extents_xz",
       [](unsigned n) {
         return klap::differential::Dim3{2, n, 3};
       }},
      {"extents_yz",
       [](unsigned n) {
         return klap::differential::Dim3{n, 2, 3};
       }},
      {"extents_x",
       [](unsigned n) {
         return klap::differential::Dim3{2, n, n + 1};
       }},
      {"extents_y",
       [](unsigned n) {
         return klap::differential::Dim3{n, 2, n + 1};
       }},
      {"extents_z",
       [](unsigned n) {
         return klap::differential::Dim3{n, n + 1, 3};
       }},
      {"extents_xyz",
       [](unsigned) {
         return klap::differential::Dim3{2, 3, 4};
       }},
  };
  for (const auto& [parent, extents] : parents) {
    constexpr int kFew = 40;
    const auto after = numbers<int>(kFew, [extents = extents](int t) {
      const auto [x, y, z] = extents(1 + static_cast<unsigned>(t) % 3);
      const unsigned blocks = x * y * z;
      return blocks * (blocks + 1) / 2 * (1 + x + 2 * y + 3 * z);
    });
    const auto out = c.buffer(parent, std::vector<int>(kFew), after);
    c.launch(parent, {1, 1, 1}, {kFew, 1, 1}, c.address(out));
    c.rewritten(parent);
  }
}

#endif
