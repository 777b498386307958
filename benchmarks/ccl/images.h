// Binary images: drawn from a seed or read from a file, and their connected components found on the CPU.
#pragma once

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/parallel.h"
#include "../common/random.h"

// Images of one size, one after another, row by row; a pixel is a byte that is 1 in the foreground, else 0.
struct Images {
  int width = 0;
  int height = 0;
  int count = 0;
  std::vector<unsigned char> pixel;

  [[nodiscard]] size_t pixels_per_image() const { return static_cast<size_t>(width) * height; }
};

// Whether pixels can be numbered with 31 bits, also when every row is filled up to whole warps and the last
// block of threads is full.
inline bool fits(long long width, long long height, long long count) {
  constexpr long long kMost = INT_MAX - 1024;
  if (width > kMost || height > kMost || count > kMost) return false;
  const long long row = (width + 31) / 32 * 32;
  return row * height <= kMost && row * height * count <= kMost;
}

// Calls body(i) for every image, from several threads: an image belongs to the thread whose share of all the
// pixels it begins in.
template <class Body>
void for_each_image(const Images& images, const Body& body) {
  const size_t size = images.pixels_per_image();
  bench::parallel_ranges(size * images.count, [&](size_t begin, size_t end) {
    for (size_t i = (begin + size - 1) / size; i * size < end; ++i) body(static_cast<int>(i));
  });
}

namespace drawing {

constexpr int kSmallestRadius = 2;
constexpr int kLargestRadius = 12;

inline void fill_disc(unsigned char* image, int width, int height, int x, int y, int radius) {
  for (int row = std::max(0, y - radius); row <= std::min(height - 1, y + radius); ++row) {
    const int half =
        static_cast<int>(std::sqrt(static_cast<double>(radius * radius - (row - y) * (row - y))));
    const int begin = std::max(0, x - half);
    const int end = std::min(width, x + half + 1);
    if (begin < end) std::memset(image + static_cast<size_t>(row) * width + begin, 1, end - begin);
  }
}

// Discs with random centres, as many as cover `density` percent of a plane; centres also lie a little outside
// the image, so that its margins are like the rest.
inline void draw(unsigned char* image, int width, int height, double density, bench::Random& random) {
  double mean_square = 0;
  for (int r = kSmallestRadius; r <= kLargestRadius; ++r) mean_square += static_cast<double>(r) * r;
  mean_square /= kLargestRadius - kSmallestRadius + 1;
  const uint32_t wide = static_cast<uint32_t>(width) + 2 * kLargestRadius;
  const uint32_t high = static_cast<uint32_t>(height) + 2 * kLargestRadius;
  const double discs = -std::log(1 - density / 100) * wide * high / (3.14159265358979 * mean_square);
  for (long long i = 0; i < std::llround(discs); ++i) {
    const int x = static_cast<int>(random.below(wide)) - kLargestRadius;
    const int y = static_cast<int>(random.below(high)) - kLargestRadius;
    const uint32_t larger = random.below(kLargestRadius - kSmallestRadius + 1);
    fill_disc(image, width, height, x, y, kSmallestRadius + static_cast<int>(larger));
  }
}

}  // namespace drawing

// Images with blobs on about `density` percent of their area; the caller has seen that they fit.
inline Images drawn_images(int width, int height, int count, double density, uint64_t seed) {
  Images images = {width, height, count, {}};
  images.pixel.resize(images.pixels_per_image() * count);
  for_each_image(images, [&](int i) {
    bench::Random random(seed, static_cast<uint64_t>(i));
    drawing::draw(images.pixel.data() + i * images.pixels_per_image(), width, height, density, random);
  });
  return images;
}

