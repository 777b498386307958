// See warp.h.
#include "emulator/grids/warp.h"

#include <algorithm>
#include <cstring>

#include "emulator/grids/block.h"

namespace klap::emulator::execution {

bool LocalMemory::grow(Memory& memory, uint32_t bytes) {
  if (bytes > kMost) return false;
  uint32_t stride = std::clamp(std::max(bytes, 2 * stride_), 256u, kMost);
  stride = (stride + 15) & ~15u;
  auto address = memory.allocate(uint64_t{stride} * kLanes, Owner::Local);
  if (!address) return false;
  LocalMemory old = *this;
  address_ = *address;
  stride_ = stride;
  for (uint32_t lane = 0; lane < kLanes && old.stride_ != 0; ++lane)
    std::memcpy(pointer_to(this->address(lane)), pointer_to(old.address(lane)), old.stride_);
  old.release(memory);
  return true;
}

void LocalMemory::release(Memory& memory) {
  if (stride_ != 0) memory.free(address_, Owner::Local);
  address_ = 0;
  stride_ = 0;
}

void Warp::start(Block& in, uint32_t number, uint32_t lanes, const Function& kernel) {
  block = &in;
  index = number;
  live = lanes;
  carry.fill(0);
  agents.fill(nullptr);
  calls.clear();
  rotate = stay = false;
  run_since_rotation = 0;
  strong_accesses = 0;
  registers.assign(size_t{kernel.columns} * kLanes, 0);
  const Dim3& size = in.run->grid->launch.block;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t thread_number = number * kLanes + lane;
    thread[0][lane] = thread_number % size[0];
    thread[1][lane] = thread_number / size[0] % size[1];
    thread[2][lane] = thread_number / size[0] / size[1];
  }
  Fragment all;
  all.mask = lanes;
  all.function = &kernel;
  all.local_top = kernel.local_bytes;
  fragments.assign(1, all);
}

bool Warp::open_frame(uint32_t first_column, uint32_t columns, uint32_t lanes) {
  if (first_column + columns > kMostColumns) return false;
  size_t end = size_t{first_column + columns} * kLanes;
  if (registers.size() < end) registers.resize(std::max(end, registers.size() * 2));
  uint64_t* frame = registers.data() + size_t{first_column} * kLanes;
  if (lanes == ~0u) {
    std::fill(frame, registers.data() + end, 0);
    return true;
  }
  for (uint32_t column = 0; column < columns; ++column, frame += kLanes)
    for_lanes(lanes, [&](uint32_t lane) { frame[lane] = 0; });
  return true;
}

bool Warp::has_ready() const {
  return std::any_of(fragments.begin(), fragments.end(),
                     [](const Fragment& f) { return f.state == Fragment::State::Ready; });
}

namespace {
template <typename Better>
size_t best_ready(const std::vector<Fragment>& fragments, Better better) {
  size_t best = fragments.size();
  for (size_t i = 0; i < fragments.size(); ++i) {
    if (fragments[i].state != Fragment::State::Ready) continue;
    if (best == fragments.size() || better(fragments[i], fragments[best])) best = i;
  }
  return best;
}
}  // namespace

size_t Warp::choose_to_reconverge() const {
  return best_ready(fragments, [](const Fragment& a, const Fragment& b) {
    return a.depth != b.depth ? a.depth > b.depth : a.pc < b.pc;
  });
}

size_t Warp::choose_longest_waiting() const {
  return best_ready(fragments, [](const Fragment& a, const Fragment& b) { return a.last_run < b.last_run; });
}

size_t Warp::choose_last_run() const {
  return best_ready(fragments, [](const Fragment& a, const Fragment& b) { return a.last_run > b.last_run; });
}

void Warp::absorb(Fragment& fragment) {
  for (size_t i = 0; i < fragments.size();) {
    const Fragment& other = fragments[i];
    if (other.state != Fragment::State::Ready || other.pc != fragment.pc || !other.same_frame(fragment)) {
      ++i;
      continue;
    }
    fragment.mask |= other.mask;
    fragment.local_top = std::max(fragment.local_top, other.local_top);
    calls.release(other.caller);
    take(i);
  }
}

Fragment Warp::take(size_t index_of_fragment) {
  Fragment taken = fragments[index_of_fragment];
  fragments[index_of_fragment] = fragments.back();
  fragments.pop_back();
  return taken;
}

}  // namespace klap::emulator::execution
