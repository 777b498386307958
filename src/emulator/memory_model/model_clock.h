// Clocks: the history before an event, for very many agents.
//
// Time is one counter for all agents. An agent is a block's number and its index in the block. A clock says,
// for each agent, up to which time its accesses are included. Blocks mostly go together. After a barrier of a
// whole block one number serves all its threads. A block that has ended is included entirely, which needs no
// number. So a clock is a tree over the blocks' numbers whose leaves are views of one block. Trees are never
// changed but share common parts. A subtree of blocks that are all included entirely shrinks to a mark. So
// taking a snapshot, or joining two clocks that differ little, costs little.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace klap::emulator {

// Counted without atomic operations: the emulator runs one thread at a time.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  virtual ~Counted() = default;

 private:
  template <typename T>
  friend class Ref;
  mutable uint32_t count_ = 0;
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_) ++object_->count_;
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(const Ref& other) {
    if (object_ != other.object_) Ref(other).swap(*this);
    return *this;
  }
  Ref& operator=(Ref&& other) noexcept {
    Ref(std::move(other)).swap(*this);
    return *this;
  }
  ~Ref() {
    if (object_ && --object_->count_ == 0) delete object_;
  }
  void swap(Ref& other) noexcept { std::swap(object_, other.object_); }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const = default;

 private:
  T* object_ = nullptr;
};

// One access, or one moment in an agent's life.
struct Stamp {
  uint32_t block = 0, agent = 0;
  uint64_t time = 0;
};

// How much of one block's accesses is included. A null view includes none.
class View : public Counted {
 public:
  struct Entry {
    uint32_t agent;
    uint64_t time;
  };
  View(uint64_t of_all, std::vector<Entry> of_some) : of_all_(of_all), of_some_(std::move(of_some)) {}
  [[nodiscard]] bool covers(uint32_t agent, uint64_t time) const {
    return time <= of_all_ || (!of_some_.empty() && covers_single(agent, time));
  }

 private:
  friend Ref<const View> join(const Ref<const View>& a, const Ref<const View>& b);
  [[nodiscard]] bool includes(const View& other) const;
  [[nodiscard]] bool covers_single(uint32_t agent, uint64_t time) const;
  uint64_t of_all_;             // every agent's accesses up to this time; 0: none, since time begins at 1
  std::vector<Entry> of_some_;  // by agent; only such as say more than of_all_
};
using ViewRef = Ref<const View>;
ViewRef join(const ViewRef& a, const ViewRef& b);

// The tree of a clock: its inner nodes, and a mark for a block, or a whole subtree of blocks, that is
// included entirely.
struct ClockNode : Counted {
  static constexpr uint32_t kFan = 16, kFanBits = 4;
  std::array<Ref<const Counted>, kFan> parts;
  static const Ref<const Counted> everything;
  static uint32_t part_of(uint32_t block, uint32_t height) {
    return block >> (height - 1) * kFanBits & (kFan - 1);
  }
};

// A set of accesses; copying it is cheap.
class Clock {
 public:
  [[nodiscard]] bool covers(const Stamp& stamp) const {
    const Counted* at = leaf(stamp.block);
    if (!at) return false;
    return at == ClockNode::everything.get() || static_cast<const View*>(at)->covers(stamp.agent, stamp.time);
  }
  [[nodiscard]] bool is_empty() const { return !root_; }
  [[nodiscard]] bool has_same_root(const Clock& other) const { return root_ == other.root_; }
  // Null if the block is not included, or entirely.
  [[nodiscard]] ViewRef view(uint32_t block) const;
  void join(const Clock& other);
  void join(uint32_t block, const ViewRef& view);
  void include_all_of(uint32_t block);

 private:
  void join_leaf(uint32_t block, Ref<const Counted> leaf);
  [[nodiscard]] const Counted* leaf(uint32_t block) const {
    if (height_ < 8 && block >> height_ * ClockNode::kFanBits) return nullptr;
    const Counted *at = root_.get(), *const all = ClockNode::everything.get();
    for (uint32_t height = height_; height && at && at != all; --height)
      at = static_cast<const ClockNode*>(at)->parts[ClockNode::part_of(block, height)].get();
    return at;
  }
  Ref<const Counted> root_;  // at height 0 a leaf, else a node of 16 parts
  uint32_t height_ = 0;      // it holds blocks below 16^height
};

}  // namespace klap::emulator
