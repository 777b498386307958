// The contract of a launch's child: the kernel, the arguments and the shared memory that the program names
// are those that run, and the child's threads may meet.
#include "contract_forms.h"

namespace klap::differential::contract::children {

#ifdef __CUDACC__

// ---- children whose threads meet ----

__global__ void reverse(int* cells) {
  __shared__ int tile[64];
  const int t = static_cast<int>(threadIdx.x), begin = static_cast<int>(blockIdx.x) * 64;
  tile[t] = cells[begin + t];
  __syncthreads();
  cells[begin + t] = (3 * tile[63 - t] + t) & 0xffff;
}
__global__ void reverse_any(int* cells) {
  __shared__ int tile[1024];
  const int t = static_cast<int>(threadIdx.x), all = static_cast<int>(blockDim.x);
  tile[t] = cells[t];
  __syncthreads();
  cells[t] = (3 * tile[all - 1 - t] + t) & 0xffff;
}
__global__ void reverse_dynamic(int* cells) {
  extern __shared__ int tile_of_any[];
  const int t = static_cast<int>(threadIdx.x), begin = static_cast<int>(blockIdx.x) * 64;
  tile_of_any[t] = cells[begin + t];
  __syncthreads();
  cells[begin + t] = (3 * tile_of_any[63 - t] + t) & 0xffff;
}
__global__ void add_neighbours(int* cells) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), own = cells[t];
  const int next = __shfl_sync(0xffffffffu, own, static_cast<int>(threadIdx.x + 1) % 32);
  const unsigned int odd = __ballot_sync(0xffffffffu, own % 2 != 0);
  cells[t] = (3 * own + next + __popc(odd)) & 0xffff;
}
// Threads end at different places, before and in a loop.
__global__ void leave_early(int* cells, int n) {
  const int t = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (t >= n || t % 7 == 3) return;
  for (int i = 0; i < 5; ++i) {
    if (i == t % 5 && t % 2 == 0) return;
    cells[t] = (cells[t] * 3 + i) & 0xffff;
  }
}
__global__ void __launch_bounds__(96) bounded(int* cells) { atomicAdd(cells + threadIdx.x, 1); }

// ---- arguments ----

struct Mixed {
  char letter;
  short number;
  double real;
  int list[5];
  int* place;
  unsigned char last;
};
struct alignas(16) Wide {
  long long words[6];
};
__global__ void take_small(int* log, char a, short b, unsigned char c, bool d, float e) {
  note(log, (a + 3 * b + 5 * c + (d ? 7 : 0) + static_cast<int>(e * 4)) & 0xffff);
}
__global__ void take_mixed(Mixed m, int* log, long long w, const Wide wide) {
  long long sum = m.letter + 3 * m.number + static_cast<long long>(m.real * 2) + m.last + w;
  for (const int value : m.list) sum = sum * 3 + value;
  for (const long long word : wide.words) sum = sum * 5 + word;
  *m.place += 1;
  note(log, static_cast<int>(sum & 0xffff));
}
__global__ void take_nothing() {}
__global__ void note_first(int* log, int value) { note(log, value); }
__global__ void note_second(int* log, int value) { note(log, -value); }
template <class Kernel>
__device__ void launch_given(Kernel kernel, int* log, int value) {
  kernel<<<1, 1>>>(log, value);
}
__device__ __noinline__ void launch_in_function(int* log, int value) { note_first<<<1, 1>>>(log, value); }

#endif

constexpr int kHere = 200;  // where the number of threads stands

// ---- threads that meet ----

enum class Meeting { Barrier, BarrierOfAny, Dynamic, DynamicOfAny, Warp };

