// Structures of more than 128 bytes, which nvcc copies into a child's arguments in a loop.
#include "case.h"

constexpr int kThreads = 80;
constexpr int kNumbers = 40;
constexpr int kLetters = 150;
constexpr int kReals = 30;
constexpr int kRounds = 3;

struct Numbers {
  int at[kNumbers];
};
struct Letters {
  signed char at[kLetters];
};
struct Reals {
  double at[kReals];
};

KLAP_SHARED static constexpr int number(int i) { return i * 7 % 29 - 11; }
KLAP_SHARED static constexpr int changed(int t, int i) {
  return i == 7 ? t : i == t % kNumbers ? 3 : number(i);
}

#ifdef __CUDACC__

// Each thread of a child puts a few of the fields where nobody else does.
__global__ void put_numbers(int* out, Numbers numbers, int t) {
  if (threadIdx.x < 4) out[4 * t + threadIdx.x] = numbers.at[(t + 7 * threadIdx.x) % kNumbers];
}
__global__ void put_letters(int* out, Letters letters, int t) {
  if (threadIdx.x < 4) out[4 * t + threadIdx.x] = letters.at[(t + 37 * threadIdx.x) % kLetters];
}
__global__ void put_both(double* out, Reals reals, int t, Numbers numbers) {
  if (threadIdx.x < 4)
    out[4 * t + threadIdx.x] =
        reals.at[(t + 7 * threadIdx.x) % kReals] + numbers.at[(t + threadIdx.x) % kNumbers];
}
__global__ void add_numbers(int* out, Numbers numbers, int t) {
  if (threadIdx.x < 4)
    atomicAdd(out + 4 * (t % kThreads) + threadIdx.x, numbers.at[(t + threadIdx.x) % kNumbers]);
}

__device__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void parent_copies(int* out, Numbers numbers) {
  if (place() < kThreads) put_numbers<<<1, 32>>>(out, numbers, place());
}
extern "C" __global__ void parent_changes(int* out, Numbers numbers) {
  const int t = place();
  if (t >= kThreads) return;
  numbers.at[t % kNumbers] = 3;
  numbers.at[7] = t;
  put_numbers<<<1, 32>>>(out, numbers, t);
}
extern "C" __global__ void parent_reads(int* out, const Numbers* all) {
  if (place() < kThreads) put_numbers<<<1, 32>>>(out, all[place() % 2], place());
}
extern "C" __global__ void parent_of_letters(int* out, Letters letters) {
  if (place() < kThreads) put_letters<<<1, 32>>>(out, letters, place());
}
extern "C" __global__ void parent_of_both(double* out, Reals reals, Numbers numbers) {
  if (place() < kThreads) put_both<<<1, 32>>>(out, reals, place(), numbers);
}
extern "C" __global__ void parent_in_loop(int* out, Numbers numbers, int rounds) {
  for (int i = 0; i < rounds; ++i)
    if (place() < kThreads) add_numbers<<<1, 32>>>(out, numbers, place() + i * kThreads);
}
extern "C" __global__ void parent_of_two_sites(int* out, Numbers first, Numbers second) {
  const int t = place();
  if (t >= kThreads) return;
  add_numbers<<<1, 32>>>(out, first, t);
  if (t % 3 == 1) add_numbers<<<1, 32>>>(out, second, t);
}
static __device__ __noinline__ void launch_from(const Numbers& numbers, int* out, int t) {
  put_numbers<<<1, 32>>>(out, numbers, t);
}
extern "C" __global__ void parent_calls(int* out, Numbers numbers) {
  if (place() < kThreads) launch_from(numbers, out, place());
}

#else

Numbers numbers(int more = 0) {
  Numbers made{};
  for (int i = 0; i < kNumbers; ++i) made.at[i] = number(i) + more;
  return made;
}

// What put_numbers() leaves of the numbers that `at(t, i)` says.
template <class At>
std::vector<int> put(const At& at) {
  std::vector<int> after;
  for (int t = 0; t < kThreads; ++t)
    for (int field = 0; field < 4; ++field) after.push_back(at(t, (t + 7 * field) % kNumbers));
  return after;
}
std::vector<int> nothing() { return std::vector<int>(4 * kThreads); }

