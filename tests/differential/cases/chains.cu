// Chains: kernels of one block that launch one block of themselves, in every way in which one link's
// arguments may follow from the link before, and in which links may depend on what earlier ones did.
//
// The names begin with chain_: promotion_test.cpp runs them in every mode of promotion.
#include "case.h"

constexpr unsigned kMultiplier = 1664525, kIncrement = 1013904223;
KLAP_SHARED inline int chain_value(int i) {
  return static_cast<int>(static_cast<unsigned>(i) * 2654435761U >> 8) % 1000;
}
KLAP_SHARED inline unsigned next_state(unsigned state) { return state * kMultiplier + kIncrement; }

KLAP_SHARED inline unsigned bits_of(int value) { return static_cast<unsigned>(value) * kMultiplier; }
KLAP_SHARED inline long long wide_of(int value) { return (static_cast<long long>(value) << 30) - value; }
KLAP_SHARED inline unsigned long long mixed(long long sum, unsigned long long lowest, int least, int most,
                                            unsigned all, unsigned any, unsigned odd) {
  unsigned long long mix = static_cast<unsigned long long>(sum) * 3 + lowest;
  mix = mix * 5 + static_cast<unsigned>(least);
  mix = mix * 7 + static_cast<unsigned>(most);
  return ((mix * 11 + all) * 13 + any) * 17 + odd;
}
KLAP_SHARED inline int placed(int link, int thread, int block, int blocks, int threads) {
  return ((link * 100 + block) * 100 + blocks) * 10000 + thread * 100 + threads;
}

constexpr int kWidth = 64;  // threads of most chains' blocks

#ifdef __CUDACC__

// Has the value computed here, not where the compiler finds it first used.
__device__ __forceinline__ void here(int& value) { asm volatile("" : "+r"(value)); }
__device__ __forceinline__ void here(unsigned& value) { asm volatile("" : "+r"(value)); }
__device__ __forceinline__ void here(long long& value) { asm volatile("" : "+l"(value)); }
__device__ __forceinline__ void here(unsigned long long& value) { asm volatile("" : "+l"(value)); }
__device__ __forceinline__ void here(float& value) { asm volatile("" : "+f"(value)); }

// Links in one order or the other; all that a link needs is its number.
extern "C" __global__ void chain_up(int* cells, int link, int links) {
  const int t = static_cast<int>(threadIdx.x);
  cells[link * 32 + t] = link * 32 + t + 1;
  if (t == 0 && link + 1 < links) chain_up<<<1, 32>>>(cells, link + 1, links);
}
extern "C" __global__ void chain_down(int* cells, int link) {
  const int t = static_cast<int>(threadIdx.x);
  const int mine = cells[link * 32 + t];
  __syncthreads();
  if (t == 0 && link > 0) chain_down<<<1, 32>>>(cells, link - 1);
  cells[link * 32 + t] = 3 * mine + 1;
}

// Arguments that stay, step by addition and by multiplication, move a pointer, are computed from others
// without running a link, and follow from what the link read.
extern "C" __global__ void chain_mixed(const int* values, unsigned* out, int link, int links, unsigned power,
                                       unsigned state, unsigned follows, unsigned long long wide) {
  const int t = static_cast<int>(threadIdx.x);
  const unsigned value = static_cast<unsigned>(values[t]);
  if (t == 0 && link < links) {
    chain_mixed<<<1, 32>>>(values + 32, out + 32, link + 1, links, power * 3, next_state(state),
                           follows * 31 + value, wide + 0x100000001ULL);
  }
  out[t] = power + state + follows + value + static_cast<unsigned>(wide >> 32) + static_cast<unsigned>(wide);
}

// Two pointers that change places, each link reading what the one before wrote.
extern "C" __global__ void chain_swap(int* from, int* to, int links) {
  const int t = static_cast<int>(threadIdx.x);
  to[t] = from[(t + 1) % 32] + t;
  __syncthreads();
  if (t == 0 && links > 0) chain_swap<<<1, 32>>>(to, from, links - 1);
}

