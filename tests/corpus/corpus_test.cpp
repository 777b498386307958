// The corpus through the front end: every module prints byte for byte, and with everything renamed through
// the tree ptxas makes the same machine code of it.
//
// Of -G modules only that they assemble is asked for: their debug sections hold register names as numbers,
// and ptxas numbers what it does not optimise by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "container/elf64.h"
#include "ptx/tree.h"
#include "rename.h"
#include "support/file.h"

namespace klap::test {
namespace {

constexpr size_t kFewestModules = 300;
constexpr int kOldestTarget = 75;  // of the toolkit's ptxas

struct Module {
  std::string file, kind;
  bool debug = false, relocatable = false;
};

std::vector<Module> read_list() {
  std::vector<Module> list;
  std::istringstream lines(read_file(KLAP_CORPUS_DIR "/modules.tsv"));
  for (Module m; std::getline(lines, m.file, '\t') && std::getline(lines, m.kind, '\t');) {
    std::string debug, relocatable;
    std::getline(lines, debug, '\t');
    std::getline(lines, relocatable);
    m.debug = debug == "1";
    m.relocatable = relocatable == "1";
    list.push_back(m);
  }
  return list;
}

// The sections that are the program: code, constants and what the driver is told about kernels.
std::map<std::string, std::string> program_sections(const std::string& cubin, const std::string& name) {
  std::map<std::string, std::string> sections;
  const container::Elf64 elf(container::Bytes(reinterpret_cast<const std::byte*>(cubin.data()), cubin.size()),
                             name);
  for (const container::ElfSection& section : elf.sections()) {
    const std::string_view title = elf.name(section);
    const bool compared = title.starts_with(".text") || title.starts_with(".nv.constant") ||
                          title.starts_with(".nv.info") || title.starts_with(".nv.global");
    if (!compared) continue;
    const container::Bytes bytes = elf.content(section);
    sections[std::string(title)] = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return sections;
}

// Assembles for the module's own target, or the oldest one that ptxas knows. Returns the machine code; where
// ptxas refuses, sets `problem` to its words.
std::string assemble(const Module& m, const ptx::Module& parsed, const std::string& stem,
                     std::string& problem) {
  const std::string base = std::string(KLAP_CORPUS_DIR) + "/" + stem;
  std::string target = parsed.target;
  if (std::atoi(target.c_str() + 3) < kOldestTarget) target = "sm_" + std::to_string(kOldestTarget);
  const std::string options = std::string(m.relocatable ? " -c" : "") + (m.debug ? " -g" : "");
  const std::string command = std::string(KLAP_PTXAS) + " -arch=" + target + options + " -o " + base +
                              ".cubin " + base + " >" + base + ".log 2>&1";
  const int status = std::system(command.c_str());
  if (status != 0) problem = stem + " is refused:\n" + read_file(base + ".log");
  std::string cubin = status == 0 ? read_file(base + ".cubin") : "";
  std::filesystem::remove(base + ".log");
  std::filesystem::remove(base + ".cubin");
  return cubin;
}

// What is wrong with a module; empty if nothing.
std::string check(const Module& m) {
  const std::string source = read_file(std::string(KLAP_CORPUS_DIR) + "/" + m.file);
  const ptx::Module parsed = ptx::parse(source, m.file);
  if (print(parsed) != source) return m.file + " does not print byte for byte";
  uint32_t next = 0;  // the items cover the text without gap or overlap
  for (const ptx::Item& item : parsed.items) {
    if (item.tokens.first != next) return m.file + ": the items leave a gap";
    next = item.tokens.last;
  }
  if (next + 1 != parsed.tokens.size()) return m.file + ": the items end early";

  const std::string renamed_file = m.file + ".renamed";
  const std::string renamed = rename_everything(parsed);
  write_file(std::string(KLAP_CORPUS_DIR) + "/" + renamed_file, renamed);
  if (print(ptx::parse(renamed, renamed_file)) != renamed)
    return renamed_file + " does not print byte for byte";
  std::string problem;
  const std::string original_code = assemble(m, parsed, m.file, problem);
  if (!problem.empty()) return "the original " + problem;
  const std::string code = assemble(m, parsed, renamed_file, problem);
  if (!problem.empty() || m.debug) return problem;
  const auto want = program_sections(original_code, m.file), got = program_sections(code, renamed_file);
  for (const auto& [name, bytes] : want) {
    const auto found = got.find(name);
    if (found == got.end()) return renamed_file + ": no section " + name;
    if (found->second != bytes) return renamed_file + ": section " + name + " differs";
  }
  if (want.size() != got.size()) return renamed_file + ": sections that the original has not";
  std::filesystem::remove(std::string(KLAP_CORPUS_DIR) + "/" + renamed_file);
  return "";
}

struct Count {
  int identical = 0, debug = 0, failed = 0;
};

TEST(Corpus, PrintsByteForByteAndMeansTheSameWithEverythingRenamed) {
  const std::vector<Module> modules = read_list();
  ASSERT_GE(modules.size(), kFewestModules);
  std::map<std::string, Count> counts;
  std::mutex lock;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i; (i = next++) < modules.size();) {
      const Module& m = modules[i];
      std::string problem;
      try {
        problem = check(m);
      } catch (const std::exception& error) {
        problem = error.what();
      }
      const std::scoped_lock held(lock);
      Count& count = counts[m.kind];
      ++(!problem.empty() ? count.failed : m.debug ? count.debug : count.identical);
      if (!problem.empty()) ADD_FAILURE() << problem;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned n = 0; n < std::max(1u, std::thread::hardware_concurrency()); ++n) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();

  Count all;
  for (const auto& [kind, c] : counts) {
    std::printf("%-12s %4d modules: %4d identical after renaming, %3d debug modules assemble, %d failed\n",
                kind.c_str(), c.identical + c.debug + c.failed, c.identical, c.debug, c.failed);
    all.identical += c.identical;
    all.debug += c.debug;
    all.failed += c.failed;
  }
  std::printf("%zu modules: %d identical after renaming, %d debug modules assemble, %d failed\n",
              modules.size(), all.identical, all.debug, all.failed);
}

}  // namespace
}  // namespace klap::test
