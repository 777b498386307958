// The contract of memory between grids: whatever waits for a grid sees all that the grid and its descendants
// wrote, by any kind of load and of any width.
#include "contract_forms.h"

namespace klap::differential::contract::visibility {

constexpr int kCount = 40;

#ifdef __CUDACC__

__global__ void sum_up(int* cells, const int* from, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum = (sum * 3 + from[i]) & 0xffff;
  note(cells, sum);
}
// These reads are by pointers that promise that nobody writes there while the kernel runs.
__global__ void sum_up_restricted(int* __restrict__ log, const int* __restrict__ from, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum = (sum * 3 + from[i]) & 0xffff;
  note(log, sum);
}
__global__ void sum_up_cached(int* log, const int* from, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum = (sum * 3 + __ldg(from + i)) & 0xffff;
  note(log, sum);
}
__global__ void fill(int* to, int count, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) to[i] = i * value + to[i];
}
__global__ void fill_later(int* to, int count, int value) { fill<<<5, 8>>>(to, count, value); }

// Elements of other widths.
template <class T>
__global__ void widen(T* to, int value) {
  to[threadIdx.x] = static_cast<T>(to[threadIdx.x] + value + threadIdx.x);
}
template <class T>
__global__ void narrow(int* log, const T* from) {
  int sum = 0;
  for (int i = 0; i < 16; ++i) sum = (sum * 3 + static_cast<int>(from[i])) & 0xffff;
  note(log, sum);
}
__global__ void add_vectors(int4* to) {
  int4 value = to[threadIdx.x];
  value.x += 1, value.y += value.x, value.z += value.y, value.w += value.z;
  to[threadIdx.x] = value;
}

#endif

inline int sum_of(const int* from, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum = (sum * 3 + from[i]) & 0xffff;
  return sum;
}

// ---- what a grid sees of the one before it ----

enum class Reader { Plain, Restricted, Cached };

template <class Stream, Reader How, bool IsLater>
struct WritesBefore : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    Stream stream;
    const cudaStream_t handle = stream.open(cells);
    int* const from = cells + kOther;
    for (int i = 1; i < 4; ++i) {
      if constexpr (IsLater) {
        fill_later<<<1, 1, 0, handle>>>(from, kCount, i);
      } else {
        fill<<<5, 8, 0, handle>>>(from, kCount, i);
      }
      if constexpr (How == Reader::Plain) sum_up<<<1, 1, 0, handle>>>(cells, from, kCount);
      if constexpr (How == Reader::Restricted) sum_up_restricted<<<1, 1, 0, handle>>>(cells, from, kCount);
      if constexpr (How == Reader::Cached) sum_up_cached<<<1, 1, 0, handle>>>(cells, from, kCount);
    }
    stream.close();
  }
#else
  static constexpr const char* kSays =
      "A grid sees what the one before it in its stream wrote, and what all descendants of that one wrote.";
  static constexpr const char* kWrong = "a grid reads an old value of what the one before it wrote";
  static std::string form() {
    return std::string(Stream::kName) +
           (How == Reader::Plain        ? ""
            : How == Reader::Restricted ? ", reads by restricted pointers"
                                        : ", reads by __ldg") +
           (IsLater ? ", grandchildren write" : ", children write");
  }
  static void expect(int* cells) {
    for (int value = 1; value < 4; ++value) {
      for (int i = 0; i < kCount; ++i) cells[kOther + i] += i * value;
      note(cells, sum_of(cells + kOther, kCount));
    }
  }
#endif
};

template <class T>
struct Widths : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    T* const values = reinterpret_cast<T*>(cells + kOther);
    for (int i = 1; i < 4; ++i) {
      widen<<<1, 16>>>(values, i);
      narrow<<<1, 1>>>(cells, values);
    }
  }
#else
  static constexpr const char* kSays = "A grid sees writes of any width of the grids before it.";
  static constexpr const char* kWrong = "a write of that width is lost, or seen late";
  static std::string form() { return "elements of " + std::to_string(sizeof(T)) + " bytes"; }
  static void expect(int* cells) {
    T values[16];
    memcpy(values, cells + kOther, sizeof(values));
    for (int value = 1; value < 4; ++value) {
      int sum = 0;
      for (int i = 0; i < 16; ++i) {
        values[i] = static_cast<T>(values[i] + value + i);
        sum = (sum * 3 + static_cast<int>(values[i])) & 0xffff;
      }
      note(cells, sum);
    }
    memcpy(cells + kOther, values, sizeof(values));
  }
#endif
};
struct Vectors : Grid<1, 1> {
#ifdef __CUDACC__
  static __device__ void run(int* cells) {
    for (int i = 0; i < 4; ++i) add_vectors<<<1, 8>>>(reinterpret_cast<int4*>(cells + kOther));
  }
#else
  static constexpr const char* kSays = Widths<int>::kSays;
  static constexpr const char* kWrong = Widths<int>::kWrong;
  static std::string form() { return "vectors of 16 bytes"; }
  static void expect(int* cells) {
    for (int time = 0; time < 4; ++time) {
      for (int i = 0; i < 32; i += 4) {
        int* const v = cells + kOther + i;
        v[0] += 1, v[1] += v[0], v[2] += v[1], v[3] += v[2];
      }
    }
  }
#endif
};
// ---- rows ----

AT_LEVELS(before_null, WritesBefore<NullStream, Reader::Plain, false>)
AT_LEVELS(before_null_later, WritesBefore<NullStream, Reader::Plain, true>)
AT_LEVELS(before_null_restricted, WritesBefore<NullStream, Reader::Restricted, false>)
AT_LEVELS(before_null_restricted_later, WritesBefore<NullStream, Reader::Restricted, true>)
AT_LEVELS(before_null_cached, WritesBefore<NullStream, Reader::Cached, true>)
AT_LEVELS(before_thread_later, WritesBefore<ThreadStream, Reader::Plain, true>)
AT_LEVELS(before_created_later, WritesBefore<CreatedStream, Reader::Plain, true>)
AT_LEVELS(before_memory_cached, WritesBefore<StreamInMemory, Reader::Cached, true>)
AT_LEVELS(before_tail_restricted, WritesBefore<TailStream, Reader::Restricted, true>)
CONTRACT(contract_before_null_later_end, AtTheEnd, WritesBefore<NullStream, Reader::Plain, true>)
AT_LEVELS(bytes, Widths<unsigned char>)
AT_LEVELS(shorts, Widths<short>)
AT_LEVELS(longs, Widths<long long>)
AT_LEVELS(floats, Widths<float>)
AT_LEVELS(doubles, Widths<double>)
AT_LEVELS(vectors, Vectors)

}  // namespace klap::differential::contract::visibility
