// Writes the seeds of the container's fuzzer that no build leaves in a folder: bare fatbins of every
// compression, and compressed payloads by themselves.
//
// Usage: klap_fuzz_seeds FOLDER
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "synthetic.h"

namespace klap::container {
namespace {

void write(const std::filesystem::path& folder, const char* name, const std::string& bytes) {
  std::ofstream file(folder / name, std::ios::binary);
  file << bytes;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + (folder / name).string());
}

void write_seeds(const std::filesystem::path& folder) {
  const std::string ptx =
      "\n\n.version 9.0\n.target sm_90\n.address_size 64\n"
      ".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b64 a, .param .b64 b);\n"
      ".visible .entry k(.param .u64 k_param_0)\n{\n  ret;\n  ret;\n  ret;\n}\n";
  SyntheticEntry named = zstd_entry(ptx, false);
  named.name = "folder/unit.cu";
  named.options = "-dlcm=cg --compile-only  -maxrregcount=64 ";
  SyntheticEntry cubin = raw_entry(
      "\x7f"
      "ELF damaged code");
  cubin.kind = 2;
  SyntheticEntry suffixed = raw_entry(ptx);
  suffixed.flags |= kFlagArchSpecific;
  write(folder, "raw.fatbin", fatbin_of({raw_entry(ptx)}));
  write(folder, "lz4.fatbin", fatbin_of({lz4_entry(ptx)}));
  write(folder, "zstd.fatbin", fatbin_of({zstd_entry(ptx)}));
  write(folder, "several.fatbin", fatbin_of({cubin, named, suffixed}));
  write(folder, "empty.fatbin", fatbin_of({}));
  write(folder, "frame.zst", zstd_entry(ptx).payload);
  const auto size = static_cast<uint32_t>(ptx.size());
  write(folder, "block.lz4",
        std::string("LZ4\0", 4) + std::string(reinterpret_cast<const char*>(&size), 4) +
            lz4_entry(ptx).payload);
  write(folder, "text.ptx", "// comment\n/* another */ " + ptx);
  write(folder, "archive.a", "!<arch>\nunit.o/         0           0     0     644     4         `\nbody");
}

}  // namespace
}  // namespace klap::container

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: klap_fuzz_seeds FOLDER\n";
    return 2;
  }
  try {
    klap::container::write_seeds(argv[1]);
  } catch (const std::exception& e) {
    std::cerr << "klap_fuzz_seeds: " << e.what() << "\n";
    return 1;
  }
  return 0;
}
