// The picture, its pixels, and how the CPU draws it; see mandelbrot.cu.
#pragma once

#include <cstdint>

constexpr int kMostSteps = 255;  // the value of pixels that are in the set

struct Square {
  int x, y, extent;

  __host__ __device__ int pixels() const { return extent * extent; }
};

struct Picture {
  uint8_t* values;
  int side;
  int smallest;  // squares of this extent are not divided

  __host__ __device__ uint8_t& at(const Square& s, int k) const {
    return values[(s.y + k / s.extent) * side + s.x + k % s.extent];
  }
};

// Counts the steps until a point leaves the circle of radius 2. Integers with 24 binary places give the CPU
// and the GPU the same picture to the last pixel.
__host__ __device__ inline uint8_t steps_at(int x, int y, int side) {
  constexpr int64_t kOne = 1 << 24;
  const int64_t real = kOne * 26 * x / (10 * side) - kOne * 205 / 100;
  const int64_t imaginary = kOne * 26 * y / (10 * side) - kOne * 13 / 10;
  int64_t a = 0, b = 0;
  int steps = 0;
  for (; steps < kMostSteps && a * a + b * b <= 4 * kOne * kOne; ++steps) {
    const int64_t next = (a * a - b * b) / kOne + real;
    b = 2 * a * b / kOne + imaginary;
    a = next;
  }
  return static_cast<uint8_t>(steps);
}

__host__ __device__ inline void draw_pixel(const Picture& p, const Square& s, int k) {
  p.at(s, k) = steps_at(s.x + k % s.extent, s.y + k / s.extent, p.side);
}

// Draws the k-th pixel of each side of a square, and returns whether all of them have the value `first`.
__host__ __device__ inline bool draw_border(const Picture& p, const Square& s, int k, int first) {
  const int last = s.extent - 1;
  bool same = true;
  for (const int pixel : {k, k * s.extent, last * s.extent + k, k * s.extent + last}) {
    draw_pixel(p, s, pixel);
    same = same && p.at(s, pixel) == first;
  }
  return same;
}

// Draws the same on the CPU, and returns how many squares there are.
inline int draw_on_cpu(const Picture& p, const Square& s) {
  const uint8_t corner = steps_at(s.x, s.y, p.side);
  bool same = true;
  for (int k = 0; k < s.extent; ++k) same = draw_border(p, s, k, corner) && same;
  if (same || s.extent <= p.smallest) {
    for (int k = 0; k < s.pixels(); ++k) {
      p.at(s, k) = same ? corner : steps_at(s.x + k % s.extent, s.y + k / s.extent, p.side);
    }
    return 1;
  }
  const int e = s.extent / 2;
  int squares = 1;
  for (int i = 0; i < 4; ++i) squares += draw_on_cpu(p, {s.x + i % 2 * e, s.y + i / 2 * e, e});
  return squares;
}
