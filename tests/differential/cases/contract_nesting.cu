// The contract of nesting: grids launch grids to any depth, by any number of threads, and their completion
// is properly nested. A launching thread need not stay until its grids begin.
#include "contract_forms.h"

namespace klap::differential::contract::nesting {

#ifdef __CUDACC__

__global__ void one_note(int* log, int value) { note(log, value); }
// An entry of the log, of a cell that nobody updates any more.
__global__ void note_cell(int* log, const int* cell) { note(log, *cell); }
__global__ void add(int* cell, int value) {
  if (threadIdx.x == 0) atomicAdd(cell, value);
}

// Launches itself in one grid after the other, and adds in the last one.
template <class Stream>
__global__ void descend(int* cells, int depth) {
  if (depth == 0) {
    cells[kSum] += 7;
    return;
  }
  Stream stream;
  descend<Stream><<<1, 1, 0, stream.open(cells)>>>(cells, depth - 1);
  stream.close();
}

// A tree of which every grid of several blocks launches the next level, by all its threads.
template <class Stream>
__global__ void spread(int* cells, int depth) {
  atomicAdd(cells + kSum, depth + 1);
  if (depth == 0) return;
  Stream stream;
  spread<Stream><<<2, 2, 0, stream.open(cells)>>>(cells, depth - 1);
  stream.close();
}

// Notes the nodes of a tree from its leaves on.
template <class Stream>
__global__ void leaves_first(int* log, int node, int nodes) {
  Stream stream;
  const cudaStream_t handle = stream.open(log);
  for (int next = 2 * node; next <= 2 * node + 1; ++next) {
    if (next < nodes) leaves_first<Stream><<<1, 1, 0, handle>>>(log, next, nodes);
  }
  one_note<<<1, 1, 0, handle>>>(log, node);
  stream.close();
}

// Only one block of several launches, or only one thread of a block.
__global__ void some_launch(int* cells) {
  if (blockIdx.x == 3 && threadIdx.x == 5) add<<<1, 1>>>(cells + kSum, 5);
  if (blockIdx.x == 1 && threadIdx.x == 2) add<<<1, 1, 0, cudaStreamFireAndForget>>>(cells + kSum, 6);
}

struct Letter {
  int words[20];
};
__global__ void read_letter(int* log, Letter letter) {
  int sum = 0;
  for (const int word : letter.words) sum = sum * 3 + word;
  note(log, sum & 0xffff);
}
__global__ void read_later(int* log, Letter letter) {
  for (int& word : letter.words) word += 1;
  read_letter<<<1, 1>>>(log, letter);
  for (int& word : letter.words) word += 1;
  read_letter<<<1, 1>>>(log, letter);
}

#endif

// ---- a grid and what it launches ----

template <class Stream, class Inner, int Depth>
struct BehindDescendants : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    descend<Inner><<<1, 1, 0, handle>>>(cells, Depth);
    note_cell<<<1, 1, 0, handle>>>(cells, cells + kSum);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "Grids may be nested to any depth that the device allows, and a grid is "
      "complete only behind the deepest of them.";
  static constexpr const char* kWrong = "a grid begins before the deepest descendant of the one before it";
  static std::string form() {
    return std::string(Stream::kName) + "; " + std::to_string(Depth) + " levels in " + Inner::kName;
  }
  static void expect(int* cells) {
    cells[kSum] += 7;
    note(cells, cells[kSum]);
  }
#endif
};

template <class Inner, int Depth>
struct BehindTree : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    spread<Inner><<<2, 2>>>(cells, Depth);
    note_cell<<<1, 1>>>(cells, cells + kSum);
    spread<Inner><<<2, 2>>>(cells, Depth - 1);
    note_cell<<<1, 1>>>(cells, cells + kSum);
  }
#else
  static constexpr const char* kSays =
      "A grid of several blocks is complete when all grids are that any thread of "
      "any of its blocks launched.";
  static constexpr const char* kWrong = "a grid does not wait for what another block or thread launched";
  static std::string form() { return std::to_string(Depth) + " levels of four threads in " + Inner::kName; }
  static int sum(int depth) { return 4 * (depth + 1 + (depth == 0 ? 0 : sum(depth - 1))); }
  static void expect(int* cells) {
    for (const int depth : {Depth, Depth - 1}) {
      cells[kSum] += sum(depth);
      note(cells, cells[kSum]);
    }
  }
