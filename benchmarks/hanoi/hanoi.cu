// The towers of Hanoi: the list of moves, written by a tree of launches whose order is the solution.
//
// To move a tower, a kernel of one thread launches three others into the NULL stream: itself for the tower
// without its largest disc, a kernel that moves that disc, and itself for the smaller tower again. Each runs
// behind the one before it, with all that it leads to. Moves are appended to a list, by plain loads and
// stores, so launches out of order show at once.
//
// `--variant flat` writes every move by itself, from its number.
#include <cstdint>
#include <vector>

#include "../common/device.cuh"
#include "../common/options.h"
#include "../common/stream_program.h"

constexpr int kFlatBlock = 256;
constexpr int kPegs = 3;

// A move as a number: 3 times the peg that a disc is taken from, plus the one that it goes to. `list[0]` is
// the number of moves, and the moves stand behind it.
__device__ void append_move(int* list, int from, int to) {
  const int number = list[0];
  list[1 + number] = kPegs * from + to;
  list[0] = number + 1;
}

__global__ void move_disc(int* list, int from, int to) { append_move(list, from, to); }

template <bool kCount>
__global__ void move_tower(int* list, int discs, int from, int to, unsigned long long* lost) {
  if (discs == 1) {
    append_move(list, from, to);
    return;
  }
  const int other = kPegs - from - to;
  move_tower<kCount><<<1, 1>>>(list, discs - 1, from, other, lost);
  bench::count_if_lost<kCount>(lost);
  move_disc<<<1, 1>>>(list, from, to);
  bench::count_if_lost<kCount>(lost);
  move_tower<kCount><<<1, 1>>>(list, discs - 1, other, to, lost);
  bench::count_if_lost<kCount>(lost);
}

// Move m, counted from 1, of a solution that takes the discs from peg 0. Where they end depends on whether
// their number is even.
__host__ __device__ inline int move_by_number(int m) {
  const int from = (m & (m - 1)) % kPegs;
  const int to = ((m | (m - 1)) + 1) % kPegs;
  return kPegs * from + to;
}

__global__ void move_flat(int* list, int moves) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i == 0) list[0] = moves;
  if (i < moves) list[1 + i] = move_by_number(i + 1);
}

namespace {

// The closed form knows nothing of the recursion.
std::vector<int> all_moves(int discs) {
  std::vector<int> list = {(1 << discs) - 1};
  for (int m = 1; m <= list[0]; ++m) list.push_back(move_by_number(m));
  return list;
}

class Hanoi final : public bench::ArrayProgram<int> {
 public:
  Hanoi(int discs, const bench::CommonOptions& options)
      : ArrayProgram(options, "moves", std::vector<int>(size_t{1} << discs), all_moves(discs)),
        discs_(discs) {}

 private:
  void launch(bool count) override {
    const int to = discs_ % 2 == 0 ? 1 : 2;
    (count ? move_tower<true> : move_tower<false>)<<<1, 1>>>(data(), discs_, 0, to, lost());
  }
  void launch_flat() override {
    const int moves = (1 << discs_) - 1;
    move_flat<<<bench::blocks_for(moves, kFlatBlock), kFlatBlock>>>(data(), moves);
  }
  void describe_sizes(bench::JsonObject& report) const override { report.add("discs", discs_); }
  [[nodiscard]] bench::RunFacts facts() const override {
    return {
        .child_launches = 3LL * ((1 << (discs_ - 1)) - 1), .bytes_to_move = 4LL << discs_, .flat_kernels = 1};
  }

  int discs_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::CommonOptions common;
  long long discs = 10;
  bench::Options options("hanoi", "the towers of Hanoi, with three launches in order for each tower");
  options.integer("discs", discs, 1, "discs of the tower");
  common.add_to(options);
  options.parse(argc, argv);
  bench::require_at_most("hanoi", "discs", discs, 20);
  bench::require_device("hanoi");
  Hanoi program(static_cast<int>(discs), common);
  return bench::run_benchmark("hanoi", common, program);
}