template <class Stream, Meeting How>
struct Meets : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    const unsigned int threads = static_cast<unsigned int>(cells[kHere]);
    for (int i = 0; i < 3; ++i) {
      if constexpr (How == Meeting::Barrier) reverse<<<2, 64, 0, handle>>>(cells);
      if constexpr (How == Meeting::BarrierOfAny) reverse_any<<<1, threads, 0, handle>>>(cells);
      if constexpr (How == Meeting::Dynamic) reverse_dynamic<<<2, 64, 256, handle>>>(cells);
      if constexpr (How == Meeting::DynamicOfAny) reverse_dynamic<<<2, 64, 2 * threads, handle>>>(cells);
      if constexpr (How == Meeting::Warp) add_neighbours<<<2, 64, 0, handle>>>(cells);
    }
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "Threads of a child meet at barriers, share memory of their block and talk within their warp.";
  static constexpr const char* kWrong =
      "a barrier or a warp's operation has other threads, or shared memory is lost";
  static std::string form() {
    constexpr const char* kForms[] = {"barrier and static memory, constant block",
                                      "barrier, block from memory", "dynamic memory of a constant size",
                                      "dynamic memory of any size", "operations of full warps"};
    return std::string(kForms[static_cast<int>(How)]) + "; " + Stream::kName;
  }
  static void set(int* cells) {
    for (int i = 0; i < 128; ++i) cells[i] = i * i;
    cells[kHere] = 128;
  }
  static void reverse(int* cells, int n) {
    const std::vector<int> before(cells, cells + n);
    for (int t = 0; t < n; ++t) cells[t] = (3 * before[static_cast<size_t>(n - 1 - t)] + t) & 0xffff;
  }
  static void add_neighbours(int* cells) {
    const std::vector<int> before(cells, cells + 32);
    int odd = 0;
    for (const int value : before) odd += value % 2;
    for (size_t t = 0; t < 32; ++t) cells[t] = (3 * before[t] + before[(t + 1) % 32] + odd) & 0xffff;
  }
  static void expect(int* cells) {
    for (int i = 0; i < 3; ++i) {
      if (How == Meeting::BarrierOfAny) {
        reverse(cells, 128);
      } else if (How == Meeting::Warp) {
        for (int warp = 0; warp < 4; ++warp) add_neighbours(cells + 32 * warp);
      } else {
        reverse(cells, 64), reverse(cells + 64, 64);
      }
    }
  }
#endif
};
template <class Stream>
struct EarlyEnds : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    for (int i = 0; i < 2; ++i) leave_early<<<4, 33, 0, handle>>>(cells, 120);
    bounded<<<2, 90, 0, handle>>>(cells);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "Threads of a child may end wherever they want, and a block at its own size.";
  static constexpr const char* kWrong =
      "a thread that ends early takes others with it, or holds up its stream";
  static std::string form() { return Stream::kName; }
  static void leave(int* cells) {
    for (int t = 0; t < 120; ++t) {
      for (int i = 0; i < 5 && t % 7 != 3; ++i) {
        if (i == t % 5 && t % 2 == 0) break;
        fold(cells + t, i);
      }
    }
  }
  static void expect(int* cells) {
    leave(cells), leave(cells);
    for (int t = 0; t < 90; ++t) cells[t] += 2;
  }
#endif
};

// ---- arguments and kernels ----

template <class Stream>
struct Arguments : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    const int x = cells[kSum];
    take_small<<<1, 1, 0, handle>>>(cells, static_cast<char>(x), static_cast<short>(-x), 200, x > 3, 1.25F);
    Mixed mixed = {'a', 99, 2.5, {1, 2, 3, 4, x}, cells + kOther, 250};
    Wide wide = {{ x, 2, 3, 4, 5, -6 }};
    take_mixed<<<1, 1, 0, handle>>>(mixed, cells, 1ll << 40, wide);
    take_nothing<<<1, 1, 0, handle>>>();
    take_small<<<1, 1, 0, handle>>>(cells, -1, 300, 7, false, -2.5F);
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "Arguments of every type that may be passed by value reach the child unchanged.";
  static constexpr const char* kWrong = "an argument is cut, shifted, or another launch's";
  static std::string form() { return std::string("small types, structures, none; ") + Stream::kName; }
  static void set(int* cells) { cells[kSum] = 11; }
  static void expect(int* cells) {
    const int x = cells[kSum];
    note(cells, (x - 3 * x + 5 * 200 + 7 + 5) & 0xffff);
    long long sum = 'a' + 3 * 99 + 5 + 250 + (1ll << 40);
    for (const int value : {1, 2, 3, 4, x}) sum = sum * 3 + value;
    for (const int word : {x, 2, 3, 4, 5, -6}) sum = sum * 5 + word;
    cells[kOther] += 1;
    note(cells, static_cast<int>(sum & 0xffff));
    note(cells, (-1 + 900 + 35 - 10) & 0xffff);
  }
