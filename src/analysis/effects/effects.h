// Effects are what functions do besides computing. This file finds the effects of a body and of the functions
// that it calls.
//
// The effects of a kernel decide whether it may run elsewhere, later, or with other threads. These effects
// are registers that say where a thread runs, operations by which threads meet, memory that they share, and
// calls of unseen code. Every instruction is classified once, here. An opcode that is on no list is an effect
// of its own (`UnlistedInstruction`), so code of a newer PTX version is never taken for harmless.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "analysis/graph/dataflow.h"
#include "ptx/tree.h"

namespace klap::analysis {

// X(enumerator, "text")
#define KLAP_EFFECTS(X)                                                                  \
  X(PositionRegister, "position register")   /* %tid, %ctaid, ... */                     \
  X(LaneRegister, "lane register")           /* %laneid, %lanemask */                    \
  X(ClockRegister, "clock register")         /* %clock, %globaltimer */                  \
  X(ProcessorRegister, "processor register") /* %smid, %nsmid */                         \
  X(OtherRegister, "special register")       /* any other */                             \
  X(BlockBarrier, "block barrier")           /* all threads of a block */                \
  X(PartialBarrier, "barrier with a count")  /* some threads of a block */               \
  X(ClusterBarrier, "cluster barrier")                                                   \
  X(BarrierObject, "mbarrier")                                                           \
  X(WarpSync, "warp operation")      /* lanes wait for each other or see each other */   \
  X(ClusterAccess, "cluster access") /* shared memory of other blocks, .cluster scope */ \
  X(StaticShared, "static shared memory")                                                \
  X(DynamicShared, "dynamic shared memory")                                              \
  X(SharedAccess, "shared memory access")                                                \
  X(LocalMemory, "local memory")                                                         \
  X(StackAllocation, "stack allocation") /* alloca */                                    \
  X(Atomic, "atomic")                    /* with a result */                             \
  X(Reduction, "reduction")              /* without one */                               \
  X(StrongLoad, "strong load")           /* volatile, relaxed, acquire */                \
  X(StrongStore, "strong store")                                                         \
  X(Fence, "fence")                                                                      \
  X(BlockScope, "block scope") /* seen by threads of the block alone: .cta */            \
  X(Sleep, "sleep")                                                                      \
  X(Texture, "texture or surface")                                                       \
  X(AsyncCopy, "asynchronous copy")    /* cp.async, TMA, st.async */                     \
  X(GridDependency, "grid dependency") /* griddepcontrol */                              \
  X(Allocation, "allocation")          /* malloc, free, cudaMalloc */                    \
  X(Printing, "printing")                                                                \
  X(Assertion, "assertion")                                                              \
  X(Trap, "trap")                                                                        \
  X(Exit, "exit") /* ends the thread, also from a called function */                     \
  X(DeviceRuntime, "device runtime")                                                     \
  X(UnknownCall, "call of another unit")                                                 \
  X(IndirectCall, "indirect call")                                                       \
  X(UnlistedInstruction, "unlisted instruction")

enum class EffectKind : uint8_t {
#define KLAP_EFFECT(name, text) name,
  KLAP_EFFECTS(KLAP_EFFECT)
#undef KLAP_EFFECT
};
const char* to_string(EffectKind kind);

// One effect at the first place where a function has it. Two effects are the same if kind and `what` are.
struct Effect {
  EffectKind kind{};
  std::string what;  // "%tid", "bar.sync 1", "add.u32 global gpu", "_Z6helperi", ...
  const ptx::Function* function = nullptr;
  uint32_t token = 0;
};

// Effects of one body or of a whole call closure, in the order in which they were found.
class Effects {
 public:
  [[nodiscard]] const std::vector<Effect>& all() const { return all_; }
  // The first effect of a kind, or null.
  [[nodiscard]] const Effect* find(EffectKind kind) const;
  [[nodiscard]] bool has(EffectKind kind) const { return find(kind) != nullptr; }
  void add(Effect effect);
  void add(const Effects& other);

 private:
  std::vector<Effect> all_;
  // Each is there once for each function that has it: some may be refused in one and not in another.
  std::map<std::tuple<EffectKind, std::string, const ptx::Function*>, size_t> index_;
};

// The effects of one instruction by itself. The functions below find the effects of calls and of special
// registers.
std::vector<EffectKind> instruction_effects(const ptx::Module& module, const ptx::Statement& instruction);

// The effects of a function's body, without those of the called functions that the module defines.
Effects own_effects(const ptx::Module& module, const ptx::Function& function);

// True for library functions outside the program whose effect does not depend on the caller's place.
bool is_known_external(std::string_view name);
EffectKind register_effect(std::string_view special_register);
// True for special registers of virtual position (%tid, %ctaid, %ntid, %nctaid), which a consumer replaces.
bool is_virtual_special_register(std::string_view name);
// True if `function` itself reads a lane's number or mask, so that a thread must keep its place in the warp.
bool reads_lane(const ptx::Module& module, const ptx::Function& function);

// Functions that `function` calls directly or indirectly and that its module defines, each once.
struct CallClosure {
  std::vector<const ptx::Function*> functions;
  std::vector<std::string> external;  // called, but defined elsewhere
  bool indirect = false;
};
CallClosure call_closure(const ptx::Module& module, const ptx::Function& function);

// The functions that can be reached by calls from a set of functions, with their effects.
class CallGraph {
 public:
  // The graph of all functions that the module defines, or of one function and those that it calls.
  explicit CallGraph(const ptx::Module& module);
  CallGraph(const ptx::Module& module, const ptx::Function& root);

  // The functions below accept functions of the graph; others are an Error(Internal).
  [[nodiscard]] const std::vector<const ptx::Function*>& functions() const { return functions_; }
  [[nodiscard]] const Effects& own(const ptx::Function& function) const { return own_[node(function)]; }
  // The effects of a function and of everything it calls.
  [[nodiscard]] const Effects& closure(const ptx::Function& function) const;
  [[nodiscard]] std::vector<const ptx::Function*> callees(const ptx::Function& function) const;
  // True if the function can call itself, directly or through others.
  [[nodiscard]] bool is_recursive(const ptx::Function& function) const;
  [[nodiscard]] const ptx::Module& module() const { return module_; }
  // The function's node if it is part of the graph.
  [[nodiscard]] bool contains(const ptx::Function& function) const { return index_.contains(&function); }

 private:
  void close();
  [[nodiscard]] uint32_t node(const ptx::Function& function) const;

  const ptx::Module& module_;
  std::vector<const ptx::Function*> functions_;
  std::map<const ptx::Function*, uint32_t> index_;
  std::vector<std::vector<uint32_t>> callees_;
  std::vector<Effects> own_;
  std::vector<uint32_t> component_;  // node -> component of mutually recursive functions
  std::vector<bool> recursive_;      // by component
  std::vector<Effects> closed_;      // by component
};

// One paragraph a function: what it calls, and each effect with its place.
std::string print_effects(const CallGraph& graph);

// True for a load that must not be assumed to give the same value twice.
bool is_strong_load(const ptx::Module& module, const ptx::Statement& instruction);

}  // namespace klap::analysis