// The next link reads at once what this one wrote before its launch.
extern "C" __global__ void chain_handed_on(int* cells, int link, int links) {
  const int t = static_cast<int>(threadIdx.x);
  const int before = cells[link * 32 + t];
  cells[(link + 1) * 32 + t] = before * 5 % 1009 + t;
  __syncthreads();
  if (t == 0 && link + 1 < links) chain_handed_on<<<1, 32>>>(cells, link + 1, links);
}

// How many of the threads before this one keep their value, and of all.
__device__ __forceinline__ int rank_in_block(bool keeps, int& total) {
  __shared__ int ranks[kWidth + 1];
  const int t = static_cast<int>(threadIdx.x);
  ranks[t + 1] = keeps ? 1 : 0;
  if (t == 0) ranks[0] = 0;
  __syncthreads();
  if (t == 0) {
    for (int i = 0; i < kWidth; ++i) ranks[i + 1] += ranks[i];
  }
  __syncthreads();
  total = ranks[kWidth];
  return ranks[t];
}

// Stream compaction in place.
extern "C" __global__ void chain_compact(int* data, int tile, int tiles, int offset, int* size) {
  const int t = static_cast<int>(threadIdx.x);
  const int value = data[tile * kWidth + t];
  const bool keeps = value % 3 != 0;
  int total = 0;
  const int rank = rank_in_block(keeps, total);
  if (t == 0) {
    if (tile + 1 < tiles) {
      chain_compact<<<1, kWidth>>>(data, tile + 1, tiles, offset + total, size);
    } else {
      *size = offset + total;
    }
  }
  if (keeps) data[offset + rank] = value;
}

// Moves each element to a later place, from the last tile to the first: nothing is passed on but the order.
extern "C" __global__ void chain_shift(int* data, int by, int tile) {
  const int t = static_cast<int>(threadIdx.x);
  const int value = data[tile * kWidth + t];
  __syncthreads();
  if (t == 0 && tile > 0) chain_shift<<<1, kWidth>>>(data, by, tile - 1);
  data[tile * kWidth + t + by] = value;
}

// The highest value so far.
extern "C" __global__ void chain_highest(const float* values, float* highest, int tile, int tiles,
                                         float before) {
  __shared__ float of_tile;
  const int t = static_cast<int>(threadIdx.x);
  if (t == 0) {
    of_tile = values[tile * kWidth];
    for (int i = 1; i < kWidth; ++i) of_tile = fmaxf(of_tile, values[tile * kWidth + i]);
  }
  __syncthreads();
  float own = of_tile;
  here(own);
  const float highest_so_far = fmaxf(before, own);
  if (t == 0 && tile + 1 < tiles)
    chain_highest<<<1, kWidth>>>(values, highest, tile + 1, tiles, highest_so_far);
  highest[tile * kWidth + t] = highest_so_far + static_cast<float>(t);
}

// One value for each operation, of both widths.
extern "C" __global__ void chain_all_operations(const int* values, unsigned long long* out, int tile,
                                                int tiles, long long sum, unsigned long long lowest,
                                                int least, int most, unsigned all, unsigned any,
                                                unsigned odd) {
  const int t = static_cast<int>(threadIdx.x);
  int value = __shfl_sync(~0U, values[tile * 32 + t], 5) + 1;
  unsigned bits = bits_of(value), more = bits | 0xff00ffU, less = bits & 0x10101U;
  long long wide = wide_of(value);
  unsigned long long low = static_cast<unsigned long long>(bits) << 16;
  here(value), here(bits), here(more), here(less), here(wide), here(low);
  sum += wide;
  lowest = min(lowest, low);
  least = min(least, value);
  most = max(most, value);
  all &= more;
  any |= less;
  odd ^= bits;
  if (t == 0 && tile + 1 < tiles) {
    chain_all_operations<<<1, 32>>>(values, out, tile + 1, tiles, sum, lowest, least, most, all, any, odd);
  }
  out[tile * 32 + t] = mixed(sum, lowest, least, most, all, any, odd) + static_cast<unsigned>(t);
}

