#include "machine_code.h"

#include <charconv>
#include <cstdlib>
#include <map>

#include "container/elf64.h"
#include "support/file.h"

namespace klap::test {
namespace {

constexpr int kOldestTarget = 75;  // of CUDA 13's ptxas

std::map<std::string, std::string> program_sections(const std::string& cubin) {
  std::map<std::string, std::string> sections;
  const container::Bytes bytes(reinterpret_cast<const std::byte*>(cubin.data()), cubin.size());
  const container::Elf64 elf(bytes, "cubin");
  for (const container::ElfSection& section : elf.sections()) {
    const std::string name(elf.name(section));
    // Uninitialised memory has a size and no bytes.
    if (name.starts_with(".nv.shared")) sections[name] = std::to_string(section.size);
    for (const char* start : {".text", ".nv.constant", ".nv.info", ".nv.global"}) {
      if (!name.starts_with(start)) continue;
      const container::Bytes content = elf.content(section);
      sections[name] = std::to_string(section.size) + ":" +
                       std::string(reinterpret_cast<const char*>(content.data()), content.size());
    }
  }
  return sections;
}

}  // namespace

MachineCode assemble(const ptx::Module& module, const std::string& options,
                     const std::filesystem::path& folder) {
  std::string target = module.target;
  int number = 0;  // of sm_35 or sm_90a
  if (target.size() > 3) std::from_chars(target.data() + 3, target.data() + target.size(), number);
  if (number < kOldestTarget) target = "sm_" + std::to_string(kOldestTarget);
  const std::string text = (folder / (module.name + ".assembled")).string();
  write_file(text, module.source);
  const std::string command = std::string(KLAP_PTXAS) + " -arch=" + target + " " + options + " -o " + text +
                              ".cubin " + text + " >" + text + ".log 2>&1";
  MachineCode code;
  if (std::system(command.c_str()) == 0) {
    code.cubin = read_file(text + ".cubin");
  } else {
    code.problem = read_file(text + ".log");
    if (code.problem.empty()) code.problem = "ptxas failed without a word";
  }
  for (const char* end : {"", ".cubin", ".log"}) std::filesystem::remove(text + end);
  return code;
}

std::string difference(const std::string& cubin, const std::string& other) {
  const auto want = program_sections(cubin), got = program_sections(other);
  if (want.empty()) return "no sections to compare";
  for (const auto& [name, bytes] : want) {
    const auto found = got.find(name);
    if (found == got.end()) return "no section " + name;
    if (found->second != bytes) return "section " + name + " differs";
  }
  return want.size() == got.size() ? "" : "more sections";
}

}  // namespace klap::test