// Binary portable bitmaps (`P4`), one or several in a file, all of the same size; black is foreground.
class BitmapReader {
 public:
  explicit BitmapReader(const std::string& file) : file_(file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) fail("cannot be opened");
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
    if (in.bad()) fail("cannot be read");
  }

  Images read() {
    Images images;
    do {
      read_image(images);
      while (at_ < bytes_.size() && is_space(bytes_[at_])) ++at_;
    } while (at_ < bytes_.size());
    return images;
  }

 private:
  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(file_ + ": byte " + std::to_string(at_) + ": " + what);
  }

  void skip_space_and_comments() {
    while (at_ < bytes_.size() && (is_space(bytes_[at_]) || bytes_[at_] == '#')) {
      if (bytes_[at_] == '#') at_ = std::min(bytes_.find('\n', at_), bytes_.size() - 1);
      ++at_;
    }
  }

  int number(const char* what) {
    skip_space_and_comments();
    long long value = 0;
    const size_t begin = at_;
    for (; at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9'; ++at_) {
      value = value * 10 + (bytes_[at_] - '0');
      if (value > INT_MAX) fail(std::string("out of range: the ") + what);
    }
    if (at_ == begin || value == 0) fail(std::string("no positive number where the ") + what + " should be");
    return static_cast<int>(value);
  }

  void read_image(Images& images) {
    if (bytes_.compare(at_, 2, "P4") != 0) fail("not a binary portable bitmap (P4)");
    at_ += 2;
    const int width = number("width");
    const int height = number("height");
    if (at_ == bytes_.size() || !is_space(bytes_[at_])) fail("the size is not followed by a blank");
    ++at_;
    if (images.count > 0 && (width != images.width || height != images.height)) {
      fail("the images are not all of one size");
    }
    images.width = width;
    images.height = height;
    if (!fits(width, height, ++images.count)) fail("too many pixels: they are numbered with 31 bits");
    read_pixels(images);
  }

  void read_pixels(Images& images) {
    const size_t row_bytes = (static_cast<size_t>(images.width) + 7) / 8;
    if (bytes_.size() - at_ < row_bytes * images.height) fail("the file ends before the image does");
    for (int y = 0; y < images.height; ++y, at_ += row_bytes) {
      for (int x = 0; x < images.width; ++x) {
        const int eight = static_cast<unsigned char>(bytes_[at_ + x / 8]);
        images.pixel.push_back(static_cast<unsigned char>((eight >> (7 - x % 8)) & 1));
      }
    }
  }

  std::string file_;
  std::string bytes_;
  size_t at_ = 0;
};

namespace reference {

inline int find(const int* label, int p) {
  while (label[p] != p) p = label[p];
  return p;
}

// Labels the pixels from `begin` on, which are one image. A label never exceeds its pixel's number, so one
// pass in ascending order turns parents into roots.
inline void label_image(const Images& images, int begin, int* label) {
  const unsigned char* pixel = images.pixel.data();
  const int end = begin + static_cast<int>(images.pixels_per_image());
  for (int p = begin; p < end; ++p) {
    if (pixel[p] == 0) continue;
    const bool left = (p - begin) % images.width != 0 && pixel[p - 1] != 0;
    const bool above = p - begin >= images.width && pixel[p - images.width] != 0;
    label[p] = left ? find(label, p - 1) : p;
    if (!above) continue;
    const int other = find(label, p - images.width);
    const int root = std::min(label[p], other);
    label[std::max(label[p], other)] = root;
    label[p] = root;
  }
  for (int p = begin; p < end; ++p) {
    if (pixel[p] != 0) label[p] = label[label[p]];
  }
}

}  // namespace reference

// For each foreground pixel the smallest number of a pixel of its component, by the four direct neighbours
// and within its image; -1 in the background.
inline std::vector<int> cpu_labels(const Images& images) {
  std::vector<int> label(images.pixel.size(), -1);
  for_each_image(images, [&](int i) {
    const size_t begin = i * images.pixels_per_image();
    reference::label_image(images, static_cast<int>(begin), label.data());
  });
  return label;
}
