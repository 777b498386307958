// See call_tree.h. Node 0 is never given back: its users are not counted down to nothing.
#include "emulator/grids/call_tree.h"

namespace klap::emulator::execution {

void CallTree::clear() {
  nodes_.assign(1, Node{});
  nodes_[0].users = 1;
  unused_.clear();
}

uint32_t CallTree::enter(const PendingCall& call) {
  for (uint32_t child = nodes_[call.caller].first_child; child != 0; child = nodes_[child].next) {
    if (!(nodes_[child].call == call)) continue;
    ++nodes_[child].users;
    release(call.caller);
    return child;
  }
  uint32_t node = 0;
  if (unused_.empty()) {
    node = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
  } else {
    node = unused_.back();
    unused_.pop_back();
  }
  nodes_[node] = {call, 1, 0, nodes_[call.caller].first_child};
  nodes_[call.caller].first_child = node;
  return node;
}

PendingCall CallTree::leave(uint32_t node) {
  PendingCall call = nodes_[node].call;
  retain(call.caller);
  release(node);
  return call;
}

void CallTree::release(uint32_t node) {
  while (node != 0 && --nodes_[node].users == 0) {
    uint32_t caller = nodes_[node].call.caller;
    uint32_t* link = &nodes_[caller].first_child;
    while (*link != node) link = &nodes_[*link].next;
    *link = nodes_[node].next;
    unused_.push_back(node);
    node = caller;
  }
}

}  // namespace klap::emulator::execution
