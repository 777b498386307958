// The sieve of Eratosthenes: a thread for each number up to the root of the last one launches a kernel if it
// is prime.
//
// The thread asks the device runtime how many multiprocessors there are, and launches a grid of at most that
// many blocks for each of them, whose threads mark the prime's multiples in strides. Then it takes the last
// error, and notes a launch that failed. Several kernels may mark a number, which they all do alike.
//
// `--variant flat` has a block for each candidate, which marks the multiples itself.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/stream_program.h"

constexpr int kBlock = 256;
constexpr int kCandidateBlock = 64;
constexpr int kBlocksPerMultiprocessor = 2;

using Mark = unsigned char;

struct Sieve {
  Mark* composite;  // for each number up to the last one
  int last;
};

__host__ __device__ inline bool is_prime(int number) {
  if (number < 2) return false;
  for (int divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return true;
}

// The multiples from the square on, by threads `thread` of `threads`.
__device__ void mark_multiples(const Sieve& sieve, int prime, int thread, int threads) {
  const long long step = static_cast<long long>(threads) * prime;
  for (long long i = static_cast<long long>(prime) * (prime + thread); i <= sieve.last; i += step)
    sieve.composite[i] = 1;
}

__global__ void mark(Sieve sieve, int prime) {
  mark_multiples(sieve, prime, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
                 static_cast<int>(gridDim.x * blockDim.x));
}

// Blocks for so many threads, but not more than the device runs at a time.
__device__ unsigned blocks_on_this_device(int threads) {
  int device = 0;
  int multiprocessors = 1;
  if (cudaGetDevice(&device) == cudaSuccess)
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  return min(bench::blocks_for(threads, kBlock),
             static_cast<unsigned>(multiprocessors * kBlocksPerMultiprocessor));
}

// The program itself counts its failures, so there is no other kernel that does.
__global__ void sift(Sieve sieve, int last_candidate, unsigned long long* lost) {
  const int candidate = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (candidate > last_candidate || !is_prime(candidate)) return;
  const int multiples = sieve.last / candidate - candidate + 1;
  mark<<<blocks_on_this_device(multiples), kBlock>>>(sieve, candidate);
  if (cudaGetLastError() != cudaSuccess) atomicAdd(lost, 1ULL);
}

__global__ void sift_flat(Sieve sieve) {
  const int candidate = static_cast<int>(blockIdx.x);
  if (is_prime(candidate))
    mark_multiples(sieve, candidate, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
}

namespace {

int root_of(int number) {
  int root = 1;
  while (static_cast<long long>(root + 1) * (root + 1) <= number) ++root;
  return root;
}

// Every composite number is marked by its smallest prime factor, once: another way than the kernels'.
std::vector<Mark> cpu_marks(int last) {
  std::vector<Mark> composite(static_cast<size_t>(last) + 1);
  std::vector<int> primes;
  for (int number = 2; number <= last; ++number) {
    if (composite[number] == 0) primes.push_back(number);
    for (const int prime : primes) {
      const long long product = static_cast<long long>(prime) * number;
      if (product > last) break;
      composite[product] = 1;
      if (number % prime == 0) break;
    }
  }
  return composite;
}

class SieveProgram final : public bench::ArrayProgram<Mark> {
 public:
  SieveProgram(int last, const bench::CommonOptions& options)
      : ArrayProgram(options, "marks", std::vector<Mark>(static_cast<size_t>(last) + 1), cpu_marks(last)),
        last_(last) {}

 private:
  void launch(bool /*count*/) override {
    sift<<<bench::blocks_for(root_of(last_) + 1, kCandidateBlock), kCandidateBlock>>>({data(), last_},
                                                                                      root_of(last_), lost());
  }
  void launch_flat() override {
    sift_flat<<<static_cast<unsigned>(root_of(last_) + 1), kBlock>>>({data(), last_});
  }

  void describe_sizes(bench::JsonObject& report) const override { report.add("last", last_); }
  [[nodiscard]] bench::RunFacts facts() const override {
    long long primes = 0;
    for (int number = 2; number <= root_of(last_); ++number) primes += is_prime(number) ? 1 : 0;
    return {.child_launches = primes, .bytes_to_move = last_ + 1LL, .flat_kernels = 1};
  }

  int last_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  long long last = 1000000;
  bench::Options options("sieve",
                         "prime numbers, with a launch for each prime that asks for the device's size");
  options.integer("last", last, 4, "the last number that is looked at");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("sieve", "last", last, 1 << 30);
  bench::require_device("sieve");
  SieveProgram program(static_cast<int>(last), common);
  return bench::run_benchmark("sieve", common, program);
}
