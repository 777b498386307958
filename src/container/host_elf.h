// The inside of open_file, apart for tests that want to feed it bytes of their own making.
#pragma once

#include <string_view>
#include <vector>

#include "container/image.h"

namespace klap::container {

// The images in the bytes of a file of any kind that open_file knows. The result points into `bytes`, which
// must be NUL-terminated like a std::string's. Throws Error(Container) or Error(Unsupported).
std::vector<FileImage> find_images(std::string_view bytes);

}  // namespace klap::container
