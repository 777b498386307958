// Device memory that warps cut from chunks (KLAP_AGGREGATE_MALLOC=chunks): pieces of all sizes, freed by
// other threads, blocks and kernels, on a heap with room, on one that is nearly full, and on a full one.
// memory_test.cpp requires that nothing of the heap is in use at the end, but for pieces that are kept.
#include "case.h"

constexpr int kThreads = 96, kPlaces = 8;

// Most are small, some are not, and the group of one that is large takes more than a chunk has.
KLAP_SHARED static inline int bytes_of_piece(int t, int round) {
  const unsigned number =
      (static_cast<unsigned>(t) * 97u + static_cast<unsigned>(round) * 31u + 7u) * 2654435761u;
  const unsigned kind = number >> 20 & 63;
  if (kind == 0) return 5000;
  if (kind < 4) return 700;
  return static_cast<int>(number >> 26) + 1;
}
KLAP_SHARED static inline int rounds_of_piece(int t) { return t % 4 + 1; }
KLAP_SHARED static inline int byte_of_piece(int t, int round, int i) { return (t * 7 + round * 5 + i) & 255; }
// Of a large one only the ends are looked at.
KLAP_SHARED static inline int step_in_piece(int i, int bytes) {
  return i == 40 && bytes > 80 ? bytes - 40 : i;
}
KLAP_SHARED static inline int sum_of_piece(int t, int round) {
  const int bytes = bytes_of_piece(t, round);
  int sum = 0;
  for (int i = 0; i < bytes; i = step_in_piece(i + 1, bytes)) sum += byte_of_piece(t, round, i);
  return sum;
}

#ifdef __CUDACC__

__device__ int piece_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ void fill_piece(unsigned char* piece, int t, int round) {
  const int bytes = bytes_of_piece(t, round);
  for (int i = 0; i < bytes; i = step_in_piece(i + 1, bytes)) {
    piece[i] = static_cast<unsigned char>(byte_of_piece(t, round, i));
  }
}
__device__ int read_piece(const unsigned char* piece, int t, int round) {
  const int bytes = bytes_of_piece(t, round);
  int sum = 0;
  for (int i = 0; i < bytes; i = step_in_piece(i + 1, bytes)) sum += piece[i];
  return sum;
}
__device__ unsigned char* take_piece(int t, int round) {
  auto* const piece = static_cast<unsigned char*>(malloc(bytes_of_piece(t, round)));
  fill_piece(piece, t, round);
  return piece;
}

__global__ void begin_piece(unsigned char* const* pieces, int t, int round) {
  if (threadIdx.x == 0) pieces[t][0] = static_cast<unsigned char>(byte_of_piece(t, round, 0));
}
extern "C" __global__ void take_pieces_parent(unsigned char** pieces, int round) {
  const int t = piece_thread();
  pieces[t] = take_piece(t, round);
  begin_piece<<<1, 32>>>(pieces, t, round);
}
// Each thread frees the piece of another one, and takes one itself.
extern "C" __global__ void exchange_pieces(unsigned char** before, unsigned char** after, int* sums,
                                           int round) {
  const int t = piece_thread(), other = (t * 35 + 11) % kThreads;
  const bool is_first = t % 3 == 0;
  if (is_first) after[t] = take_piece(t, round + 1);
  sums[other] += read_piece(before[other], other, round);
  free(before[other]);
  if (!is_first) after[t] = take_piece(t, round + 1);
}
extern "C" __global__ void free_pieces(unsigned char** pieces, int* sums, int round) {
  const int t = kThreads - 1 - piece_thread();
  sums[t] += read_piece(pieces[t], t, round);
  free(pieces[t]);
}

// The child frees what its parent took.
__global__ void end_piece(unsigned char* piece, int* sums, int t, int round) {
  if (threadIdx.x != 0) return;
  sums[t] += read_piece(piece, t, round);
  free(piece);
}
extern "C" __global__ void loop_of_pieces_parent(int* sums) {
  const int t = piece_thread();
  unsigned char* last = take_piece(t, 0);
  for (int round = 1; round < rounds_of_piece(t); ++round) {
    unsigned char* const next = take_piece(t, round);
    sums[t] += read_piece(last, t, round - 1);
    free(last);
    last = next;
  }
  end_piece<<<1, 32>>>(last, sums, t, rounds_of_piece(t) - 1);
}

// Only the pointer is handed on. Who gets it writes to the memory and frees it.
extern "C" __global__ void hand_pieces_on_parent(unsigned long long* places, int* cells) {
  const int t = piece_thread();
  for (int round = 0; round < 4; ++round) {
    const auto mine = reinterpret_cast<unsigned long long>(malloc(bytes_of_piece(t, round)));
    const unsigned long long before = atomicExch(places + (t + round) % kPlaces, mine);
    free(reinterpret_cast<void*>(before));
  }
  if (t < kPlaces) cells[t] = 1;
}
__global__ void count_cell(int* cell) {
  if (threadIdx.x == 0) *cell += 1;
}
extern "C" __global__ void free_places_parent(unsigned long long* places, int* cells) {
  free(reinterpret_cast<void*>(places[threadIdx.x]));
  count_cell<<<1, 32>>>(cells + threadIdx.x);
}

