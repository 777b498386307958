// Arguments of every width and a structure with padding.
#include "case.h"

constexpr int kThreads = 96;
constexpr int kFields = 11;

struct Padded {
  char letter;
  double value;
  short count;
};

KLAP_SHARED static constexpr long long value(int t, int field) { return (t * 37LL + field * 11LL) % 101 + 1; }

#ifdef __CUDACC__

__global__ void store(double* out, signed char c, unsigned char uc, short s, unsigned short us, int i,
                      unsigned u, long long ll, float f, double d, Padded padded, const double* pointed) {
  const double field[kFields] = {
      double(c), double(uc), double(s), double(us), double(i),
      double(u), double(ll), f,         d,          padded.letter + padded.value * padded.count,
      *pointed};
  if (threadIdx.x < kFields) out[threadIdx.x] = field[threadIdx.x];
}

extern "C" __global__ void parent_of_widths(double* out, const double* table) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= kThreads) return;
  const Padded padded = {char(value(t, 9)), value(t, 10) * 0.5, short(-3)};
  store<<<1, 32>>>(out + t * kFields, static_cast<signed char>(-value(t, 0)),
                   static_cast<unsigned char>(value(t, 1) + 150), static_cast<short>(-value(t, 2) * 300),
                   static_cast<unsigned short>(value(t, 3) + 60000), static_cast<int>(-value(t, 4) * 1000000),
                   static_cast<unsigned>(value(t, 5)) + 4000000000U, -value(t, 6) * 1000000000000LL,
                   static_cast<float>(value(t, 7)) * 0.25F, static_cast<double>(value(t, 8)) * 0.125, padded,
                   table + t);
}

#else

KLAP_CASE(argument_widths, "an argument is stored or read with a wrong offset, width or extension") {
  std::vector<double> table, after;
  for (int t = 0; t < kThreads; ++t) {
    const auto v = [t](int field) { return static_cast<double>(value(t, field)); };
    table.push_back(t * 1.5);
    after.insert(after.end(),
                 {-v(0), v(1) + 150, -v(2) * 300, v(3) + 60000, -v(4) * 1e6, v(5) + 4e9, -v(6) * 1e12,
                  v(7) * 0.25, v(8) * 0.125, v(9) + v(10) * 0.5 * -3, table.back()});
  }
  const auto out = c.buffer("out", std::vector<double>(after.size()), after);
  const auto pointed = c.input("table", table);
  c.launch("parent_of_widths", {2, 1, 1}, {64, 1, 1}, c.address(out), c.address(pointed));
  c.rewritten("parent_of_widths");
  c.children_never_meet();
}

#endif