// Ends where the data says so, which only the link that reads it knows.
extern "C" __global__ void chain_until(const int* values, int* out, int link) {
  const int t = static_cast<int>(threadIdx.x);
  const int value = values[link * 32 + t];
  if (t == 0 && values[link * 32] >= 0) chain_until<<<1, 32>>>(values, out, link + 1);
  out[link * 32 + t] = value + link;
}

// Ends where a sequence of its own does, which can be computed without running a link but not told from one
// number: it grows and shrinks.
extern "C" __global__ void chain_collatz(const int* values, unsigned long long* out,
                                         unsigned long long number, int link) {
  const int t = static_cast<int>(threadIdx.x);
  const int value = values[link % 8 * 32 + t];
  __syncthreads();
  if (t == 0 && number != 1)
    chain_collatz<<<1, 32>>>(values, out, number % 2 == 0 ? number / 2 : 3 * number + 1, link + 1);
  out[link * 32 + t] = number + static_cast<unsigned>(value);
}

// The last thread launches; threads leave before; blocks of three dimensions.
extern "C" __global__ void chain_last_thread(int* cells, int link, int links, int sum) {
  const int t = static_cast<int>(threadIdx.x);
  const int mine = cells[link * 32 + t];
  __syncthreads();
  if (t == 31 && link + 1 < links) chain_last_thread<<<1, 32>>>(cells, link + 1, links, sum + mine);
  cells[link * 32 + t] = sum + mine;
}
extern "C" __global__ void chain_leaving(int* cells, int link, int links, int sum) {
  const int t = static_cast<int>(threadIdx.x);
  if (t > link) return;
  cells[link * 32 + t] = sum + t;
  if (t == 0 && link + 1 < links) chain_leaving<<<1, 32>>>(cells, link + 1, links, sum + link);
}
extern "C" __global__ void chain_cubes(int* cells, int link, int links, int sum) {
  const int t = static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
  __shared__ int total;
  if (t == 5) total = chain_value(link);
  __syncthreads();
  cells[link * 32 + t] = sum + t;
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0 && link + 1 < links)
    chain_cubes<<<1, dim3(4, 4, 2)>>>(cells, link + 1, links, sum + total);
}

// Dynamic shared memory, written and read by other threads in every link.
extern "C" __global__ void chain_dynamic(const int* values, int* out, int link, int links, int sum) {
  extern __shared__ int tile[];
  const int t = static_cast<int>(threadIdx.x);
  tile[t] = values[link * kWidth + t];
  __syncthreads();
  const int other = tile[kWidth - 1 - t];
  __syncthreads();
  if (t == 0 && link + 1 < links)
    chain_dynamic<<<1, kWidth, kWidth * sizeof(int)>>>(values, out, link + 1, links, sum + other);
  tile[t] = other + sum;
  __syncthreads();
  out[link * kWidth + t] = tile[kWidth - 1 - t];
}

// What the launch returned is looked at.
extern "C" __global__ void chain_result(int* errors, int link, int links) {
  if (threadIdx.x != 0) return;
  int error = 0;
  if (link + 1 < links) {
    chain_result<<<1, 32>>>(errors, link + 1, links);
    error = static_cast<int>(cudaGetLastError());
  }
  errors[link] = error;
}

// Each link does a read-modify-write at one place, behind its launch or before it.
extern "C" __global__ void chain_counts(int* total, int* seen, int link, int links) {
  if (threadIdx.x == 0) {
    const int before = *total;
    *total = before + link;
    seen[link] = before;
    if (link + 1 < links) chain_counts<<<1, 32>>>(total, seen, link + 1, links);
  }
}

// A link's place is that of the only block of a grid, and its block is the launch's.
extern "C" __global__ void chain_placed(int* cells, int link, int links) {
  const int t = static_cast<int>(threadIdx.x);
  const int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
  if (t < 32) cells[(link + block) * 32 + t] = placed(link, t, block, blocks, static_cast<int>(blockDim.x));
  if (t == 0 && link + 1 < links) chain_placed<<<1, 32>>>(cells, link + 1, links);
}

// A device kernel that launches a chain: nobody redirects that.
extern "C" __global__ void chain_starter(int* cells, int links) {
  if (threadIdx.x == 0) chain_up<<<1, 32>>>(cells, 0, links);
}