// By cudaMalloc, by malloc, nothing at all, and more than there is of anything.
extern "C" __global__ void take_in_all_ways_parent(unsigned char** pieces, int* wrong, const int* sizes) {
  const int t = piece_thread(), way = t % 4;
  void* mine = nullptr;
  if (way == 1) {
    if (cudaMalloc(&mine, bytes_of_piece(t, 0)) != cudaSuccess) wrong[t] = 1;
  } else {
    size_t bytes = bytes_of_piece(t, 0);
    if (way == 2) bytes = sizes[t];
    if (way == 3) bytes = (size_t{1} << 62) - sizes[t];
    mine = malloc(bytes);
  }
  if (way < 2 && mine == nullptr) wrong[t] += 2;
  if (way == 3 && mine != nullptr) wrong[t] += 4;
  if (reinterpret_cast<size_t>(mine) % 16 != 0) wrong[t] += 8;
  pieces[t] = static_cast<unsigned char*>(mine);
  if (way >= 2) return;
  fill_piece(pieces[t], t, 0);
  begin_piece<<<1, 32>>>(pieces, t, 0);
}
extern "C" __global__ void free_in_all_ways(unsigned char** pieces, int* wrong) {
  const int t = piece_thread(), way = t % 4;
  if (way < 2 && read_piece(pieces[t], t, 0) != sum_of_piece(t, 0)) wrong[t] += 16;
  if (way != 1)
    free(pieces[t]);
  else if (cudaFree(pieces[t]) != cudaSuccess)
    wrong[t] += 32;
}

// Takes all that there is, as a list. The first ones are large.
extern "C" __global__ void fill_heap(void*** list) {
  void** last = nullptr;
  for (int bytes = 16 << 10; bytes >= 256; bytes /= 4) {
    while (auto* const next = static_cast<void**>(malloc(bytes))) {
      *next = last;
      last = next;
    }
  }
  *list = last;
}
// Frees so many of the list, but for the first `kept`, from its end or from its beginning.
extern "C" __global__ void empty_heap(void*** list, int number, int is_from_end) {
  for (int i = 0; i < number && *list != nullptr; ++i) {
    void*** at = list;
    if (is_from_end != 0) {
      while (**at != nullptr) at = reinterpret_cast<void***>(*at);
    }
    void** const piece = *at;
    *at = static_cast<void**>(*piece);
    free(piece);
  }
}
// In a heap with little room all threads get something, by little and little.
extern "C" __global__ void take_little_parent(unsigned char** pieces, int* wrong) {
  const int t = piece_thread();
  for (int i = 0; i < 3; ++i) {
    auto* const mine = static_cast<unsigned char*>(malloc(20));
    pieces[i * kThreads + t] = mine;
    if (mine == nullptr) {
      wrong[t] += 1;
      continue;
    }
    for (int k = 0; k < 20; ++k) mine[k] = static_cast<unsigned char>(t + i + k);
  }
  count_cell<<<1, 32>>>(wrong + kThreads + t);
}
extern "C" __global__ void free_little(unsigned char** pieces, int* wrong) {
  const int t = kThreads - 1 - piece_thread();
  for (int i = 0; i < 3; ++i) {
    unsigned char* const piece = pieces[i * kThreads + t];
    if (piece == nullptr) continue;
    for (int k = 0; k < 20; ++k) wrong[t] += piece[k] == static_cast<unsigned char>(t + i + k) ? 0 : 100;
    free(piece);
  }
}

#else

namespace {

using klap::differential::Builder;

uint32_t addresses(Builder& c, const std::string& name, int count = kThreads) {
  return c.buffer(name, std::vector<uint64_t>(count), std::vector<uint64_t>());
}
uint32_t nothing_wrong(Builder& c, const std::string& name) {
  return c.buffer(name, std::vector<int>(kThreads), std::vector<int>(kThreads));
}
template <class Expected>
uint32_t sums_of_pieces(Builder& c, const Expected& expected_of) {
  std::vector<int> expected;
  for (int t = 0; t < kThreads; ++t) expected.push_back(expected_of(t));
  return c.buffer("sums", std::vector<int>(kThreads), expected);
}
// Blocks of a warp and a half.
void by_all(Builder& c, const std::string& kernel, auto... arguments) {
  c.launch(kernel, {2, 1, 1}, {kThreads / 2, 1, 1}, arguments...);
}
void by_one(Builder& c, const std::string& kernel, auto... arguments) {
  c.launch(kernel, {1, 1, 1}, {1, 1, 1}, arguments...);
}
void in_chunks(Builder& c) { c.setting("KLAP_AGGREGATE_MALLOC", "chunks"); }

}  // namespace

