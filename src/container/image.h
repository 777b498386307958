// Images: the device code that a CUDA program hands to the driver, taken apart.
//
// A program built with relocatable device code passes a "wrapper" (magic 0x466243B1) of version 2. Its second
// pointer is a NULL-terminated array of fatbins, one per translation unit plus the CUDA device runtime. A
// fatbin (magic 0xBA55ED50) is a list of entries. Each is PTX or relocatable machine code (cubin) for one
// architecture, stored raw or compressed, with the ptxas options of the build beside it. Other images are a
// wrapper of version 1 (no relocatable code, hence no device launches), a bare fatbin, a bare cubin (ELF) and
// bare PTX text.
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

// Bits of FatbinEntry::flags that matter here.
inline constexpr uint64_t kFlagLz4 = 0x2000;
inline constexpr uint64_t kFlagZstd = 0x8000;
inline constexpr uint64_t kFlagArchSpecific = 0x100000;    // built for sm_90a: runs on 9.0 only
inline constexpr uint64_t kFlagFamilySpecific = 0x200000;  // built for sm_100f: runs on 10.x from 10.0 on

struct FatbinEntry {
  uint32_t index = 0;  // position in its fatbin
  EntryKind kind{};    // numeric value of the header; other values than the named ones occur
  uint32_t arch = 0;   // 90 for sm_90 and sm_90a alike: the suffix is in `flags`
  uint64_t flags = 0;
  Compression compression = Compression::None;
  uint64_t uncompressed_size = 0;     // bytes after decompression; stored size when not compressed
  std::span<const std::byte> stored;  // payload as stored; points into the caller's image
  std::string name;                   // source file as nvcc was told, in builds with -lineinfo or -G
  // PTX entries: the options that ptxas was given, separated by single spaces: "-dlcm=cg -maxrregcount=64".
  // Without
  // "--compile-only", which every relocatable unit has and which says nothing about its code.
  std::string options;

  [[nodiscard]] bool is_ptx() const { return kind == EntryKind::Ptx || kind == EntryKind::RelocatablePtx; }
  // 'a', 'f' or 0, as in sm_90a.
  [[nodiscard]] char arch_suffix() const;
  // For messages: "fatbin entry 1 (PTX for sm_90)".
  [[nodiscard]] std::string describe() const;
  // The payload, decompressed; for PTX without trailing NULs. Throws Error(Container).
  [[nodiscard]] std::string payload() const;
  // The first `bytes` of it, or all if there are fewer. What is behind them is neither unpacked nor checked.
  [[nodiscard]] std::string beginning(uint64_t bytes) const;
};

struct Fatbin {
  std::span<const std::byte> bytes;  // header included; points into the caller's image
  std::vector<FatbinEntry> entries;
};

// The longest image and the longest payload that are believed, in bytes; anything larger is an
// Error(Container).
inline constexpr uint64_t kMaxImageBytes = uint64_t{4} << 30;
inline constexpr uint64_t kMaxPayloadBytes = uint64_t{1} << 30;

// Reads the magic only, or for PTX up to its .version directive. `image` must be readable for at least 8
// bytes or be a NUL-terminated text.
ImageKind classify(const void* image);

// Parses one fatbin at `image`. `limit` is the number of readable bytes if known. Throws Error(Container)
// that names the entry and the field that is wrong.
Fatbin parse_fatbin(const void* image, uint64_t limit = kMaxImageBytes);
// The length of a fatbin as its header says, which may be more than is there.
uint64_t fatbin_bytes(std::span<const std::byte> fatbin);

// The fatbins of a wrapper of version 2, in the order of its prelinked array. Throws Error(Container); a
// wrapper of another version is one, because its second pointer means something else.
std::vector<Fatbin> prelinked_fatbins(const void* wrapper);

// The fatbin that a wrapper of any version points to first (for version 2 the already linked machine code;
// its pointer may be null: then a Fatbin without bytes comes back).
Fatbin wrapper_fatbin(const void* wrapper);

