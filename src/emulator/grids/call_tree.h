// The call stacks of a warp's fragments, kept as a tree so that equal stacks are one number.
//
// Fragments merge only where their stacks are equal. That is asked often and must not cost a walk over both.
// A node is a call that has not returned, and knows its caller. Nodes that no fragment is in are removed.
#pragma once

#include <cstdint>
#include <vector>

#include "emulator/decode/code.h"

namespace klap::emulator::execution {

struct PendingCall {
  const Function* function = nullptr;  // the caller, and where it goes on:
  uint32_t pc = 0;                     // the call itself
  uint32_t columns = 0;
  uint32_t local = 0, local_top = 0;
  uint32_t caller = 0;  // the node of the caller's own call; 0: the caller is the kernel
  friend bool operator==(const PendingCall&, const PendingCall&) = default;
};

class CallTree {
 public:
  CallTree() { clear(); }
  void clear();
  // The node of this call, new or known, with one more user. It takes over the user of `call.caller`.
  uint32_t enter(const PendingCall& call);
  // Gives the caller's node a user in place of this one's.
  PendingCall leave(uint32_t node);
  void retain(uint32_t node) { ++nodes_[node].users; }
  void release(uint32_t node);
  [[nodiscard]] const PendingCall& operator[](uint32_t node) const { return nodes_[node].call; }

 private:
  struct Node {
    PendingCall call;
    uint32_t users = 0;  // fragments in it, and nodes of calls made from it
    uint32_t first_child = 0, next = 0;
  };
  std::vector<Node> nodes_;  // [0] is the kernel
  std::vector<uint32_t> unused_;
};

}  // namespace klap::emulator::execution