KLAP_CASE(chunks_exchanged, "pieces overlap, or a chunk is freed with a piece in it, or never") {
  in_chunks(c);
  const auto a = addresses(c, "a"), b = addresses(c, "b");
  const auto sums = sums_of_pieces(
      c, [](int t) { return 2 * (sum_of_piece(t, 0) + sum_of_piece(t, 1) + sum_of_piece(t, 2)); });
  for (int i = 0; i < 2; ++i) {
    by_all(c, "take_pieces_parent", c.address(a), 0);
    by_all(c, "exchange_pieces", c.address(a), c.address(b), c.address(sums), 0);
    by_all(c, "exchange_pieces", c.address(b), c.address(a), c.address(sums), 1);
    by_all(c, "free_pieces", c.address(a), c.address(sums), 2);
  }
  c.rewritten("take_pieces_parent");
  c.children_never_meet();
}
KLAP_CASE(chunks_kept, "pieces that are never freed stop anyone at the end") {
  in_chunks(c);
  const auto pieces = addresses(c, "pieces");
  by_all(c, "take_pieces_parent", c.address(pieces), 0);
  c.rewritten("take_pieces_parent");
  c.children_never_meet();
}
KLAP_CASE(chunks_in_loop, "a chunk that is closed while pieces are freed and taken is lost, or freed twice") {
  in_chunks(c);
  const auto sums = sums_of_pieces(c, [](int t) {
    int sum = 0;
    for (int round = 0; round < rounds_of_piece(t); ++round) sum += 2 * sum_of_piece(t, round);
    return sum;
  });
  by_all(c, "loop_of_pieces_parent", c.address(sums));
  by_all(c, "loop_of_pieces_parent", c.address(sums));
  c.rewritten("loop_of_pieces_parent");
  c.children_never_meet();
}
KLAP_CASE(chunks_handed_on, "a piece's header or the chunk's is not there yet when the piece is freed") {
  in_chunks(c);
  const auto places = addresses(c, "places", kPlaces);
  const auto cells = c.buffer("cells", std::vector<int>(kPlaces), std::vector<int>(kPlaces, 2));
  by_all(c, "hand_pieces_on_parent", c.address(places), c.address(cells));
  c.launch("free_places_parent", {1, 1, 1}, {kPlaces, 1, 1}, c.address(places), c.address(cells));
  c.rewritten("free_places_parent");
}
KLAP_CASE(chunks_in_all_ways, "cudaMalloc differs from malloc, or odd sizes disturb the others") {
  in_chunks(c);
  const auto pieces = addresses(c, "pieces"), wrong = nothing_wrong(c, "wrong");
  const auto sizes = nothing_wrong(c, "sizes");
  for (int i = 0; i < 2; ++i) {
    by_all(c, "take_in_all_ways_parent", c.address(pieces), c.address(wrong), c.address(sizes));
    by_all(c, "free_in_all_ways", c.address(pieces), c.address(wrong));
  }
  c.rewritten("take_in_all_ways_parent");
  c.children_never_meet();
}
// Natively the pieces take 288 times 48 bytes.
KLAP_CASE(chunks_in_nearly_full_heap,
          "a lane is refused while an open chunk has room, or chunks take it all") {
  in_chunks(c);
  const auto list = addresses(c, "list", 1), pieces = addresses(c, "pieces", 3 * kThreads);
  std::vector<int> expected(2 * kThreads);
  for (int t = 0; t < kThreads; ++t) expected[kThreads + t] = 2;
  const auto wrong = c.buffer("wrong", std::vector<int>(2 * kThreads), expected);
  by_one(c, "fill_heap", c.address(list));
  by_one(c, "empty_heap", c.address(list), 1, 1);
  for (int i = 0; i < 2; ++i) {
    by_all(c, "take_little_parent", c.address(pieces), c.address(wrong));
    by_all(c, "free_little", c.address(pieces), c.address(wrong));
  }
  by_one(c, "empty_heap", c.address(list), 100000, 0);
  c.rewritten("take_little_parent");
  c.children_never_meet();
}
KLAP_CASE(chunks_in_full_heap, "an allocation that fails loses a chunk, or its room") {
  in_chunks(c);
  const auto list = addresses(c, "list", 1), pieces = addresses(c, "pieces", 3 * kThreads);
  const auto lost = c.buffer("lost", std::vector<int>(2 * kThreads), std::vector<int>());
  by_one(c, "fill_heap", c.address(list));
  by_one(c, "empty_heap", c.address(list), 4, 0);
  by_all(c, "take_little_parent", c.address(pieces), c.address(lost));
  by_all(c, "free_little", c.address(pieces), c.address(lost));
  by_one(c, "empty_heap", c.address(list), 100000, 0);
  c.rewritten("take_little_parent");
  c.children_never_meet();
}

#endif