#else

#include <algorithm>

namespace {

std::vector<int> counted(int cells) {
  std::vector<int> values;
  for (int i = 0; i < cells; ++i) values.push_back(i + 1);
  return values;
}
std::vector<int> chain_values(int count) {
  std::vector<int> values;
  for (int i = 0; i < count; ++i) values.push_back(chain_value(i));
  return values;
}

void count_up(klap::differential::Builder& c, int links) {
  const auto cells =
      c.buffer("cells", std::vector<int>(static_cast<size_t>(links) * 32, -1), counted(links * 32));
  c.launch("chain_up", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, links);
  c.rewritten("chain_up");
}

void compact(klap::differential::Builder& c, int tiles, uint32_t stream = 0) {
  const std::vector<int> before = chain_values(tiles * kWidth);
  std::vector<int> after;
  for (const int value : before) {
    if (value % 3 != 0) after.push_back(value);
  }
  const int kept = static_cast<int>(after.size());
  // What stands behind the kept ones is what was moved over last, so only they are compared.
  std::vector<int> data = before;
  for (int tile = 0, offset = 0; tile < tiles; ++tile) {
    for (int t = 0; t < kWidth; ++t) {
      const int value = before[static_cast<size_t>(tile * kWidth + t)];
      if (value % 3 != 0) data[static_cast<size_t>(offset++)] = value;
    }
  }
  const auto values = c.buffer("data", before, data);
  const auto size = c.buffer("size", std::vector<int>{-1}, std::vector<int>{kept});
  c.launch_in(stream, "chain_compact", {1, 1, 1}, {kWidth, 1, 1}, c.address(values), 0, tiles, 0,
              c.address(size));
}

}  // namespace

KLAP_CASE(chain_of_1, "the only link launches another") { count_up(c, 1); }
KLAP_CASE(chain_of_2, "the second link is not run") { count_up(c, 2); }
KLAP_CASE(chain_of_25, "links are lost, or run twice") { count_up(c, 25); }
KLAP_CASE(chain_of_1000, "links are lost where there are more than blocks") { count_up(c, 1000); }

namespace {
void count_down(klap::differential::Builder& c, int links) {
  std::vector<int> after;
  for (int i = 0; i < links * 32; ++i) after.push_back(3 * chain_value(i) + 1);
  const auto cells = c.buffer("cells", chain_values(links * 32), after);
  c.launch("chain_down", {1, 1, 1}, {32, 1, 1}, c.address(cells), links - 1);
  c.rewritten("chain_down");
}
}  // namespace

KLAP_CASE(chain_downwards, "a chain that counts down ends early, or late") { count_down(c, 30); }
KLAP_CASE(chain_downwards_1000, "links that look back are lost where there are more than blocks") {
  count_down(c, 1000);
}

KLAP_CASE(chain_twice, "what a chain leaves behind misleads the next one") {
  const int links = 13;
  const auto cells = c.buffer("cells", std::vector<int>(links * 32, -1), counted(links * 32));
  for (int round = 0; round < 3; ++round) {
    c.fill(cells, static_cast<uint8_t>(round));
    c.launch("chain_up", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, links);
  }
  compact(c, 9);
  c.launch("chain_up", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, 3);
  c.rewritten("chain_up");
  c.rewritten("chain_compact");
}

KLAP_CASE(chain_arguments, "an argument of a link is not what the link before stored") {
  const int links = 20;
  const std::vector<int> values = chain_values((links + 1) * 32);
  std::vector<unsigned> after;
  unsigned power = 7, state = 12345, follows = 3;
  unsigned long long wide = 0xfffffff0ULL;
  for (int link = 0; link <= links; ++link) {
    const auto value = [&](int t) {
      return static_cast<unsigned>(values[static_cast<size_t>(link * 32 + t)]);
    };
    for (int t = 0; t < 32; ++t) {
      after.push_back(power + state + follows + value(t) + static_cast<unsigned>(wide >> 32) +
                      static_cast<unsigned>(wide));
    }
    power *= 3, state = next_state(state), follows = follows * 31 + value(0), wide += 0x100000001ULL;
  }
  const auto in = c.input("values", values);
  const auto out = c.buffer("out", std::vector<unsigned>(after.size(), 1), after);
  c.launch("chain_mixed", {1, 1, 1}, {32, 1, 1}, c.address(in), c.address(out), 0, links, 7U, 12345U, 3U,
           0xfffffff0ULL);
  c.rewritten("chain_mixed");
}

