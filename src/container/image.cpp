// Images as the driver gets them, and the questions about each: its kind, whether it launches, whether it is
// the device runtime, and which of its entries counts for this device.
//
// These run on each image that a program loads, so they reject early: by the magic number, then by the symbol
// names of relocatable machine code, and only where there is none by the PTX.
//
// A relocatable cubin names a device-runtime function as an undefined symbol where it calls it and as a
// defined one where it implements it. That tells the runtime apart from its users. The wrapper does not: nvcc
// puts libcudadevrt last, but it is an ordinary unit with no name and no flag of its own. It is there only if
// something refers to it. In builds with -G the calls sit in local functions of the unit. Their mangled names
// ("..18cudaLaunchDeviceV2EPv..") merely contain the runtime's, so names are compared whole.
#include "container/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <tuple>

#include "container/bytes.h"
#include "container/elf64.h"
#include "container/first_names.h"
#include "support/error.h"

namespace klap::container {
namespace {

constexpr std::string_view kWrapperMagicText = "\xB1\x43\x62\x46";  // 466243B1
constexpr std::string_view kFatbinMagicText = "\x50\xED\x55\xBA";   // BA55ED50
constexpr std::string_view kElfMagic =
    "\x7f"
    "ELF";
constexpr std::string_view kArchiveMagic = "!<arch>";

// CDP2 (toolkit 12 and later), then CDP1 and clang. "_ptsz" is --default-stream per-thread.
constexpr std::array<std::string_view, 12> kLaunchFunctions = {
    "__cudaCDP2GetParameterBufferV2", "__cudaCDP2LaunchDeviceV2", "__cudaCDP2LaunchDeviceV2_ptsz",
    "__cudaCDP2GetParameterBuffer",   "__cudaCDP2LaunchDevice",   "__cudaCDP2LaunchDevice_ptsz",
    "cudaGetParameterBufferV2",       "cudaLaunchDeviceV2",       "cudaLaunchDeviceV2_ptsz",
    "cudaGetParameterBuffer",         "cudaLaunchDevice",         "cudaLaunchDevice_ptsz",
};

// The functions that libcudadevrt of any toolkit defines. A replacement that lacks launches is none.
constexpr std::array<std::string_view, 2> kRuntimeFunctions = {"__cudaCDP2LaunchDeviceV2",
                                                               "cudaLaunchDeviceV2"};

// The longest prelinked array that is followed: a program of that many units is damaged memory.
constexpr size_t kMaxUnits = 1 << 20;

enum class Mention { Declared, Defined };

// Never reads past the NUL of a short text: it differs from every magic at the latest there.
bool begins_with(const char* text, std::string_view prefix) {
  return std::all_of(prefix.begin(), prefix.end(), [&text](char c) { return *text++ == c; });
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// PTX begins with .version, after white space and comments.
bool begins_like_ptx(const char* text) {
  while (true) {
    while (is_space(*text)) ++text;
    if (begins_with(text, "//")) {
      while (*text != '\0' && *text != '\n') ++text;
    } else if (begins_with(text, "/*")) {
      text += 2;
      while (*text != '\0' && !begins_with(text, "*/")) ++text;
      if (*text != '\0') text += 2;
    } else {
      return begins_with(text, ".version");
    }
  }
}

struct Wrapper {
  uint32_t version = 0;
  const void* fatbin = nullptr;
  const void* prelinked = nullptr;  // version 1: an unused file name
};

Wrapper read_wrapper(const void* wrapper) {
  const Bytes bytes(static_cast<const std::byte*>(wrapper), 24);
  if (!as_text(bytes).starts_with(kWrapperMagicText)) {
    damaged("wrapper", fmt::format("magic {:08X}, expected 466243B1", load<uint32_t>(bytes, 0)));
  }
  return {load<uint32_t>(bytes, 4), load<const void*>(bytes, 8), load<const void*>(bytes, 16)};
}

bool is_name_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '$';
}

// True if `name` stands at `at` as a whole word in the head of a ".func" declaration, ".extern" or otherwise.
// The statement begins after the previous ';' or brace; calls of the function and names that contain its name
// do not count.
bool is_head_at(std::string_view ptx, size_t at, std::string_view name, Mention mention) {
  if (at > 0 && is_name_char(ptx[at - 1])) return false;
  if (at + name.size() < ptx.size() && is_name_char(ptx[at + name.size()])) return false;
  const std::string_view before = ptx.substr(0, at);
  const size_t previous = before.find_last_of(";{}");
  const std::string_view head = before.substr(previous == std::string_view::npos ? 0 : previous + 1);
  if (head.find(".func") == std::string_view::npos) return false;
  return (head.find(".extern") != std::string_view::npos) == (mention == Mention::Declared);
}

bool ptx_mentions(std::string_view ptx, std::span<const std::string_view> names, Mention mention) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    for (size_t at = ptx.find(name); at != std::string_view::npos; at = ptx.find(name, at + 1)) {
      if (is_head_at(ptx, at, name, mention)) return true;
    }
    return false;
  });
}

