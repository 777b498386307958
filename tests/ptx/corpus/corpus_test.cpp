// The corpus through the front end: every module prints byte for byte, and with everything renamed through
// the tree ptxas makes the same machine code of it.
//
// Of -G modules only that they assemble is asked for: their debug sections hold register names as numbers,
// and ptxas numbers what it does not optimise by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "machine_code.h"
#include "ptx/tree.h"
#include "rename.h"
#include "support/file.h"

namespace klap::test {
namespace {

// Made where neither clang nor an older toolkit can be had (generate.py).
constexpr size_t kFewestModules = KLAP_FULL_TESTS ? 250 : 150;
const std::filesystem::path folder = KLAP_CORPUS_DIR;

struct Module {
  std::string file, kind;
  bool debug = false, relocatable = false;
};

std::vector<Module> read_list() {
  std::vector<Module> list;
  std::istringstream lines(read_file(folder / "modules.tsv"));
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

// What is wrong with a module; empty if nothing.
std::string check(const Module& m) {
  const std::string source = read_file(folder / m.file);
  const ptx::Module parsed = ptx::parse(source, m.file);
  if (print(parsed) != source) return m.file + " does not print byte for byte";
  uint32_t next = 0;  // the items cover the text without gap or overlap
  for (const ptx::Item& item : parsed.items) {
    if (item.tokens.first != next) return m.file + ": the items leave a gap";
    next = item.tokens.last;
  }
  if (next + 1 != parsed.tokens.size()) return m.file + ": the items end early";

  // Left behind where something is wrong.
  const std::filesystem::path renamed_file = folder / (m.file + ".renamed");
  const std::string text = rename_everything(parsed);
  write_file(renamed_file, text);
  const ptx::Module renamed = ptx::parse(text, renamed_file.filename().string());
  if (print(renamed) != text) return renamed.name + " does not print byte for byte";
  const std::string options = std::string(m.relocatable ? " -c" : "") + (m.debug ? " -g" : "");
  const MachineCode want = assemble(parsed, options, folder), got = assemble(renamed, options, folder);
  for (const auto& [name, code] : {std::pair(m.file, &want), std::pair(renamed.name, &got)}) {
    if (!code->problem.empty()) return name + " is refused:\n" + code->problem;
  }
  const std::string other = m.debug ? "" : difference(want.cubin, got.cubin);
  if (!other.empty()) return renamed.name + ": " + other;
  std::filesystem::remove(renamed_file);
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
