// Random programs of dynamic parallelism version 1, whose kernels wait for their children, as syntax trees.
//
// Each of them has one result, because it uses memory in these ways only. Each thread of each grid has words
// of its own:
//   messages  are written by the thread, and read by its children. It writes them while no child may run;
//   sums      are added to by the children, atomically. The thread reads and writes them while no child may
//   run; results   are written by the thread, and read by threads of its parent's block behind a wait.
// Shared memory has a slot for each thread and a total. A barrier separates the phase in which each thread
// writes its own slot and adds to the total from the phase in which all read. Local arrays and variables
// belong to their thread.
//
// Expressions, and what they mean, are those of the other random programs (random/program.h), but for
//   Own        the thread's own word of that number
//   Message    a message of the parent: word `value` of the thread of that number, counted modulo
//   Input      a word of the input
// so a tree is a program if it reads and writes words as said above. The generator sees to that. The
// emulator, which looks for races, shows where a reduced tree is none.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "random/program.h"

namespace klap::differential::waits {

using random::constant;
using random::Expression;
using random::Op;

inline constexpr uint32_t kWords = 8, kFirstSum = 2, kFirstResult = 4;  // of a thread
// Behind these come two more, for programs that poll: how many threads of the children have ended that the
// thread has launched, and how many there are.
inline constexpr uint32_t kEndedThreads = 8, kLaunchedThreads = 9, kAllWords = 10;
inline constexpr uint32_t kInputWords = 64;
inline constexpr uint64_t kWideFactor = 0x9e3779b97f4a7c15ULL;

// In what kind of register a variable lives. Real numbers take the lowest 16 bits, a predicate whether the
// value is zero, and Wide the value times a large number.
enum class Type : uint8_t { Word, Half, Wide, Real, LongReal, Predicate };
inline constexpr uint32_t kTypes = 6;
[[nodiscard]] uint64_t kept(Type type, uint32_t value);
[[nodiscard]] uint32_t taken(Type type, uint64_t kept);

enum class Kind : uint8_t {
  Assign,    // variable `number` = values[0]
  StoreOwn,  // own word `number` = values[0]
  AddOwn,    // values[0] is added to own word `number`, atomically
  AddAbove,  // values[1] is added to sum `number` of the parent's thread values[0], counted modulo
  If,        // values[0] is not 0: body, else other
  Loop,      // variable `number` counts from 0 while below values[0] % (limit + 1)
  Return,    // the thread is done
  // Variable `number` = the result of a function that does the body. Its first variable is values[0].
  Function,
  Launch,  // see Site
  Wait,    // for all children of the block; variable `number` = 0, unless that is kNoVariable
  // Variable `number` = result word `limit` of thread values[0], counted modulo, of the child that this
  // thread, or one for its block, launched at the site of that id in the same iteration of the loops around
  // both.
  Fetch,
  Barrier,      // in form `limit`; those that count set variable `number` from values[0]
  StoreShared,  // own slot = values[0]
  LoadShared,   // variable `number` = slot of the thread `limit` behind, counted modulo
  AddTotal,     // values[0] is added to the block's total
  ClearTotal,   // by the first thread of the block
  LoadTotal,    // variable `number`
  StoreLocal,   // element values[0] of the array, counted modulo, = values[1]
  LoadLocal,    // variable `number` = element values[0]
  LastError,    // variable `number` = 0
};
inline constexpr uint32_t kNoVariable = ~0U;

// Forms of barriers. The last four have a result for all threads: how many, or whether all or any, ask for
// it.
enum class BarrierForm : uint8_t { Plain, NotAligned, Count, All, Any, NotAll };
inline constexpr uint32_t kBarrierForms = 6;

// A launch of `kernel` by each thread that comes to it.
struct Site {
  uint32_t id = 0;  // set by prepare()
  uint32_t kernel = 0;
  uint32_t grid_low = 1, grid_spread = 1;  // blocks in the first dimension: low + grid_of % spread
  Expression grid_of;
  uint32_t depth = 0;     // of a recursive child, given by another kernel
  bool of_block = false;  // one thread launches it for all of its block, whose messages the child may read
  std::vector<Expression> arguments;  // one for each of the child's values
};

struct Statement {
  Kind kind = Kind::Return;
  uint32_t number = 0, limit = 0;
  std::vector<Expression> values;
  std::vector<Statement> body, other;
  Site site;
  // Function: its own variables' types and its result.
  std::vector<Type> types;
  Expression result;
};

struct Kernel {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};  // the most blocks, and all threads of a block
  uint32_t values = 0;                                    // parameters that are numbers
  std::vector<Type> types;                                // of variables
  uint32_t local_elements = 0, local_bytes = 4;           // of the local array
  bool is_generic = false;                                // the local array is accessed by generic addresses
  bool has_shared = false, is_dynamic = false;            // slots; whether the launch decides their number
  uint32_t slot_bytes = 4;
  bool is_recursive = false;  // it may launch itself
  std::vector<Statement> body;
  [[nodiscard]] uint32_t threads() const { return block[0] * block[1] * block[2]; }
  [[nodiscard]] uint32_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  [[nodiscard]] uint32_t shared_bytes() const {
    return has_shared && is_dynamic ? slot_bytes * threads() : 0;
  }
};

// A launch by the host, into the NULL stream.
struct Step {
  uint32_t kernel = 0, depth = 0;
  std::vector<uint32_t> arguments;
};

struct Program {
  uint64_t seed = 0;
  bool polls = false;           // kernels wait by looking at what their children count, and make no call
  std::vector<Kernel> kernels;  // each launches later ones, or itself
  std::vector<Step> steps;
};

// Numbers the sites. To be called after every change.
void prepare(Program& program);

// Where the words of children are, within those of the grid that launches them. A grid's own threads come
// first.
struct SiteRoom {
  uint32_t offset = 0;  // of launches of itself by a grid: how many other such launches come first
  uint32_t trips = 1;   // of all loops around the site
  uint32_t loops = 0;   // of these those in the same function
};
struct Layout {
  std::vector<SiteRoom> sites;                 // by Site::id
  std::vector<uint32_t> fixed;                 // by kernel: words but for those of launches of itself
  std::vector<uint32_t> branches;              // by kernel: launches of itself by one grid
  uint64_t grids = 0, threads = 0, words = 0;  // of the whole program, at most
  [[nodiscard]] uint64_t need(uint32_t kernel, uint32_t depth) const;
};
Layout lay_out(const Program& program);

}  // namespace klap::differential::waits