KLAP_CASE(chain_swapped,
          "arguments that change places do not, or a link reads before the one before has written") {
  const int links = 15;
  const std::vector<int> first = chain_values(32);
  std::vector<int> from = first, to(32, -1);
  for (int link = 0; link <= links; ++link) {
    for (int t = 0; t < 32; ++t) to[static_cast<size_t>(t)] = from[static_cast<size_t>((t + 1) % 32)] + t;
    std::swap(from, to);
  }
  const auto a = c.buffer("a", first, from), b = c.buffer("b", std::vector<int>(32, -1), to);
  c.launch("chain_swap", {1, 1, 1}, {32, 1, 1}, c.address(a), c.address(b), links);
  c.rewritten("chain_swap");
}

KLAP_CASE(chain_hands_on, "a link begins before what it reads is written") {
  const int links = 25;
  std::vector<int> after = chain_values(32);
  for (int link = 0; link < links; ++link) {
    for (int t = 0; t < 32; ++t) after.push_back(after[static_cast<size_t>(link * 32 + t)] * 5 % 1009 + t);
  }
  std::vector<int> before(after.size(), -7);
  std::copy_n(after.begin(), 32, before.begin());
  const auto cells = c.buffer("cells", before, after);
  c.launch("chain_handed_on", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, links);
  c.rewritten("chain_handed_on");
}

KLAP_CASE(chain_compaction, "a tile is overwritten before it was read, or goes to the wrong place") {
  compact(c, 40);
  c.rewritten("chain_compact");
}

KLAP_CASE(chain_in_two_streams, "two chains at once take each other's links") {
  compact(c, 12, 1);
  compact(c, 25, 2);
  const auto cells = c.buffer("cells", std::vector<int>(20 * 32, -1), counted(20 * 32));
  c.launch_in(3, "chain_up", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, 20);
  c.rewritten("chain_up");
  c.rewritten("chain_compact");
}

KLAP_CASE(chain_shifted, "a tile is overwritten before it was read") {
  const int tiles = 30, by = 17;
  std::vector<int> before = chain_values(tiles * kWidth + by), after = before;
  for (int i = 0; i < tiles * kWidth; ++i)
    after[static_cast<size_t>(i + by)] = before[static_cast<size_t>(i)];
  const auto data = c.buffer("data", before, after);
  c.launch("chain_shift", {1, 1, 1}, {kWidth, 1, 1}, c.address(data), by, tiles - 1);
  c.rewritten("chain_shift");
}

KLAP_CASE(chain_maximum, "a link does not know the highest value before it") {
  const int tiles = 40;
  std::vector<float> values, after;
  for (int i = 0; i < tiles * kWidth; ++i) values.push_back(static_cast<float>(chain_value(i) + i) - 300.5F);
  float highest = -1000.0F;
  for (int tile = 0; tile < tiles; ++tile) {
    const auto* const of_tile = &values[static_cast<size_t>(tile * kWidth)];
    highest = std::max(highest, *std::max_element(of_tile, of_tile + kWidth));
    for (int t = 0; t < kWidth; ++t) after.push_back(highest + static_cast<float>(t));
  }
  const auto in = c.input("values", values);
  const auto out = c.buffer("highest", std::vector<float>(values.size(), 0), after);
  c.launch("chain_highest", {1, 1, 1}, {kWidth, 1, 1}, c.address(in), c.address(out), 0, tiles, -1000.0F);
  c.rewritten("chain_highest");
}

