// How fast the PTX front end is, how its cost grows and how much memory it takes.
//
// parse_and_print is a module's whole way with nothing changed: its text is copied (parse owns it), parsed,
// printed into a new text and dropped. print_edited is the way out with one edit a hundred tokens. Sizes are
// thousands of bytes of generated text. peak_over_text is the most memory that parsing takes at once, the
// text itself included, over the text's size: measured by the system in a process of its own, so that nothing
// hides in an allocator.
//
// Large blocks of memory come from the system and go back to it at every size, as in a process that parses
// once. Otherwise the allocator would reuse those of the smaller texts only, and cost would seem to grow
// faster than text.
//
// The program fails if a print differs from its text or if memory passes the limit, so that its tiny run is a
// test.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "generated_module.h"
#include "ptx/edit.h"
#include "ptx/tree.h"

namespace klap {
namespace {

constexpr double kMostMemory = 20;         // times the text
constexpr int64_t kLeastForMemory = 1000;  // thousands of bytes: below, the process itself weighs more

bool failed = false;

void fail(benchmark::State& state, const char* why) {
  failed = true;
  state.SkipWithError(why);
}

const std::string& text_of(int64_t kilobytes) {
  static std::map<int64_t, std::string> texts;
  std::string& text = texts[kilobytes];
  if (text.empty()) text = test::generated_module(static_cast<size_t>(kilobytes) * 1000);
  return text;
}

// Bytes of memory that are this process's now.
double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// What parsing adds at its peak to a process that has the text, which parse() takes over; 0 if that cannot be
// told.
double peak_bytes(const std::string& text) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    malloc_trim(0);  // what earlier runs left free must not be reused unseen
    const double before = resident_bytes();
    const ptx::Module module = ptx::parse(text, "generated.ptx");
    benchmark::DoNotOptimize(module.tokens.data());
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const double peak = static_cast<double>(usage.ru_maxrss) * 1024 - before;
    _exit(write(ends[1], &peak, sizeof peak) == sizeof peak ? 0 : 1);
  }
  close(ends[1]);
  double peak = 0;
  if (child < 0 || read(ends[0], &peak, sizeof peak) != sizeof peak) peak = 0;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return peak;
}

void count_bytes(benchmark::State& state, const std::string& text) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.SetComplexityN(static_cast<int64_t>(text.size()));
}

void parse_and_print(benchmark::State& state) {
  const std::string& text = text_of(state.range(0));
  std::string source = text, printed = text;
  while (state.KeepRunning()) {
    ptx::Module module = ptx::parse(std::move(source), "generated.ptx");
    printed.assign(ptx::print(module));
    benchmark::DoNotOptimize(printed.data());
    source = std::move(module.source);
  }
  if (printed != text || source != text) return fail(state, "the print differs from the text");
  count_bytes(state, text);
  if (state.range(0) < kLeastForMemory) return;
  const double peak = peak_bytes(text) / static_cast<double>(text.size());
  state.counters["peak_over_text"] = peak;
  if (peak <= 1 || peak >= kMostMemory) fail(state, "the peak of memory is out of bounds or unknown");
}

void print_edited(benchmark::State& state) {
  const std::string& text = text_of(state.range(0));
  const ptx::Module module = ptx::parse(text, "generated.ptx");
  const auto end = static_cast<uint32_t>(module.tokens.size() - 1);
  ptx::Edits edits(module);
  for (uint32_t token = 0; token < end; token += 100)
    edits.replace({token, token + 1}, std::string(module.text(token)));
  while (state.KeepRunning()) {
    const std::string printed = edits.apply({0, end});
    if (printed != module.text(ptx::TokenRange{0, end}))
      return fail(state, "the print differs from the text");
  }
  count_bytes(state, text);
}

BENCHMARK(parse_and_print)
    ->Arg(50)
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);
BENCHMARK(print_edited)
    ->Arg(50)
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);

}  // namespace
}  // namespace klap

int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);  // its default, but fixed
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return klap::failed ? 1 : 0;
}
