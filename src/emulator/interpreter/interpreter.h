// Runs one fragment of a warp for a turn.
//
// The fragment that runs is taken out of its warp and held in `here_`. When it waits or exits, or when the
// turn is over, it goes back. Where the turn asks for reconvergence, the fragment gives way to others of its
// warp as soon as that brings lanes together: at a place where another one stands, it takes it along; when it
// jumps beyond one, it lets that one catch up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulator/grids/address_map.h"
#include "emulator/grids/block.h"
#include "emulator/grids/context.h"
#include "emulator/grids/fault.h"
#include "emulator/interpreter/operands.h"

namespace klap::emulator::execution {

struct TurnPlan {
  Block* block = nullptr;
  uint32_t warp = 0;
  uint32_t length = 0;       // instructions of a fragment
  bool reconverge = true;    // else the fragment is chosen at random, and runs alone
  bool break_apart = false;  // split it at random first: lanes owe each other no lockstep
};

class Interpreter {
 public:
  explicit Interpreter(Context& context);

  // Throws Fault; exceptions of the listener pass through.
  void run(const TurnPlan& turn);
  // The turn ended early because the fragment seems to wait for something.
  [[nodiscard]] bool is_waiting() const { return is_waiting_; }
  // The turn ended at a wait for children. All lanes of a block wait for the same ones.
  [[nodiscard]] bool waits_for_children() const { return waits_for_children_; }
  // "kernel f, block (0, 0, 0), thread (3, 0, 0), u.ptx:12": of the instruction that ran last.
  [[nodiscard]] std::string place(uint32_t lane) const;
  [[nodiscard]] uint32_t calling_lane() const { return thread_call_lane_; }
  // Memory of the thread that stands at a builtin's call.
  void read(const ThreadCall& call, uint64_t address, std::span<std::byte> out);
  void write(const ThreadCall& call, uint64_t address, std::span<const std::byte> bytes);

 private:
  // ---- interpreter.cpp: the loop, and which fragment runs ----
  void loop();
  void execute(const Instruction& instruction, uint32_t mask);
  void execute_rarely(const Instruction& instruction, uint32_t mask);
  void run_alu(const Instruction& instruction, uint32_t mask);
  void resume(size_t fragment);
  bool resume_another();
  void park(Fragment::State state);
  void entered_frame();
  void set_mask(uint32_t mask);
  void find_meeting();
  void meet();
  void break_apart();
  void end_turn_waiting();

  // ---- control_flow.cpp ----
  void split_off(uint32_t mask, uint32_t pc);
  void keep_only(uint32_t mask, uint32_t others_pc);
  void jump(uint32_t target);
  void let_catch_up(uint32_t from);
  void branch(const Instruction& instruction, uint32_t mask);
  void branch_indexed(const Instruction& instruction, uint32_t mask);
  void wait_for_primary(uint32_t mask);
  void exit(uint32_t mask);
  void exited(uint32_t lanes);
  void stack_allocate(const Instruction& instruction, uint32_t mask);

  // ---- calls.cpp ----
  void call(const Instruction& instruction, uint32_t mask);
  void call_indirect(const Instruction& instruction, uint32_t mask);
  void enter(const Function& function, const CallDetail& detail);
  void return_from(uint32_t mask);
  void call_builtin(const Function& function, const CallDetail& detail, uint32_t mask);
  void call_builtin_of(uint32_t lane, const Function& function, const CallDetail& detail);
  struct FramePlace {
    const Operand& operand;
    const Fragment& frame;
  };
  void move_value(FramePlace to, FramePlace from, uint32_t bytes, uint32_t mask);
  void get_value(FramePlace from, uint32_t lane, std::span<std::byte> bytes);
  void set_value(FramePlace to, uint32_t lane, std::span<const std::byte> bytes);

  // ---- memory_access.cpp ----
  uint32_t within_limit(const Instruction& instruction, uint32_t mask);
  void load(const Instruction& instruction, uint32_t mask);
  void store(const Instruction& instruction, uint32_t mask);
  template <typename T>
  void load_plain(const Instruction& instruction, uint32_t mask);
  template <typename T>
  void store_plain(const Instruction& instruction, uint32_t mask);
  void load_wide(const Instruction& instruction, uint32_t mask);
  void store_wide(const Instruction& instruction, uint32_t mask);
  [[nodiscard]] uint64_t address_of(const Instruction& instruction, uint64_t base) const;
  void strong_access();
  size_t transfer(const ThreadCall& call, uint64_t address, std::span<std::byte> out,
                  std::span<const std::byte> in);
  void convert_address(const Instruction& instruction, uint32_t mask);
  void is_in_space(const Instruction& instruction, uint32_t mask);
  void map_shared(const Instruction& instruction, uint32_t mask);
  void fence(const Instruction& instruction, uint32_t mask);
  [[nodiscard]] Place place_in_code() const { return {here_.function, here_.instruction().line}; }

  // ---- atomics.cpp ----
  void atomic(const Instruction& instruction, uint32_t mask);
  void atomic_of(const Instruction& instruction, uint32_t lane, uint32_t element, uint64_t data,
                 bool is_global);

  // ---- warp_operations.cpp ----
  void warp_operation(const Instruction& instruction, uint32_t mask);
  void complete_warp_operations();
  void refuse_disagreeing_masks() const;
  void perform(std::span<Fragment*> fragments);
  void active_mask(const Instruction& instruction, uint32_t mask);

  // ---- barriers.cpp ----
  void barrier(const Instruction& instruction, uint32_t mask);
  void arrive(Barrier& barrier, const Instruction& instruction);
  void check_count(const Barrier& barrier, uint32_t expected, uint32_t lane) const;
  void settle(uint32_t number);
  void release_barrier(uint32_t number);
  void release_fragment(Fragment& fragment, Warp& warp, const Barrier& barrier);

  Context& context_;
  Operands operands_;
  AddressMap addresses_;
  AluCall alu_{};
  Warp* warp_ = nullptr;
  Block* block_ = nullptr;
  Fragment here_;           // mask 0: none
  uint32_t meeting_ = ~0u;  // the next place where another fragment stands
  uint32_t lane_count_ = 0;
  uint32_t left_ = 0;  // of the turn
  bool reconverge_ = true, is_waiting_ = false, waits_for_children_ = false;
  const ThreadCall* thread_call_ = nullptr;  // under way
  uint32_t thread_call_lane_ = 0;
  std::vector<std::byte> arguments_, result_, moved_;
  std::vector<Fragment*> together_;
  std::vector<Agent*> agents_;
};

}  // namespace klap::emulator::execution
