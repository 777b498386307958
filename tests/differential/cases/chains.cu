// Chains: kernels of one block that launch one block of themselves, in every way in which one link's
// arguments may follow from the link before, and in every way to end. Chains that carry values on are in
// chain_values.cu, those in which threads differ in chain_threads.cu.
//
// The names of all their cases begin with chain_: promotion_test.cpp runs them in every mode of promotion.
#include "chain_links.h"

constexpr unsigned kMultiplier = 1664525, kIncrement = 1013904223;
KLAP_SHARED static inline unsigned next_state(unsigned state) { return state * kMultiplier + kIncrement; }

#ifdef __CUDACC__

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

KLAP_CASE(chain_from_the_device, "a chain that a kernel begins ends early") {
  const auto cells = c.buffer("cells", std::vector<int>(14 * 32, -1), counted(14 * 32));
  c.launch("chain_starter", {1, 1, 1}, {32, 1, 1}, c.address(cells), 14);
  c.rewritten("chain_up");
}

#endif
