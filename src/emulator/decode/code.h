// A linked program in the form in which it runs: instructions taken apart, names resolved.
//
// decode.h makes this from the syntax tree, once per module load, so that running an instruction needs no
// text. A function with an unknown instruction says so, with its name and line. No kernel that can reach it
// is ever started.
//
// Registers of a function are numbered columns of a frame (alu.h says what a column is). Addresses:
//   global, const   the address in this process (memory.h); generic and state-space addresses are the same
//   shared          offset in the block's shared memory; generic: kSharedWindow + offset
//   local           offset in the thread's local memory; generic: kLocalWindow + offset
//   param           offset in the kernel's parameter block; generic: kParamWindow + offset
// The windows lie where no process has memory, so a generic address tells its space.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/alu/alu.h"
#include "emulator/memory_model/access.h"

namespace klap::emulator {

inline constexpr uint64_t kWindowBytes = 1ull << 32;
inline constexpr uint64_t kSharedWindow = 1ull << 48;
inline constexpr uint64_t kLocalWindow = kSharedWindow + kWindowBytes;
inline constexpr uint64_t kParamWindow = kLocalWindow + kWindowBytes;
// "Addresses" of functions: kCodeWindow + 16 * index into Image::functions. Never to be read or written.
inline constexpr uint64_t kCodeWindow = kParamWindow + kWindowBytes;

enum class Space : uint8_t { Generic, Global, Const, Shared, Local, Param };

// The special registers, by their names without '%'. A register of 3 dimensions is three numbers in a row.
enum class Special : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  Clock,
  ClockHi,
  Clock64,
  GlobalTimer,
  GlobalTimerLo,
  GlobalTimerHi,
  DynamicSmemSize,
  TotalSmemSize,
  AggrSmemSize,
  IsExplicitCluster,
  ClusterIdX,
  ClusterIdY,
  ClusterIdZ,
  NclusterIdX,
  NclusterIdY,
  NclusterIdZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  CurrentGraphExec,
};

struct Operand {
  enum class From : uint8_t {
    None,            // absent; as a destination: the bit bucket
    Register,        // column `index` of the frame
    Constant,        // column `index` of Function::constants
    Special,         // Special(index)
    SharedVariable,  // offset of Image::shared_variables[index] in the running kernel's shared memory, plus
                     // `add`
    LocalVariable,   // offset `index` in the function's local frame: an offset in the thread's local memory
  };
  From from = From::None;
  uint32_t index = 0;
  int64_t add = 0;  // SharedVariable only
};

// The kind of an instruction, with its operands: destinations; sources. Destinations that the program does
// not want (`_`, or the second of `d|p`) are None. A member mask and a negated predicate stand as in
// WarpDetail.
enum class Kind : uint8_t {
  Alu,            // as AluOp says; an optional last source that is absent is not counted
  Load,           // d1...dn; address
  Store,          // ; address, v1...vn
  Atomic,         // d1...dn; address, v1...vn (n > 1: vector forms), or for Cas: address, expected, wanted
  Reduction,      // as Atomic, without destinations
  Fence,          // memory.scope, .semantics, .sequentially_consistent
  Prefetch,       // and other hints (applypriority, discard): no operands, nothing happens
  ToGeneric,      // d; a: cvta from memory.space
  FromGeneric,    // d; a: cvta.to memory.space
  IsSpace,        // p; a: isspacep of memory.space
  MapShared,      // d; a, rank: mapa; memory.space is Shared (offset to offset) or Generic
  Barrier,        // [d]; number, [count], [predicate]: bar and barrier, see BarrierDetail
  WarpBarrier,    // ; mask
  Shuffle,        // d, p; a, b, c, mask (no mask unless warp.is_sync)
  Vote,           // d; predicate, mask (likewise)
  Match,          // d, p; a, mask
  Redux,          // d; a, mask
  ActiveMask,     // d;
  Elect,          // d, p; mask
  Branch,         // to `target`
  IndexedBranch,  // ; index into Function::tables[detail]
  Call,           // Function::calls[detail]
  IndirectCall,   // ; function's address. Function::calls[detail]
  Return,         // of a called function; a kernel's `ret` is an Exit
  Exit,
  Trap,
  NanoSleep,  // ; nanoseconds
  DependencyWait,
  DependencyLaunch,  // griddepcontrol
  StackSave,         // d;
  StackRestore,      // ; a
  Alloca,            // d, an address in local memory; bytes, alignment
  Texture,           // d1...d4; handle, coordinates...: see TextureDetail
  Nothing,           // pmevent, setmaxnreg, breakpoint
};

enum class AtomicOp : uint8_t { And, Or, Xor, Cas, Exch, Add, Inc, Dec, Min, Max };
enum class NumberType : uint8_t { Bits, Unsigned, Signed, Float, Half, HalfPair, BFloat, BFloatPair };

struct MemoryDetail {
  Space space = Space::Generic;
  uint8_t bytes = 0;                   // of one element: 1, 2, 4, 8 or 16
  uint8_t elements = 1;                // 1, 2, 4 or 8
  NumberType type = NumberType::Bits;  // Signed: loads sign-extend to `register_bits`
  uint8_t register_bits = 0;           // of a destination register
  Semantics semantics = Semantics::Weak;
  Scope scope = Scope::Sys;              // Weak and NonCoherent: without meaning
  bool sequentially_consistent = false;  // of a Fence
  AtomicOp atomic{};
  int64_t offset = 0;  // added to sources[0], which may be a Constant
  // The last source is a number, and only lanes where it is more than `above` take part. Load and Store.
  bool limited = false;
  uint32_t above = 0;
};