#endif
};

enum class Where { Switch, Function, Template, Pointer };

template <Where How>
struct Kernels : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
#pragma unroll 1
    for (int i = 0; i < 6; ++i) {
      if constexpr (How == Where::Switch) {
        switch (cells[kSum + i]) {
          case 0:
            note_first<<<1, 1>>>(cells, i);
            break;
          case 1:
            note_second<<<1, 1>>>(cells, i);
            break;
          default:
            take_nothing<<<3, 3>>>();
        }
      } else if constexpr (How == Where::Function) {
        launch_in_function(cells, i);
        if (cells[kSum + i] == 1) launch_in_function(cells, -i);
      } else if constexpr (How == Where::Template) {
        launch_given(note_first, cells, i);
        if (cells[kSum + i] == 1) launch_given(note_second, cells, i);
      } else {
        const auto kernel = cells[kSum + i] == 1 ? note_second : note_first;
        kernel<<<1, 1>>>(cells, i);
      }
    }
  }
#else
  static constexpr const char* kSays = "A launch may stand wherever a call may stand, and name any kernel.";
  static constexpr const char* kWrong = "another kernel runs, or the order of launches is that of the code";
  static std::string form() {
    constexpr const char* kForms[] = {"in a switch in a loop", "in a called function", "in a template",
                                      "of a kernel that is chosen at run time"};
    return kForms[static_cast<int>(How)];
  }
  static void set(int* cells) {
    for (int i = 0; i < 6; ++i) cells[kSum + i] = i * 2 % 3;
  }
  static void expect(int* cells) {
    for (int i = 0; i < 6; ++i) {
      const int which = cells[kSum + i];
      if (How == Where::Switch && which > 1) continue;
      if (How == Where::Function || How == Where::Template) note(cells, i);
      if (How == Where::Function || How == Where::Template ? which == 1 : true)
        note(cells, which == 1 ? -i : i);
    }
  }
#endif
};

// ---- rows ----

AT_LEVELS(meet_barrier, Meets<NullStream, Meeting::Barrier>)
AT_LEVELS(meet_barrier_created, Meets<CreatedStream, Meeting::Barrier>)
AT_LEVELS(meet_barrier_any, Meets<NullStream, Meeting::BarrierOfAny>)
AT_LEVELS(meet_dynamic, Meets<NullStream, Meeting::Dynamic>)
AT_LEVELS(meet_dynamic_any, Meets<NullStream, Meeting::DynamicOfAny>)
AT_LEVELS(meet_warp, Meets<NullStream, Meeting::Warp>)
AT_LEVELS(meet_warp_tail, Meets<TailStream, Meeting::Warp>)
AT_LEVELS(early_ends, EarlyEnds<NullStream>)
AT_LEVELS(early_ends_thread, EarlyEnds<ThreadStream>)
AT_LEVELS(arguments_null, Arguments<NullStream>)
AT_LEVELS(arguments_created, Arguments<CreatedStream>)
AT_LEVELS(arguments_tail, Arguments<TailStream>)
AT_LEVELS(kernels_switch, Kernels<Where::Switch>)
AT_LEVELS(kernels_function, Kernels<Where::Function>)
AT_LEVELS(kernels_template, Kernels<Where::Template>)
AT_LEVELS(kernels_pointer, Kernels<Where::Pointer>)

}  // namespace klap::differential::contract::children