KLAP_CASE(chain_operations, "one of the operations that combine many links is another one") {
  const int tiles = 70;
  const std::vector<int> values = chain_values(tiles * 32);
  std::vector<unsigned long long> after;
  long long sum = 5;
  unsigned long long lowest = ~0ULL;
  int least = 500, most = 500;
  unsigned all = ~0U, any = 0, odd = 1;
  for (int tile = 0; tile < tiles; ++tile) {
    const int value = values[static_cast<size_t>(tile * 32 + 5)] + 1;
    const unsigned bits = bits_of(value);
    sum += wide_of(value);
    lowest = std::min(lowest, static_cast<unsigned long long>(bits) << 16);
    least = std::min(least, value);
    most = std::max(most, value);
    all &= bits | 0xff00ffU;
    any |= bits & 0x10101U;
    odd ^= bits;
    for (unsigned t = 0; t < 32; ++t) after.push_back(mixed(sum, lowest, least, most, all, any, odd) + t);
  }
  const auto in = c.input("values", values);
  const auto out = c.buffer("out", std::vector<unsigned long long>(after.size(), 0), after);
  c.launch("chain_all_operations", {1, 1, 1}, {32, 1, 1}, c.address(in), c.address(out), 0, tiles, 5LL, ~0ULL,
           500, 500, ~0U, 0U, 1U);
  c.rewritten("chain_all_operations");
}

KLAP_CASE(chain_ended_by_data, "a chain goes on where the data ends it, or reads what is not there") {
  const int links = 21;
  std::vector<int> values = chain_values((links + 1) * 32), after;
  values[static_cast<size_t>(links * 32)] = -1;
  for (int i = 0; i <= links * 32 + 31; ++i) after.push_back(values[static_cast<size_t>(i)] + i / 32);
  const auto in = c.input("values", values);
  const auto out = c.buffer("out", std::vector<int>(values.size(), -9), after);
  c.launch("chain_until", {1, 1, 1}, {32, 1, 1}, c.address(in), c.address(out), 0);
  c.rewritten("chain_until");
}

KLAP_CASE(chain_ended_by_a_sequence, "links that are known without running one are run in the wrong number") {
  std::vector<unsigned long long> after;
  const std::vector<int> values = chain_values(8 * 32);
  const auto in = c.input("values", values);
  unsigned long long number = 27;  // 111 steps
  for (size_t link = 0;; ++link, number = number % 2 == 0 ? number / 2 : 3 * number + 1) {
    for (size_t t = 0; t < 32; ++t)
      after.push_back(number + static_cast<unsigned>(values[link % 8 * 32 + t]));
    if (number == 1) break;
  }
  const auto out = c.buffer("out", std::vector<unsigned long long>(after.size(), 0), after);
  c.launch("chain_collatz", {1, 1, 1}, {32, 1, 1}, c.address(in), c.address(out), 27ULL, 0);
  c.rewritten("chain_collatz");
}

KLAP_CASE(chain_by_last_thread, "only a first thread can launch the next link") {
  const int links = 20;
  std::vector<int> after;
  for (int link = 0, sum = 4; link < links; sum += chain_value(link * 32 + 31), ++link) {
    for (int t = 0; t < 32; ++t) after.push_back(sum + chain_value(link * 32 + t));
  }
  const auto cells = c.buffer("cells", chain_values(links * 32), after);
  c.launch("chain_last_thread", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, links, 4);
  c.rewritten("chain_last_thread");
}

KLAP_CASE(chain_left_by_threads, "threads that leave a link do not come back for the next one") {
  const int links = 32;
  std::vector<int> after(static_cast<size_t>(links) * 32, -1);
  for (int link = 0, sum = 9; link < links; sum += link, ++link) {
    for (int t = 0; t <= link; ++t) after[static_cast<size_t>(link * 32 + t)] = sum + t;
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size(), -1), after);
  c.launch("chain_leaving", {1, 1, 1}, {32, 1, 1}, c.address(cells), 0, links, 9);
  c.rewritten("chain_leaving");
}

KLAP_CASE(chain_in_three_dimensions, "threads are counted in one dimension only") {
  const int links = 18;
  std::vector<int> after;
  for (int link = 0, sum = 0; link < links; sum += chain_value(link), ++link) {
    for (int t = 0; t < 32; ++t) after.push_back(sum + t);
  }
  const auto cells = c.buffer("cells", std::vector<int>(after.size(), -1), after);
  c.launch("chain_cubes", {1, 1, 1}, {4, 4, 2}, c.address(cells), 0, links, 0);
  c.rewritten("chain_cubes");
}