bool cubin_mentions(const Elf64& cubin, std::span<const std::string_view> names, Mention mention) {
  return cubin.any_symbol([&](const ElfSymbol& symbol) {
    return symbol.is_function && !symbol.is_local && symbol.is_defined == (mention == Mention::Defined) &&
           std::find(names.begin(), names.end(), symbol.name) != names.end();
  });
}

// The device runtime itself defines these functions, too, and is not finished.
bool is_finished_and_launches(const Elf64& cubin) {
  return cubin.type() != kElfRelocatable && cubin_mentions(cubin, kLaunchFunctions, Mention::Defined);
}

bool entry_mentions(const FatbinEntry& entry, std::span<const std::string_view> names, Mention mention) {
  if (!entry.is_ptx() && !may_name(entry, launch_words())) return false;
  const std::string payload = entry.payload();
  if (entry.is_ptx()) return ptx_mentions(payload, names, mention);
  return cubin_mentions(Elf64(as_bytes(payload), entry.describe()), names, mention);
}

const FatbinEntry* smallest(const Fatbin& fatbin, const std::function<bool(const FatbinEntry&)>& eligible) {
  const FatbinEntry* best = nullptr;
  for (const FatbinEntry& entry : fatbin.entries) {
    if (eligible(entry) && (best == nullptr || entry.uncompressed_size < best->uncompressed_size))
      best = &entry;
  }
  return best;
}

bool is_cubin(const FatbinEntry& entry) { return entry.kind == EntryKind::Cubin; }
bool is_ptx(const FatbinEntry& entry) { return entry.is_ptx(); }

// True if the suffix admits a device of compute capability `sm`.
bool suffix_allows(const FatbinEntry& entry, uint32_t sm) {
  switch (entry.arch_suffix()) {
    case 'a':
      return entry.arch == sm;
    case 'f':
      return entry.arch / 10 == sm / 10;
    default:
      return true;
  }
}

// A higher arch is better, then the narrower set of devices.
uint32_t preference(const FatbinEntry& entry) {
  const char suffix = entry.arch_suffix();
  return entry.arch * 3 + (suffix == 'a' ? 2 : suffix == 'f' ? 1 : 0);
}

const FatbinEntry* best(const Fatbin& fatbin, uint32_t sm,
                        const std::function<bool(const FatbinEntry&)>& eligible) {
  const FatbinEntry* chosen = nullptr;
  for (const FatbinEntry& entry : fatbin.entries) {
    if (!eligible(entry) || entry.arch > sm || !suffix_allows(entry, sm)) continue;
    if (chosen == nullptr || preference(entry) > preference(*chosen)) chosen = &entry;
  }
  return chosen;
}

}  // namespace

const char* to_string(ImageKind kind) {
  switch (kind) {
    case ImageKind::WrapperV1:
      return "wrapper, version 1";
    case ImageKind::WrapperV2:
      return "wrapper, version 2";
    case ImageKind::Fatbin:
      return "fatbin";
    case ImageKind::Cubin:
      return "cubin";
    case ImageKind::Archive:
      return "archive";
    case ImageKind::Ptx:
      return "PTX";
    case ImageKind::Unknown:
      return "unknown";
  }
  return "unknown";
}

ImageKind classify(const void* image) {
  const auto* text = static_cast<const char*>(image);
  if (begins_with(text, kWrapperMagicText)) {
    const auto version = load<uint32_t>(Bytes(static_cast<const std::byte*>(image), 8), 4);
    if (version == 1) return ImageKind::WrapperV1;
    return version == 2 ? ImageKind::WrapperV2 : ImageKind::Unknown;
  }
  if (begins_with(text, kFatbinMagicText)) return ImageKind::Fatbin;
  if (begins_with(text, kElfMagic)) return ImageKind::Cubin;
  if (begins_with(text, kArchiveMagic)) return ImageKind::Archive;
  return begins_like_ptx(text) ? ImageKind::Ptx : ImageKind::Unknown;
}

std::vector<Fatbin> prelinked_fatbins(const void* wrapper) {
  const Wrapper head = read_wrapper(wrapper);
  if (head.version != 2) damaged("wrapper", fmt::format("version {} has no prelinked fatbins", head.version));
  std::vector<Fatbin> fatbins;
  if (head.prelinked == nullptr) return fatbins;
  for (size_t i = 0; i < kMaxUnits; ++i) {
    const void* unit = nullptr;
    std::memcpy(&unit, static_cast<const std::byte*>(head.prelinked) + i * sizeof unit, sizeof unit);
    if (unit == nullptr) return fatbins;
    try {
      fatbins.push_back(parse_fatbin(unit));
    } catch (const Error& e) {
      throw Error(e.code(), fmt::format("prelinked fatbin {}: {}", i, e.reason()));
    }
  }
  damaged("wrapper", "the array of prelinked fatbins has no end");
}

Fatbin wrapper_fatbin(const void* wrapper) {
  const Wrapper head = read_wrapper(wrapper);
  return head.fatbin == nullptr ? Fatbin{} : parse_fatbin(head.fatbin);
}