KLAP_CASE(structure_copied,
          "an element of a structure that is copied in a loop is left out or goes elsewhere") {
  const auto out = c.buffer("out", nothing(), put([](int, int i) { return number(i); }));
  c.launch("parent_copies", {2, 1, 1}, {64, 1, 1}, c.address(out), numbers());
  c.rewritten("parent_copies");
  c.children_never_meet();
}

KLAP_CASE(structure_changed, "a structure is copied as it was before the thread changed it") {
  const auto out = c.buffer("out", nothing(), put(changed));
  c.launch("parent_changes", {2, 1, 1}, {64, 1, 1}, c.address(out), numbers());
  c.rewritten("parent_changes");
  c.children_never_meet();
}

KLAP_CASE(structure_read, "a structure in memory is copied from a wrong place") {
  const auto out = c.buffer("out", nothing(), put([](int t, int i) { return number(i) + 100 * (t % 2); }));
  std::vector<int> all;
  for (int i = 0; i < 2 * kNumbers; ++i) all.push_back(number(i % kNumbers) + 100 * (i / kNumbers));
  const auto from = c.input("all", all);
  c.launch("parent_reads", {2, 1, 1}, {64, 1, 1}, c.address(out), c.address(from));
  c.rewritten("parent_reads");
  c.children_never_meet();
}

KLAP_CASE(structure_of_letters, "a structure that is copied byte by byte loses some") {
  Letters letters{};
  for (int i = 0; i < kLetters; ++i) letters.at[i] = static_cast<signed char>(number(i) * 3);
  std::vector<int> after;
  for (int t = 0; t < kThreads; ++t)
    for (int field = 0; field < 4; ++field) after.push_back(letters.at[(t + 37 * field) % kLetters]);
  const auto out = c.buffer("out", nothing(), after);
  c.launch("parent_of_letters", {2, 1, 1}, {64, 1, 1}, c.address(out), letters);
  c.rewritten("parent_of_letters");
  c.children_never_meet();
}

KLAP_CASE(structures_together, "one of two structures takes the other's place") {
  Reals reals{};
  for (int i = 0; i < kReals; ++i) reals.at[i] = i * 0.25;
  std::vector<double> after;
  for (int t = 0; t < kThreads; ++t)
    for (int field = 0; field < 4; ++field)
      after.push_back(reals.at[(t + 7 * field) % kReals] + number((t + field) % kNumbers));
  const auto out = c.buffer("out", std::vector<double>(after.size()), after);
  c.launch("parent_of_both", {2, 1, 1}, {64, 1, 1}, c.address(out), reals, numbers());
  c.rewritten("parent_of_both");
  c.children_never_meet();
}

KLAP_CASE(structure_in_loop, "a copy that a loop makes again begins where the one before ended") {
  std::vector<int> after = nothing();
  for (int t = 0; t < kRounds * kThreads; ++t)
    for (int field = 0; field < 4; ++field)
      after[4 * (t % kThreads) + field] += number((t + field) % kNumbers);
  const auto out = c.buffer("out", nothing(), after);
  c.launch("parent_in_loop", {2, 1, 1}, {64, 1, 1}, c.address(out), numbers(), kRounds);
  c.rewritten("parent_in_loop");
}

KLAP_CASE(structures_of_two_sites, "the copies of two launch sites are taken for each other") {
  std::vector<int> after = nothing();
  for (int t = 0; t < kThreads; ++t)
    for (int field = 0; field < 4; ++field)
      after[4 * t + field] += number((t + field) % kNumbers) * (t % 3 == 1 ? 2 : 1) + (t % 3 == 1 ? 50 : 0);
  const auto out = c.buffer("out", nothing(), after);
  c.launch("parent_of_two_sites", {2, 1, 1}, {64, 1, 1}, c.address(out), numbers(), numbers(50));
  c.rewritten("parent_of_two_sites");
}

KLAP_CASE(structure_in_function, "a copy in a called function is not written out") {
  const auto out = c.buffer("out", nothing(), put([](int, int i) { return number(i); }));
  c.launch("parent_calls", {2, 1, 1}, {64, 1, 1}, c.address(out), numbers());
  c.rewritten("parent_calls");
  c.children_never_meet();
}

#endif