namespace {
void run_dynamic(klap::differential::Builder& c, uint32_t shared) {
  const int links = 20;
  const std::vector<int> values = chain_values(links * kWidth);
  std::vector<int> after;
  for (int link = 0, sum = 0; link < links; ++link) {
    const auto* const of_link = &values[static_cast<size_t>(link * kWidth)];
    for (int t = 0; t < kWidth; ++t) after.push_back(of_link[t] + sum);
    sum += of_link[kWidth - 1];
  }
  const auto in = c.input("values", values);
  const auto out = c.buffer("out", std::vector<int>(after.size(), 0), after);
  c.launch("chain_dynamic", {1, 1, 1}, {kWidth, 1, 1}, c.address(in), c.address(out), 0, links, 0)
      .launch.shared = shared;
}
}  // namespace

KLAP_CASE(chain_of_dynamic_memory, "links overwrite each other's shared memory") {
  run_dynamic(c, kWidth * sizeof(int));
  c.rewritten("chain_dynamic");
}
KLAP_CASE(chain_with_more_memory, "a launch with other shared memory than the chain's becomes the chain") {
  run_dynamic(c, 2 * kWidth * sizeof(int));
}

KLAP_CASE(chain_result_used, "a launch that became a link returns something else") {
  const auto errors = c.buffer("errors", std::vector<int>(12, -1), std::vector<int>(12, 0));
  c.launch("chain_result", {1, 1, 1}, {32, 1, 1}, c.address(errors), 0, 12);
  c.rewritten("chain_result");
}

KLAP_CASE(chain_counting, "what a link wrote before its launch is lost") {
  const int links = 30;
  std::vector<int> seen;
  int total = 100;
  for (int link = 0; link < links; ++link) seen.push_back(total), total += link;
  const auto of_all = c.buffer("total", std::vector<int>{100}, std::vector<int>{total});
  const auto of_each = c.buffer("seen", std::vector<int>(links, -1), seen);
  c.launch("chain_counts", {1, 1, 1}, {32, 1, 1}, c.address(of_all), c.address(of_each), 0, links);
  c.rewritten("chain_counts");
}

// Launches that are not the chain's: of another block, and of several.
KLAP_CASE(chain_of_another_form, "another launch of the kernel becomes the chain") {
  const int links = 10;
  const auto cells_for = [](int first_block, int first_blocks, int count) {
    std::vector<int> after;
    for (int link = 0; link < count; ++link) {
      for (int t = 0; t < 32; ++t) after.push_back(placed(link, t, 0, 1, link == 0 ? first_block : 32));
    }
    for (int block = 1; block < first_blocks; ++block) {
      for (int t = 0; t < 32; ++t) after.push_back(placed(0, t, block, first_blocks, 32));
    }
    if (first_blocks > 1) {
      for (int t = 0; t < 32; ++t) after[static_cast<size_t>(t)] = placed(0, t, 0, first_blocks, 32);
    }
    return after;
  };
  const auto run = [&](const char* name, int block, int blocks, int count) {
    const std::vector<int> after = cells_for(block, blocks, count);
    const auto cells = c.buffer(name, std::vector<int>(after.size(), -1), after);
    c.launch("chain_placed", {static_cast<uint32_t>(blocks), 1, 1}, {static_cast<uint32_t>(block), 1, 1},
             c.address(cells), 0, count);
  };
  run("of one block", 32, 1, links);
  run("of another block", 64, 1, links);
  run("of three blocks", 32, 3, 1);
  run("of one block again", 32, 1, links);
  c.rewritten("chain_placed");
}

KLAP_CASE(chain_from_the_device, "a chain that a kernel begins ends early") {
  const auto cells = c.buffer("cells", std::vector<int>(14 * 32, -1), counted(14 * 32));
  c.launch("chain_starter", {1, 1, 1}, {32, 1, 1}, c.address(cells), 14);
  c.rewritten("chain_up");
}

#endif
