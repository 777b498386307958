// Fuzz target: everything that reads bytes of device code images.
//
// Images come out of other people's programs, and klap_jit reads them inside those programs, so whatever the
// bytes say, the answer is a result or an Error(Container or Unsupported). An input is taken for what its
// first bytes look like, as the library does it, so that its seeds are plain files: executables, object
// files, fatbins, PTX. Two forms of no file reach the decompressors without a fatbin's headers around the
// payload: a bare zstd frame, and "LZ4" with a byte and the claimed size (4 bytes) before a raw block.
#include <cstdint>
#include <cstring>
#include <memory>

#include "container/compression.h"
#include "container/elf64.h"
#include "container/host_elf.h"
#include "container/image.h"
#include "require.h"
#include "support/error.h"

namespace klap::container {
namespace {

using fuzz::require;

// Inputs are small, but entries may overlap in nothing and still each unpack to a gigabyte. One decompression
// that takes too much time or memory is a finding; a thousand after one another are not.
constexpr uint64_t kMostUnpackedBytes = uint64_t{1} << 26;

template <class Act>
void survive(Act act) {
  try {
    act();
  } catch (const Error& e) {
    require(e.code() == ErrorCode::Container || e.code() == ErrorCode::Unsupported,
            "damaged bytes are an error of the container or unsupported");
    require(!e.reason().empty(), "an error has a reason");
  }
}

void read_symbols(std::string_view cubin) {
  const Elf64 elf(as_bytes(cubin), "cubin");
  for (const ElfSection& section : elf.sections()) {
    survive([&] { static_cast<void>(elf.name(section)); });
    survive([&] { static_cast<void>(elf.content(section)); });
    survive([&] { static_cast<void>(elf.at_address(section.address)); });
  }
  elf.any_symbol([](const ElfSymbol&) { return false; });
}

// True if what the fatbin claims to unpack to is little enough to unpack it several times.
bool is_modest(const Fatbin& fatbin) {
  uint64_t bytes = 0;
  for (const FatbinEntry& entry : fatbin.entries) {
    if (entry.uncompressed_size > kMostUnpackedBytes) return false;
    bytes += entry.uncompressed_size;
  }
  return bytes <= kMostUnpackedBytes;
}

void read_fatbin(const Fatbin& fatbin) {
  for (const uint32_t sm : {75u, 90u, 103u}) {
    static_cast<void>(best_cubin(fatbin, sm));
    static_cast<void>(best_ptx(fatbin, sm));
  }
  if (!is_modest(fatbin)) return;
  for (const FatbinEntry& entry : fatbin.entries) {
    survive([&] {
      const std::string payload = entry.payload();
      require(entry.is_ptx() ? payload.size() <= entry.uncompressed_size
                             : payload.size() == entry.uncompressed_size,
              "a payload has the size that its header states");
      if (entry.kind == EntryKind::Cubin) read_symbols(payload);
    });
  }
  survive([&] { static_cast<void>(is_device_runtime(fatbin)); });
  survive([&] { static_cast<void>(mentions_device_launch(fatbin)); });
  survive([&] { static_cast<void>(mentions_device_launch(fatbin, 90)); });
}

// As the driver gets it: wrappers in memory, whose pointers lead to fatbins of unstated length. Only a fatbin
// that keeps inside its own bytes can be put behind one.
void read_wrapped(const void* image) {
  struct {
    uint32_t magic = 0x466243B1, version = 1;
    const void* fatbin = nullptr;
    const void* prelinked = nullptr;
  } wrapper;
  wrapper.fatbin = image;
  require(classify(&wrapper) == ImageKind::WrapperV1, "a wrapper is recognised");
  static_cast<void>(wrapper_fatbin(&wrapper));
  survive([&] { static_cast<void>(prelinked_fatbins(&wrapper)); });
  const void* units[] = {image, image, nullptr};
  wrapper.version = 2;
  wrapper.prelinked = units;
  require(prelinked_fatbins(&wrapper).size() == 2, "a wrapper has the units of its array");
}

void read_image(std::string_view bytes) {
  for (const FileImage& image : find_images(bytes)) {
    for (const Fatbin& unit : image.units) read_fatbin(unit);
    if (image.kind == ImageKind::Cubin) survive([&] { read_symbols(image.text); });
  }
}

void read_all(std::string_view bytes) {
  survive([&] { read_image(bytes); });
  survive([&] {
    static_cast<void>(parse_fatbin(bytes.data(), bytes.size()));
    read_wrapped(bytes.data());
  });
  survive([&] { read_symbols(bytes); });
  if (bytes.starts_with("\x28\xB5\x2F\xFD")) {
    for (const uint64_t size : {uint64_t{0}, uint64_t{bytes.size()}, uint64_t{70000}, kMaxPayloadBytes + 1}) {
      survive([&] { decompress(Compression::Zstd, as_bytes(bytes), size, "zstd frame"); });
    }
  }
  constexpr size_t kLz4Head = 8;
  if (bytes.starts_with("LZ4") && bytes.size() >= kLz4Head) {
    const auto size = load<uint32_t>(as_bytes(bytes), 4);
    survive([&] { decompress(Compression::Lz4, as_bytes(bytes.substr(kLz4Head)), size, "LZ4 block"); });
  }
}

}  // namespace
}  // namespace klap::container

// The bytes in an allocation of exactly their size and a NUL, as a file is read, so that a read past the end
// is seen.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto copy = std::make_unique<char[]>(size + 1);
  if (size != 0) std::memcpy(copy.get(), data, size);
  klap::container::read_all({copy.get(), size});
  return 0;
}