bool is_device_runtime(const Fatbin& fatbin) {
  // Every architecture of the runtime defines the same functions, so one entry tells.
  const FatbinEntry* entry = smallest(fatbin, is_cubin);
  if (entry == nullptr) entry = smallest(fatbin, is_ptx);
  if (entry == nullptr) return false;
  if (!is_cubin(*entry)) return entry_mentions(*entry, kRuntimeFunctions, Mention::Defined);
  return is_device_runtime(entry->payload(), entry->describe());
}

bool is_device_runtime(std::string_view cubin, const std::string& name) {
  const Elf64 elf(as_bytes(cubin), name);
  // Finished machine code has the runtime linked into it.
  return elf.type() == kElfRelocatable && cubin_mentions(elf, kRuntimeFunctions, Mention::Defined);
}

bool mentions_device_launch(const Fatbin& fatbin, uint32_t sm) {
  const auto launches = [](const FatbinEntry& entry) {
    return entry_mentions(entry, kLaunchFunctions, Mention::Declared);
  };
  if (sm != 0) {
    const FatbinEntry* entry = best_cubin(fatbin, sm);
    if (entry == nullptr) entry = best_ptx(fatbin, sm);
    return entry != nullptr && launches(*entry);
  }
  // Code may launch on some architectures only, so a cubin for one of them does not speak for the PTX of
  // another.
  return std::any_of(fatbin.entries.begin(), fatbin.entries.end(), [&](const FatbinEntry& entry) {
    return (is_cubin(entry) || entry.is_ptx()) && launches(entry);
  });
}

bool mentions_device_launch(std::string_view cubin, const std::string& name) {
  return cubin_mentions(Elf64(as_bytes(cubin), name), kLaunchFunctions, Mention::Declared);
}

bool has_device_launch(std::string_view cubin, const std::string& name) {
  return is_finished_and_launches(Elf64(as_bytes(cubin), name));
}

LaunchMarks launch_marks(const Fatbin& fatbin, uint32_t sm) {
  const FatbinEntry* const cubin = best_cubin(fatbin, sm);
  if (cubin == nullptr) return {.is_mentioned = mentions_device_launch(fatbin, sm)};
  if (!may_name(*cubin, launch_words())) return {};
  const std::string payload = cubin->payload();
  const Elf64 elf(as_bytes(payload), cubin->describe());
  return {.is_mentioned = cubin_mentions(elf, kLaunchFunctions, Mention::Declared),
          .is_finished = is_finished_and_launches(elf)};
}

bool has_symbol_like(std::string_view cubin, std::string_view part) {
  try {
    return Elf64(as_bytes(cubin), "machine code").any_symbol([&](const ElfSymbol& symbol) {
      return symbol.name.find(part) != std::string_view::npos;
    });
  } catch (const Error&) {
    return cubin.find(part) != std::string_view::npos;
  }
}

uint64_t machine_code_bytes(const void* image) {
  constexpr size_t kHeaderBytes = 64, kClassAt = 4;
  constexpr char k64Bits = 2;
  const auto* const text = static_cast<const char*>(image);
  if (!begins_with(text, kElfMagic) || text[kClassAt] != k64Bits) return 0;
  const Bytes header(static_cast<const std::byte*>(image), kHeaderBytes);
  const auto end_of_table = [&](size_t offset_at, size_t entry_bytes_at) {
    const uint64_t entries = load<uint16_t>(header, entry_bytes_at + 2);
    const auto offset = load<uint64_t>(header, offset_at);
    return std::min(offset, kMaxImageBytes + 1) + load<uint16_t>(header, entry_bytes_at) * entries;
  };
  const uint64_t segments = end_of_table(32, 54), sections = end_of_table(40, 58);
  const uint64_t bytes = std::max({segments, sections, uint64_t{kHeaderBytes}});
  return bytes <= kMaxImageBytes ? bytes : 0;
}

const FatbinEntry* best_cubin(const Fatbin& fatbin, uint32_t sm) {
  return best(fatbin, sm,
              [sm](const FatbinEntry& entry) { return is_cubin(entry) && entry.arch / 10 == sm / 10; });
}

const FatbinEntry* best_ptx(const Fatbin& fatbin, uint32_t sm) { return best(fatbin, sm, is_ptx); }

const FatbinEntry* nearest_foreign_ptx(const Fatbin& fatbin, uint32_t sm) {
  // Higher ones first, in rising order, then lower ones, in falling order; the wider of two suffixes first.
  const auto distance = [sm](const FatbinEntry& entry) {
    const bool lower = entry.arch < sm;
    return std::tuple(lower, lower ? sm - entry.arch : entry.arch - sm, preference(entry));
  };
  const FatbinEntry* chosen = nullptr;
  for (const FatbinEntry& entry : fatbin.entries) {
    if (!entry.is_ptx() || (entry.arch <= sm && suffix_allows(entry, sm))) continue;
    if (chosen == nullptr || distance(entry) < distance(*chosen)) chosen = &entry;
  }
  return chosen;
}

}  // namespace klap::container