// True if `fatbin` is the CUDA device runtime (libcudadevrt), recognised by the functions it defines. Unpacks
// one entry, the smallest. Throws Error(Container).
bool is_device_runtime(const Fatbin& fatbin);
// Says so of one of its cubins. `name` is for messages.
bool is_device_runtime(std::string_view cubin, const std::string& name);

// True if the unit's relocatable code refers to the device runtime's launch functions
// (...GetParameterBuffer... / ...LaunchDevice...) without defining them. Looks at the symbol names of the
// machine code or, where there is none, at the PTX. It serves cheap rejection: units for which this is false
// need no parsing. With `sm` only entries for a device of that compute capability are looked at. Without it
// every architecture is, which unpacks every entry of a unit that does not launch. Throws Error(Container).
bool mentions_device_launch(const Fatbin& fatbin, uint32_t sm = 0);
// Answers this for machine code by itself, which messages call `name`.
bool mentions_device_launch(std::string_view cubin, const std::string& name);

// Both answers about the entry that the driver takes for a device of compute capability `sm`, which is
// unpacked once. Throws Error(Container).
struct LaunchMarks {
  bool is_mentioned = false;  // by relocatable code or PTX, as mentions_device_launch() says
  bool is_finished = false;   // by machine code, as has_device_launch() says
};
LaunchMarks launch_marks(const Fatbin& fatbin, uint32_t sm);

// True if finished machine code launches kernels from the device: the device runtime is linked into it.
// Messages call it `name`. Throws Error(Container).
bool has_device_launch(std::string_view cubin, const std::string& name);
// True if the name of one of its symbols contains `part`, or, in what is no such file, any of its bytes do.
bool has_symbol_like(std::string_view cubin, std::string_view part);
// The bytes of machine code that begins at `image`, as far as its headers say. It ends with the later one of
// their two tables; 0 if it is none.
uint64_t machine_code_bytes(const void* image);

// Chooses from a fatbin the entry that the driver would take for compute capability `sm` (90 for 9.0). The
// cubin has the same major and the highest minor not above the device's. The PTX has the highest arch not
// above it. Of equal ones the narrowest set of devices wins (sm_90a before sm_90), and entries for other
// devices are left out. Null when there is none.
const FatbinEntry* best_cubin(const Fatbin& fatbin, uint32_t sm);
const FatbinEntry* best_ptx(const Fatbin& fatbin, uint32_t sm);

// For a device that none of the fatbin's PTX is for: the PTX for the next higher arch, else for the next
// lower. The driver would not take it. Null when there is no PTX.
const FatbinEntry* nearest_foreign_ptx(const Fatbin& fatbin, uint32_t sm);

// ---- Files (klap-ptx, tests) ----

// One image found in a file: a wrapper of an executable or shared object, or a fatbin section of an object
// file. PTX, a fatbin or a cubin is an image as a whole file.
struct FileImage {
  ImageKind kind = ImageKind::Unknown;
  std::string where;          // "wrapper 0 at 0x1cc538", "section .nv_fatbin at 0x40", "whole file"
  std::vector<Fatbin> units;  // WrapperV2: the units linked into it; WrapperV1 and Fatbin: the one fatbin
  std::string text;           // Ptx: the text; Cubin: the bytes
};

// A file with its bytes, kept alive for the spans in `images`.
struct File {
  std::filesystem::path path;
  std::shared_ptr<const std::string> bytes;
  std::vector<FileImage> images;
};

// Opens PTX, fatbin, cubin, object file, executable or shared object (host ELF64 for x86-64 or AArch64 with
// its section headers; see host_elf.cpp for how the wrappers are found). Throws Error(Io) or
// Error(Container), and Error(Unsupported) for archives and 32-bit files; a host ELF file without device code
// gives an empty `images`.
File open_file(const std::filesystem::path& path);

}  // namespace klap::container
