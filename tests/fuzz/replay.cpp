// Runs a fuzz target without libFuzzer, in any build: over all seeds, and then over changed ones.
//
// The changes are made at random, always the same for a number, and nothing is learnt from one input for the
// next: this shows that the readers survive what is near to real files, not what lies far from them. It costs
// a few seconds where the fuzzers' own build, with clang, coverage and sanitizers, takes minutes (`run`).
//
//   klap_replay_NAME FINDING COUNT LONGEST SEED-FILE...   runs the files and COUNT changed ones of LONGEST
//   bytes at most klap_replay_NAME FILE                                 runs that one
//
// Exit code 0: nothing was found. Else the input that was being read stands in the file FINDING.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

using Bytes = std::vector<uint8_t>;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// How the parser's texts are changed; the container's have no way of their own.
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most,
                                                                unsigned int seed);

namespace {

constexpr unsigned kSecondsAnInput = 10;
constexpr rlim_t kMostMemory = rlim_t{2048} << 20;

std::minstd_rand random_numbers;  // NOLINT: the same sequence each time

uint32_t below(size_t end) { return end == 0 ? 0 : static_cast<uint32_t>(random_numbers() % end); }

// For the handler of signals.
const char* finding = "";
const uint8_t* current = nullptr;
size_t current_size = 0;

// After a crash, a broken promise (abort) or the end of the input's time: keeps the input.
void keep_input(int signal) {
  const int file = open(finding, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  size_t written = 0;
  while (file >= 0 && written < current_size) {
    const ssize_t more = write(file, current + written, current_size - written);
    if (more <= 0) break;
    written += static_cast<size_t>(more);
  }
  _exit(128 + signal);
}

void catch_signals() {
  // Of its own, for the one that comes of too deep a recursion.
  static std::array<char, 1 << 16> stack;
  const stack_t other{.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  sigaltstack(&other, nullptr);
  struct sigaction action {};
  action.sa_handler = keep_input;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM})
    sigaction(signal, &action, nullptr);
}

// The sanitizers reserve more than all memory there is.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit limit{.rlim_cur = kMostMemory, .rlim_max = kMostMemory};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

Bytes read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path);
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void run(const Bytes& input) {
  current = input.data();
  current_size = input.size();
  alarm(kSecondsAnInput);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  alarm(0);
}

// Numbers that lengths, counts and offsets are wrong with.
void put_number(Bytes& bytes) {
  constexpr std::array<uint64_t, 8> kNumbers = {0,          1,          0x7f,       0xffff,
                                                0x7fffffff, 0x80000000, 0xffffffff, ~uint64_t{0}};
  const uint64_t number = kNumbers[below(kNumbers.size())];
  const size_t size = size_t{1} << below(4);
  if (bytes.size() < size) return;
  const size_t at = below(bytes.size() - size + 1);
  for (size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<uint8_t>(number >> (8 * i));
}

void change_once(Bytes& bytes) {
  if (bytes.empty()) return;
  const size_t at = below(bytes.size());
  const size_t count = std::min<size_t>(bytes.size() - at, 1 + below(64));
  const auto place = bytes.begin() + static_cast<ptrdiff_t>(at);
  switch (below(6)) {
    case 0:
      *place = static_cast<uint8_t>(*place ^ (1u << below(8)));
      return;
    case 1:
      *place = static_cast<uint8_t>(below(256));
      return;
    case 2:
      bytes.erase(place, place + static_cast<ptrdiff_t>(count));
      return;
    case 3: {  // repeat elsewhere
      const Bytes some(place, place + static_cast<ptrdiff_t>(count));
      bytes.insert(bytes.begin() + below(bytes.size()), some.begin(), some.end());
      return;
    }
    case 4:
      bytes.resize(at);
      return;
    default:
      put_number(bytes);
  }
}

}  // namespace

// libFuzzer's own mutations, which the parser's mutator makes use of.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most) {
  Bytes bytes(data, data + size);
  for (uint32_t times = 1 + below(4); times > 0; --times) change_once(bytes);
  bytes.resize(std::min(bytes.size(), most));
  std::ranges::copy(bytes, data);
  return bytes.size();
}

namespace {

Bytes changed(Bytes bytes, size_t most) {
  const size_t size = std::min(bytes.size(), most);
  bytes.resize(most);
  const size_t now = LLVMFuzzerCustomMutator != nullptr
                         ? LLVMFuzzerCustomMutator(bytes.data(), size, most, random_numbers())
                         : LLVMFuzzerMutate(bytes.data(), size, most);
  bytes.resize(now);
  return bytes;
}

void run_all(const std::vector<Bytes>& seeds, size_t count, size_t most) {
  for (const Bytes& seed : seeds) run(seed);
  for (size_t i = 0; i < count; ++i) {
    Bytes input = seeds[below(seeds.size())];
    // Some stay near to what they are made of, some get far.
    for (uint32_t times = 1 + below(5); times > 0; --times) input = changed(std::move(input), most);
    run(input);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    run(read_file(argv[1]));
    return 0;
  }
  if (argc < 5) {
    std::fprintf(stderr, "usage: %s FINDING COUNT LONGEST SEED-FILE... | FILE\n", argv[0]);
    return 2;
  }
  finding = argv[1];
  std::vector<Bytes> seeds;
  for (int i = 4; i < argc; ++i) seeds.push_back(read_file(argv[i]));
  limit_memory();
  catch_signals();
  const size_t count = std::strtoul(argv[2], nullptr, 10);
  run_all(seeds, count, std::strtoul(argv[3], nullptr, 10));
  std::printf("%zu inputs\n", seeds.size() + count);
  return 0;
}
