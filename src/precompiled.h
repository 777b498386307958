// Headers that most files of src include, for builds from nothing (KLAP_PRECOMPILE_HEADERS): reading them
// takes longer than compiling most of the files. No file may rely on this header: builds without it are the
// usual ones.
#pragma once

#include <fmt/format.h>
#include <spdlog/logger.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
