// A join returns one of its operands if that already includes the other. So equal parts stay shared, and the
// next join sees at once that they are equal.
#include "emulator/memory_model/model_clock.h"

#include <algorithm>

namespace klap::emulator {
namespace {

using Part = Ref<const Counted>;
using Node = ClockNode;
constexpr uint32_t kFan = Node::kFan, kFanBits = Node::kFanBits;

const Part& everything() { return Node::everything; }

const Node& as_node(const Counted& part) { return static_cast<const Node&>(part); }

// Whether `all` or its replacement may shrink to the mark.
Part finished(Ref<Node> node) {
  bool full =
      std::ranges::all_of(node->parts, [](const Part& part) { return part.get() == everything().get(); });
  return full ? everything() : Part(node.get());
}

Part join_parts(const Part& a, const Part& b, uint32_t height) {
  if (a == b || !b) return a;
  if (!a) return b;
  if (a == everything() || b == everything()) return everything();
  if (height == 0) {
    ViewRef joined =
        join(ViewRef(static_cast<const View*>(a.get())), ViewRef(static_cast<const View*>(b.get())));
    return Part(joined.get());
  }
  const Node &left = as_node(*a), &right = as_node(*b);
  Ref<Node> node(new Node);
  bool is_left = true, is_right = true;
  for (uint32_t i = 0; i < kFan; ++i) {
    node->parts[i] = join_parts(left.parts[i], right.parts[i], height - 1);
    is_left &= node->parts[i] == left.parts[i];
    is_right &= node->parts[i] == right.parts[i];
  }
  return is_left ? a : is_right ? b : finished(std::move(node));
}

Part with_leaf(const Part& at, uint32_t height, uint32_t block, const Part& leaf) {
  if (at == everything()) return at;
  if (height == 0) return join_parts(at, leaf, 0);
  uint32_t i = Node::part_of(block, height);
  Part old = at ? as_node(*at).parts[i] : Part();
  Part changed = with_leaf(old, height - 1, block, leaf);
  if (at && changed == old) return at;
  Ref<Node> node(new Node);
  if (at) node->parts = as_node(*at).parts;
  node->parts[i] = std::move(changed);
  return finished(std::move(node));
}

// Puts the set into a tree of at least `wanted` height.
void raise(Part& root, uint32_t& height, uint32_t wanted) {
  for (; height < wanted; ++height) {
    if (!root) continue;
    Ref<Node> node(new Node);
    node->parts[0] = root;
    root = Part(node.get());
  }
}

uint32_t height_for(uint32_t block) {
  uint32_t height = 0;
  for (; block; block >>= kFanBits) ++height;
  return height;
}

}  // namespace

const Ref<const Counted> ClockNode::everything(new Counted);

bool View::covers_single(uint32_t agent, uint64_t time) const {
  auto found = std::ranges::lower_bound(of_some_, agent, {}, &Entry::agent);
  return found != of_some_.end() && found->agent == agent && time <= found->time;
}

bool View::includes(const View& other) const {
  if (of_all_ < other.of_all_) return false;
  auto at = of_some_.begin(), end = of_some_.end();
  for (const Entry& entry : other.of_some_) {
    if (entry.time <= of_all_) continue;
    while (at != end && at->agent < entry.agent) ++at;
    if (at == end || at->agent != entry.agent || at->time < entry.time) return false;
  }
  return true;
}

ViewRef join(const ViewRef& a, const ViewRef& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  if (a->includes(*b)) return a;
  if (b->includes(*a)) return b;
  uint64_t of_all = std::max(a->of_all_, b->of_all_);
  std::vector<View::Entry> merged;
  merged.reserve(std::max(a->of_some_.size(), b->of_some_.size()) + 1);
  auto left = a->of_some_.begin(), left_end = a->of_some_.end();
  auto right = b->of_some_.begin(), right_end = b->of_some_.end();
  while (left != left_end || right != right_end) {
    bool from_left = right == right_end || (left != left_end && left->agent <= right->agent);
    bool from_right = left == left_end || (right != right_end && right->agent <= left->agent);
    View::Entry entry = from_left ? *left : *right;
    if (from_left && from_right) entry.time = std::max(left->time, right->time);
    if (from_left) ++left;
    if (from_right) ++right;
    if (entry.time > of_all) merged.push_back(entry);
  }
  return ViewRef(new View(of_all, std::move(merged)));
}

ViewRef Clock::view(uint32_t block) const {
  const Counted* at = leaf(block);
  return ViewRef(at == everything().get() ? nullptr : static_cast<const View*>(at));
}

void Clock::join(const Clock& other) {
  if (root_ == other.root_) return;
  if (!other.root_) return;
  if (!root_) {
    *this = other;
    return;
  }
  Clock raised = other;
  raise(raised.root_, raised.height_, height_);
  raise(root_, height_, raised.height_);
  root_ = join_parts(root_, raised.root_, height_);
}

void Clock::join(uint32_t block, const ViewRef& view) {
  if (view) join_leaf(block, Part(view.get()));
}

void Clock::include_all_of(uint32_t block) { join_leaf(block, everything()); }

void Clock::join_leaf(uint32_t block, Part leaf) {
  raise(root_, height_, height_for(block));
  root_ = with_leaf(root_, height_, block, leaf);
}

}  // namespace klap::emulator
