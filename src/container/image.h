// What a CUDA program hands to the driver when it loads device code, taken apart.
//
// A program built with relocatable device code passes a "wrapper" (magic 0x466243B1) of version 2, whose second
// pointer is a NULL-terminated array of fatbins, one per translation unit plus the CUDA device runtime. A fatbin
// (magic 0xBA55ED50) is a list of entries: PTX or relocatable machine code (cubin) for one architecture, stored
// raw or compressed, with the ptxas options of the build beside it. Other images are a wrapper of version 1 (no
// relocatable code, hence no device launches), a bare fatbin, a bare cubin (ELF) and bare PTX text.
//
// Images come as a pointer without a length, so everything is bounds-checked against the sizes the headers
// state, and those against a cap. Parsing never copies payloads: decompression happens when one is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace klap::container {

enum class ImageKind {
  WrapperV1,  // no relocatable device code: cannot hold device launches
  WrapperV2,  // relocatable device code: `units` are its prelinked fatbins
  Fatbin,     // bare fatbin (BA55ED50)
  Cubin,      // ELF machine code
  Archive,    // ar archive ("!<arch>")
  Ptx,        // NUL-terminated PTX text
  Unknown,
};
const char* to_string(ImageKind kind);

enum class EntryKind : uint16_t { Ptx = 1, Cubin = 2, LtoIr = 8, RelocatablePtx = 64 };

enum class Compression { None, Lz4, Zstd };

struct FatbinEntry {
  EntryKind kind{};         // numeric value of the header; other values than the named ones occur
  uint32_t arch = 0;        // 90 for sm_90 / compute_90; a suffix such as 'a' is not recorded here
  uint64_t flags = 0;
  Compression compression = Compression::None;
  uint64_t uncompressed_size = 0;    // bytes after decompression; payload size when not compressed
  std::span<const std::byte> stored; // payload as stored; points into the caller's image
  std::string name;                  // identifier stored in the entry, often empty
  std::string options;               // ptxas options of the build, for example "-maxrregcount=64", else empty

  [[nodiscard]] bool is_ptx() const { return kind == EntryKind::Ptx || kind == EntryKind::RelocatablePtx; }
  // The payload, decompressed; for PTX without trailing NULs. Throws Error(Container).
  [[nodiscard]] std::string payload() const;
};

struct Fatbin {
  std::span<const std::byte> bytes;  // header included; points into the caller's image
  std::vector<FatbinEntry> entries;
};

// The longest image that is believed, in bytes; anything larger is an Error(Container).
inline constexpr uint64_t kMaxImageBytes = uint64_t{4} << 30;

// Reads the magic only. `image` must be readable for at least 8 bytes or be a NUL-terminated text.
ImageKind classify(const void* image);

// Parses one fatbin at `image`. `limit` is the number of readable bytes if known. Throws Error(Container) that
// names the entry and the field that is wrong.
Fatbin parse_fatbin(const void* image, uint64_t limit = kMaxImageBytes);

// The fatbins of a wrapper of version 2, in the order of its prelinked array. Throws Error(Container).
std::vector<Fatbin> prelinked_fatbins(const void* wrapper);

// The fatbin that a wrapper of any version points to first (for version 2 the already linked machine code; its
// pointer may be null: then a Fatbin without bytes comes back).
Fatbin wrapper_fatbin(const void* wrapper);

// True if `fatbin` is the CUDA device runtime (libcudadevrt), recognised by what it defines, without
// decompressing more than needed.
bool is_device_runtime(const Fatbin& fatbin);

// True if the unit's relocatable code refers to the device runtime's launch functions
// (…GetParameterBuffer… / …LaunchDevice…). Looks at the uncompressed cubin symbol names or, failing that, at the
// PTX. Cheap rejection is the point: units for which this is false need no parsing. Throws Error(Container).
bool mentions_device_launch(const Fatbin& fatbin);

// Chooses from a fatbin what the driver would take for compute capability `sm` (90 for 9.0): the cubin with the
// same major and the highest minor not above the device's, and the PTX with the highest arch not above it.
// Null when there is none.
const FatbinEntry* best_cubin(const Fatbin& fatbin, uint32_t sm);
const FatbinEntry* best_ptx(const Fatbin& fatbin, uint32_t sm);

// ---- Files (klap-ptx, tests) ----

// One image found in a file: a wrapper of an executable or shared object, a fatbin section of an object file, or
// the whole file where it is PTX, a fatbin or a cubin.
struct FileImage {
  ImageKind kind = ImageKind::Unknown;
  std::string where;           // "wrapper 0 at 0x1cc538", "section .nv_fatbin at 0x40", "whole file"
  std::vector<Fatbin> units;   // WrapperV2: the prelinked fatbins; WrapperV1 and Fatbin: the one fatbin
  std::string text;            // Ptx: the text; Cubin: the bytes
};

// A file with its bytes, kept alive for the spans in `images`.
struct File {
  std::filesystem::path path;
  std::shared_ptr<const std::string> bytes;
  std::vector<FileImage> images;
};

// Opens PTX, fatbin, cubin, object file, executable or shared object (host ELF64: finds .nvFatBinSegment and
// follows its pointers through relocations and program headers; object files, where pointers are relocations
// against sections, by scanning .nv_fatbin and __nv_relfatbin). Throws Error(Io) or Error(Container); a host ELF
// file without device code gives an empty `images`.
File open_file(const std::filesystem::path& path);

}  // namespace klap::container
