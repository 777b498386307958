// Writes a square picture as a PNG file, by libpng.
#pragma once

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace bench {

// A colour from dark blue over yellow to dark red for each number of steps, and black for the largest.
inline std::array<uint8_t, 3 * 256> palette() {
  std::array<uint8_t, 3 * 256> colours{};
  for (size_t steps = 0; steps < 255; ++steps) {
    const double t = std::log2(1.0 + static_cast<double>(steps)) / 8, u = 1 - t;
    const std::array<double, 3> colour = {9 * u * t * t * t, 15 * u * u * t * t, 8.5 * u * u * u * t};
    for (size_t i = 0; i < 3; ++i) {
      colours.at(3 * steps + i) = static_cast<uint8_t>(std::lround(255 * std::min(colour.at(i), 1.0)));
    }
  }
  return colours;
}

// Ends the program with exit code 2 if the file cannot be written.
inline void write_png(const std::string& file, const std::vector<uint8_t>& pixels, int side) {
  const std::array<uint8_t, 3 * 256> colours = palette();
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = image.height = static_cast<png_uint_32>(side);
  image.format = PNG_FORMAT_RGB_COLORMAP;
  image.colormap_entries = 256;
  if (png_image_write_to_file(&image, file.c_str(), 0, pixels.data(), 0, colours.data()) != 0) return;
  std::fprintf(stderr, "%s: %s\n", file.c_str(), image.message);
  std::exit(2);
}

}  // namespace bench