struct BarrierDetail {
  bool arrive_only = false;
  bool aligned = false;
  bool has_count = false;  // sources[1]; sources[0] is the barrier's number
  enum class Reduce : uint8_t {
    None,
    And,
    Or,
    Popc
  } reduce = Reduce::None;  // destinations[0], predicate last source
  bool negated = false;     // of the predicate reduced
};

struct WarpDetail {  // the member mask is the last source, where there is one
  enum class Op : uint8_t {
    ShuffleUp,
    ShuffleDown,
    ShuffleBfly,
    ShuffleIdx,  // d|p = a, b, c
    VoteAll,
    VoteAny,
    VoteUni,
    VoteBallot,
    MatchAny,
    MatchAll,
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,  // redux
  } op{};
  bool is_sync = true;
  bool negated = false;  // of a vote's predicate
  NumberType type = NumberType::Bits;
  uint8_t bits = 32;
};

struct TextureDetail {     // of a texture or surface-free `tex` of level 0
  uint8_t dimensions = 1;  // so many coordinates
  bool float_coordinates = false;
  NumberType result = NumberType::Bits;  // Float, Signed, Unsigned: of 32 bits
};

struct CallDetail {
  static constexpr uint32_t kIndirect = ~0u;
  uint32_t function = kIndirect;  // direct: index into Image::functions
  // Where the caller's actual parameters and results lie: .param variables as offsets in its local frame, or
  // registers. In the order of the callee's declaration.
  struct Place {
    Operand where;
    uint32_t bytes = 0;
  };
  std::vector<Place> parameters, results;
};

struct Instruction {
  Kind kind = Kind::Nothing;
  bool guarded = false, guard_negated = false;
  uint8_t destination_count = 0, source_count = 0;
  uint32_t guard = 0;   // a predicate's column
  uint32_t line = 0;    // in the unit's PTX
  uint32_t opcode = 0;  // its text: Function::opcodes, for messages
  std::array<Operand, 8> destinations{};
  std::array<Operand, 10> sources{};
  AluFunction alu = nullptr;
  uint64_t setting = 0;  // of the AluOp
  MemoryDetail memory;
  BarrierDetail barrier;
  WarpDetail warp;
  TextureDetail texture;
  uint32_t target = 0;  // Branch: an instruction of this function
  uint32_t detail = 0;  // Call, IndirectCall: Function::calls; IndexedBranch: Function::tables
};

struct FrameVariable {  // .local and .param variables of a function's scopes, and its own parameters
  std::string name;
  uint32_t offset = 0, bytes = 0;
};

// A place for a function's parameter or result: in the callee's local frame, or a register. A builtin has no
// frame: its arguments and its result stand at `offset` in ThreadCall::arguments and ::result. `where` is
// None for a register that the function never reads.
struct FormalParameter {
  Operand where;
  uint32_t bytes = 0;
  uint32_t offset = 0;  // by PTX's layout rules, among all parameters
};

struct KernelLimits {  // .reqntid, .maxntid; 0 where the kernel says nothing
  std::array<uint32_t, 3> required{}, maximum{};
};

struct Function : FunctionName {
  bool is_kernel = false;
  // A function without a body that the machine provides: its number in builtins.h, else -1.
  int builtin = -1;
  // The instruction that the emulator cannot run, with its place ("u.ptx:12:3: ..."); empty if it can run all
  // of the function. Otherwise `code` is not complete and must not run. A kernel also says so for the
  // functions that it can reach by calls. Callers check it before every launch.
  std::string unsupported;
  std::vector<Instruction> code;              // ends with a Return (or Exit, in a kernel)
  uint32_t columns = 0;                       // registers
  std::vector<uint64_t> constants;            // [number][kLanes]: constant operands, broadcast
  std::vector<std::vector<uint32_t>> tables;  // targets of brx.idx
  std::vector<CallDetail> calls;
  std::vector<std::string> opcodes;  // "ld.global.nc.u32"
  uint32_t local_bytes = 0;          // of one frame: .local variables, .param variables, parameters
  std::vector<FrameVariable> frame;
  std::vector<FormalParameter> parameters, results;  // of a called function
  // These are set for a kernel:
  uint32_t parameter_bytes = 0;
  std::vector<uint32_t> parameter_offsets, parameter_sizes;
  KernelLimits limits;
  // Indices of the Image::shared_variables that it uses. A kernel also has those that its callees use, in
  // layout order.
  std::vector<uint32_t> shared;
  std::vector<uint64_t> shared_offsets;  // of each Image::shared_variable (by its index); ~0: not in `shared`
  uint32_t shared_bytes = 0;             // static
  uint32_t register_estimate = 0;        // 32-bit registers a thread, for occupancy and function attributes
};

struct SharedVariable {
  std::string name;
  uint64_t bytes = 0;  // 0: `extern .shared x[]`, which begins where static shared memory ends
  uint32_t align = 1;
};

struct Variable {  // .global and .const
  std::string name;
  uint64_t address = 0, bytes = 0;
  uint32_t align = 1;
  bool is_const = false, is_managed = false;
  bool visible = true;  // can be asked for by name
};

// One loaded module: cuModuleLoadData makes it of one or more linked units.
struct Image {
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<SharedVariable> shared_variables;
  std::vector<Variable> variables;
  std::map<std::string, uint32_t, std::less<>> kernels;  // visible ones, by mangled name
  std::vector<std::string> texture_names;
  std::vector<uint32_t> indirect_callees;  // functions whose address is taken: what an IndirectCall may reach
};

}  // namespace klap::emulator
