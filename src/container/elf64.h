// A bounds-checked view of an ELF64 file, for both sides of a CUDA program: the host's executables, shared
// objects and object files, and the GPU's machine code (cubins), which are ELF64 too (machine 190).
//
// It has only the parts that this layer needs: sections by name, loadable segments, symbols. Names and
// contents are checked when they are asked for, so a damaged part that is not used does no harm.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "container/bytes.h"

namespace klap::container {

inline constexpr uint16_t kElfRelocatable = 1;  // e_type: an object file
inline constexpr uint16_t kMachineX86_64 = 62, kMachineAArch64 = 183, kMachineCuda = 190;
inline constexpr uint32_t kSectionSymtab = 2, kSectionRela = 4, kSectionNobits = 8;
inline constexpr uint32_t kSymbolFunction = 2;

struct ElfSection {
  uint32_t name = 0;  // offset in the table of section names
  uint32_t type = 0;
  uint64_t address = 0, offset = 0, size = 0, entry_size = 0;
  uint32_t link = 0;
};

struct ElfSegment {  // of type PT_LOAD
  uint64_t offset = 0, address = 0, file_size = 0;
};

struct ElfSymbol {
  std::string_view name;
  bool is_function = false, is_local = false, is_defined = false;
};

class Elf64 {
 public:
  // `where` begins every message: "wrapper 0: fatbin entry 1 (cubin for sm_90)". Throws Error(Container), and
  // Error(Unsupported) for 32-bit and big-endian files.
  Elf64(Bytes bytes, std::string where);

  [[nodiscard]] uint16_t type() const { return type_; }
  [[nodiscard]] uint16_t machine() const { return machine_; }
  [[nodiscard]] const std::vector<ElfSection>& sections() const { return sections_; }
  [[nodiscard]] const std::string& where() const { return where_; }

  [[nodiscard]] std::string_view name(const ElfSection& section) const;
  // Empty for sections without bytes in the file (.bss, or all of them in a file of debug information).
  [[nodiscard]] Bytes content(const ElfSection& section) const;
  [[nodiscard]] const ElfSection* find(std::string_view section_name) const;

  // The bytes of the file from the one that is loaded at `address` to the end of its segment; nothing where
  // the address is not backed by the file.
  [[nodiscard]] std::optional<Bytes> at_address(uint64_t address) const;

  // Calls `visit` for each symbol until it returns true; says whether it did.
  bool any_symbol(const std::function<bool(const ElfSymbol&)>& visit) const;

 private:
  void read_sections();
  void read_segments();
  [[nodiscard]] ElfSection section_header(Bytes table, size_t index) const;
  [[nodiscard]] std::string_view string_at(Bytes strings, uint32_t offset, std::string_view field) const;

  Bytes bytes_;
  std::string where_;
  uint16_t type_ = 0, machine_ = 0;
  std::vector<ElfSection> sections_;
  std::vector<ElfSegment> segments_;
  Bytes section_names_;
};

// True if the bytes begin with the magic number of ELF files.
bool is_elf(Bytes bytes);

}  // namespace klap::container
