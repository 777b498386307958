// Arguments of every width: all scalar types, vectors, structures with padding, a structure of 200 bytes and
// one of nearly 4 KB that the child indexes dynamically, and the same as a __grid_constant__ reached through
// its address.
#include "program.h"

constexpr int kParents = 300;
constexpr int kFields = 20;

struct Padded {
  char letter;
  double value;
  short count;
};

struct Words200 {
  int word[50];
};

struct Words4000 {
  int word[1000];
};

// A value every field of launch t can be told apart by.
__host__ __device__ constexpr long long value(int t, int field) {
  return (t * 37LL + field * 11LL) % 101 + 1;
}

__global__ void store_fields(double* out, signed char c, unsigned char uc, short s, unsigned short us, int i,
                             unsigned u, long long ll, unsigned long long ull, float f, double d, bool b,
                             char3 small, float4 v, double2 pair, Padded padded, const int* p) {
  const double field[kFields] = {double(c),
                                 double(uc),
                                 double(s),
                                 double(us),
                                 double(i),
                                 double(u),
                                 double(ll),
                                 double(ull),
                                 f,
                                 d,
                                 b ? 1.0 : 0.0,
                                 double(small.x),
                                 double(small.z),
                                 v.x,
                                 v.w,
                                 pair.x,
                                 pair.y,
                                 double(padded.letter) + padded.count,
                                 padded.value,
                                 double(*p)};
  if (threadIdx.x < kFields) out[threadIdx.x] = field[threadIdx.x];
}

__global__ void launch_fields(double* out, const int* table) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kParents) return;
  const Padded padded = {static_cast<char>(value(t, 17)), value(t, 18) * 0.5, 1000};
  store_fields<<<1, 32>>>(
      out + t * kFields, static_cast<signed char>(-value(t, 0)),
      static_cast<unsigned char>(value(t, 1) + 150), static_cast<short>(-value(t, 2) * 300),
      static_cast<unsigned short>(value(t, 3) + 60000), static_cast<int>(-value(t, 4) * 1000000),
      static_cast<unsigned>(value(t, 5)) + 4000000000U, -value(t, 6) * 1000000000000LL,
      static_cast<unsigned long long>(value(t, 7)) << 45, static_cast<float>(value(t, 8)) * 0.25F,
      static_cast<double>(value(t, 9)) * 0.125, value(t, 10) % 2 == 0,
      make_char3(static_cast<char>(value(t, 11)), 1, static_cast<char>(value(t, 12))),
      make_float4(static_cast<float>(value(t, 13)), 2, 3, static_cast<float>(value(t, 14))),
      make_double2(static_cast<double>(value(t, 15)), static_cast<double>(value(t, 16))), padded, table + t);
}

void test_fields(gpu::Report& report) {
  std::vector<int> table;
  std::vector<double> expected;
  for (int t = 0; t < kParents; ++t) {
    auto v = [t](int field) { return static_cast<double>(value(t, field)); };
    table.push_back(static_cast<int>(value(t, 19)));
    const double field[kFields] = {-v(0),
                                   v(1) + 150,
                                   -v(2) * 300,
                                   v(3) + 60000,
                                   -v(4) * 1000000,
                                   v(5) + 4000000000.0,
                                   -v(6) * 1e12,
                                   v(7) * 35184372088832.0,
                                   v(8) * 0.25,
                                   v(9) * 0.125,
                                   value(t, 10) % 2 == 0 ? 1.0 : 0.0,
                                   v(11),
                                   v(12),
                                   v(13),
                                   v(14),
                                   v(15),
                                   v(16),
                                   v(17) + 1000,
                                   v(18) * 0.5,
                                   v(19)};
    expected.insert(expected.end(), field, field + kFields);
  }
  const gpu::Buffer<double> out(expected.size());
  const gpu::Buffer<int> pointed(table);
  launch_fields<<<3, 128>>>(out.data(), pointed.data());
  gpu::wait("launch_fields");
  report.expect_equal("scalar and vector arguments", out.to_host(), expected);
}

__global__ void store_words200(int* out, Words200 words, int step) {
  if (threadIdx.x < 50) out[threadIdx.x] = words.word[(threadIdx.x * step) % 50];
}

__global__ void launch_words200(int* out) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kParents) return;
  Words200 words;
  for (int i = 0; i < 50; ++i) words.word[i] = t * 100 + i;
  store_words200<<<1, 64>>>(out + t * 50, words, t + 1);
}

void test_words200(gpu::Report& report) {
  std::vector<int> expected;
  for (int t = 0; t < kParents; ++t) {
    for (int i = 0; i < 50; ++i) expected.push_back(t * 100 + i * (t + 1) % 50);
  }
  const gpu::Buffer<int> out(expected.size());
  launch_words200<<<3, 128>>>(out.data());
  gpu::wait("launch_words200");
  report.expect_equal("structure of 200 bytes", out.to_host(), expected);
}

constexpr int kLargeParents = 48;

__global__ void store_words4000(int* out, Words4000 words, int step) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 1000) out[i] = words.word[(i * step) % 1000];
}

__global__ void launch_words4000(int* out, Words4000 words) {
  const int t = threadIdx.x;
  if (t >= kLargeParents) return;
  words.word[t] = -t;
  store_words4000<<<8, 128>>>(out + t * 1000, words, t + 1);
}

__noinline__ __device__ int word_at(const int* words, unsigned index) { return words[index]; }

__global__ void store_constant(int* out, const __grid_constant__ Words4000 words, int step) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 1000) out[i] = word_at(words.word, (i * step) % 1000);
}

__global__ void launch_constant(int* out, Words4000 words) {
  const int t = threadIdx.x;
  if (t >= kLargeParents) return;
  words.word[t] = -t;
  store_constant<<<8, 128>>>(out + t * 1000, words, t + 1);
}

void test_words4000(gpu::Report& report, const char* what, void (*parent)(int*, Words4000)) {
  Words4000 words;
  for (int i = 0; i < 1000; ++i) words.word[i] = 5 * i + 3;
  std::vector<int> expected;
  for (int t = 0; t < kLargeParents; ++t) {
    for (int i = 0; i < 1000; ++i) {
      const int from = i * (t + 1) % 1000;
      expected.push_back(from == t ? -t : words.word[from]);
    }
  }
  const gpu::Buffer<int> out(expected.size());
  parent<<<1, 64>>>(out.data(), words);
  gpu::wait(what);
  report.expect_equal(what, out.to_host(), expected);
}

int main() {
  gpu::Report report("widths");
  test_fields(report);
  test_words200(report);
  test_words4000(report, "structure of 4000 bytes", launch_words4000);
  test_words4000(report, "__grid_constant__ structure", launch_constant);
  return report.finish();
}