#endif
};

template <class Stream>
struct LeavesFirst : Grid<1, 1> {
  static constexpr int kNodes = 24;
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    leaves_first<Stream><<<1, 1, 0, stream.open(cells)>>>(cells, 1, kNodes);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "Invocation and completion of grids are properly nested, so a recursion runs as on one processor.";
  static constexpr const char* kWrong = "a subtree does not wait for the one before it";
  static std::string form() { return std::string("recursion with three launches into ") + Stream::kName; }
  static void visit(int* log, int node) {
    if (node >= kNodes) return;
    visit(log, 2 * node);
    visit(log, 2 * node + 1);
    note(log, node);
  }
  static void expect(int* cells) { visit(cells, 1); }
#endif
};

struct SomeLaunch : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    some_launch<<<5, 8>>>(cells);
    note_cell<<<1, 1>>>(cells, cells + kSum);
    some_launch<<<2, 8>>>(cells);
    note_cell<<<1, 1>>>(cells, cells + kSum);
  }
#else
  static constexpr const char* kSays = BehindTree<int, 1>::kSays;
  static constexpr const char* kWrong = "the launch of one thread of a grid is lost, or not waited for";
  static std::string form() { return "one thread of two blocks of five"; }
  static void expect(int* cells) {
    note(cells, cells[kSum] += 11);
    note(cells, cells[kSum] += 6);
  }
#endif
};

// ---- the launching thread is gone, or goes on ----

template <class Stream>
struct LettersOfThreads : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    Letter letter;
    for (int i = 0; i < 20; ++i) letter.words[i] = i * i + cells[kSum];
    read_letter<<<1, 1, 0, handle>>>(cells, letter);
    for (int& word : letter.words) word *= 2;
    read_later<<<1, 1, 0, handle>>>(cells, letter);
    for (int& word : letter.words) word = -1;
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A grid gets its arguments as they are when it is launched. The thread may "
      "change its variables then, or end.";
  static constexpr const char* kWrong =
      "a grid reads arguments that its launcher has changed, or that are gone";
  static std::string form() { return std::string("structures by value in ") + Stream::kName; }
  static void set(int* cells) { cells[kSum] = 9; }
  static int read(const std::vector<int>& words) {
    int sum = 0;
    for (const int word : words) sum = sum * 3 + word;
    return sum & 0xffff;
  }
  static void expect(int* cells) {
    std::vector<int> words;
    for (int i = 0; i < 20; ++i) words.push_back(i * i + cells[kSum]);
    note(cells, read(words));
    for (int& word : words) word = 2 * word + 1;
    note(cells, read(words));
    for (int& word : words) word += 1;
    note(cells, read(words));
  }
#endif
};

// ---- rows ----

AT_LEVELS(depth_two_null, BehindDescendants<NullStream, NullStream, 2>)
AT_LEVELS(depth_null, BehindDescendants<NullStream, NullStream, 18>)
AT_LEVELS(depth_thread, BehindDescendants<ThreadStream, ThreadStream, 18>)
AT_LEVELS(depth_forget, BehindDescendants<NullStream, ForgetStream, 18>)
AT_LEVELS(depth_tail, BehindDescendants<NullStream, TailStream, 18>)
AT_LEVELS(depth_created, BehindDescendants<CreatedStream, CreatedStream, 18>)
AT_LEVELS(spread_null, BehindTree<NullStream, 2>)
AT_LEVELS(spread_thread, BehindTree<ThreadStream, 2>)
AT_LEVELS(spread_created, BehindTree<CreatedStream, 2>)
AT_LEVELS(spread_forget, BehindTree<ForgetStream, 3>)
AT_LEVELS(spread_tail, BehindTree<TailStream, 2>)
AT_LEVELS(some_launch, SomeLaunch)
AT_LEVELS(leaves_null, LeavesFirst<NullStream>)
AT_LEVELS(leaves_thread, LeavesFirst<ThreadStream>)
AT_LEVELS(leaves_created, LeavesFirst<CreatedStream>)
AT_LEVELS(leaves_tail, LeavesFirst<TailStream>)
AT_LEVELS(letters_null, LettersOfThreads<NullStream>)
AT_LEVELS(letters_thread, LettersOfThreads<ThreadStream>)
AT_LEVELS(letters_created, LettersOfThreads<CreatedStream>)

}  // namespace klap::differential::contract::nesting
