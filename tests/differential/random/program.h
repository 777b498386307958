// Random parent/child programs as syntax trees. The generator makes them, the printer turns them into PTX,
// the reference runs them, and the reducer makes them smaller.
//
// Every program that these trees can express has one result, in whatever order independent grids run, because
// it uses memory in these ways only:
//   input     is never written;
//   sums      is changed by atomic operations whose order does not matter, and never read by the device;
//   own       belongs, word by word, to one thread of one grid: every launch gives its child a part of the
//             parent's own room, by thread and by loop iteration, so no two grids share a word;
//   messages  are words of a thread's own that it writes before anything else and never again; children read
//             them, and what earlier launches of the host in the same stream wrote may be read as well.
// A fifth kind of memory has a result that depends on the order of launches:
//   cells     are read and written by any thread of any grid. Two accesses that conflict are ordered as CUDA
//             orders them, or run one after another in any order and commute: the reference checks each pair.
// Values are unsigned 32-bit numbers throughout.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace klap::differential::random {

using Dim3 = std::array<uint32_t, 3>;

inline constexpr uint32_t kInputWords = 256;
inline constexpr uint32_t kSumWords = 16;  // of each operation
inline constexpr uint32_t kWideFactor = 2654435761U;
inline constexpr uint32_t kFloatFactor = 2246822519U;  // spreads operands over all sizes
inline constexpr uint32_t kCellWords = 2048;           // for each of the host's streams
inline constexpr uint32_t kHostStreams = 3;
inline constexpr uint32_t kCellAlign = 4;  // words: every access is aligned to its size

enum class Op : uint8_t {
  // Leaves; the meaning of `value` stands behind each.
  Constant,   // the constant
  Local,      // number of a variable
  Parameter,  // index into Kernel::values; in a function: 0 or 1
  Tid,        // axis
  Ctaid,      // axis
  Ntid,       // axis
  Nctaid,     // axis
  Thread,     // the thread's index in its block, counted through
  Linear,     // the thread's index in its grid, counted through
  Own,        // the thread's own word of that number
  Message,    // the word that the parent left for this grid
  Depth,      // of a recursive kernel: how many levels may follow
  // Operations with one operand.
  Input,      // input[operand % kInputWords]
  Previous,   // word operand % Program::previous_words of what an earlier step wrote
  Divide,     // operand / value
  Remainder,  // operand % value
  ShiftLeft,  // by value
  ShiftRight,
  // Operations with two operands.
  Add,
  Subtract,
  Multiply,
  And,
  Or,
  Xor,
  Minimum,
  Maximum,
  Equal,  // 1 or 0
  Less,
  LessSigned,
  // An operation with three operands: operand 0 is not 0 ? operand 1 : operand 2.
  Select,
};

struct Expression {
  Op op = Op::Constant;
  uint32_t value = 0;
  std::vector<Expression> operands;
};
inline Expression constant(uint32_t value) { return {Op::Constant, value, {}}; }
inline bool is_constant(const Expression& e, uint32_t value) {
  return e.op == Op::Constant && e.value == value;
}

// low + (of % spread): between low and low + spread - 1.
struct Extent {
  uint32_t low = 1, spread = 1;
  Expression of;
  [[nodiscard]] uint32_t most() const { return low + spread - 1; }
};

enum class Stream : uint8_t { Null, PerThread, FireAndForget };
enum class Sum : uint8_t { Add, Minimum, Maximum, And, Or, Xor, AddWide };
inline constexpr uint32_t kSums = 7;

struct Site {
  uint32_t id = 0;      // set by prepare()
  uint32_t kernel = 0;  // the child
  std::array<Extent, 3> grid;
  Extent block_x;        // the other extents are the child's own
  bool follows = false;  // the block is the launching thread's, of a kernel that launches itself
  Stream stream = Stream::Null;
  uint32_t launchers = 0;    // only threads whose Linear is below; 0: all
  uint32_t depth = 0;        // given to a recursive child by another kernel
  uint32_t neighbour = 0;    // the message is that of the thread so many behind in the block
  uint32_t block_cells = 0;  // the child's cells begin so many words later for each block before this one
  Expression cells_at;       // and so many times kCellAlign words later besides
  std::vector<Expression> arguments;  // one for each of the child's values
};

enum class Kind : uint8_t {
  Assign,    // variable `number` = values[0]
  StoreOwn,  // own word `number`, which is not 0, = values[0]
  Update,    // sum `number`: element values[0] % kSumWords is combined with values[1]
  If,        // values[0] is not 0: body, else other
  Loop,      // variable `number` counts from 0 while below values[0] % (limit + 1)
  Return,    // the thread is done
  Call,      // variable `number` = function `limit` of values[0] and values[1]
  Exchange,  // variable `number` = what thread values[1] % threads of the block gave as values[0]
  Shuffle,   // variable `number` = values[0] of the lane whose number differs by `limit` in its bits
  Launch,
  // Variable `number` = the result of `cell` for values[0] (the cell's number), values[1] and values[2]. With
  // five values, the cell is values[0] * values[3] + values[4], in 64 bits.
  Cell,
  Fetch,    // variable `number` = own word `limit`, read by the atomic operation number values[0]
  Barrier,  // of the block, in the form `limit`
  Turns,    // body, by one thread after another: see `turns`
};

// ---- cells, and how threads are ordered ----

// How a cell is used. Commuting accesses may run in any order as long as they run one after another.
enum class CellOp : uint8_t {
  Read,
  Write,
  Add,        // c = c + operand; commutes with the other ways to add
  Maximum,    // c = max(c, operand); commutes with AtomicMaximum
  Affine,     // c = c * 3 + operand
  Scratch,    // four words are written, read back and set to 0; commutes with itself
  Poll,       // reads until the cell is the operand, a few times
  AtomicAdd,  // whose result nobody uses
  AtomicMaximum,
  // Adds a floating-point number whose sums depend on the order; the result is not used.
  AtomicAddFloat,
  AddBySwap,      // adds with compare-and-swap until that succeeds
  AtomicAddUsed,  // the result is used
  Exchange,
  CompareSwap,  // the operand replaces values[2]
};
inline constexpr uint32_t kCellOps = 14;
// Forms of plain accesses.
enum class CellForm : uint8_t { Plain, Volatile, Relaxed, CacheGlobal };
inline constexpr uint32_t kCellForms = 4;
// How the address comes to the access.
enum class Via : uint8_t {
  Register,
  Function,    // a device function makes the access
  LocalIndex,  // the index is stored to a local array and loaded again
  LocalAddress,
  OwnAddress,  // the address is stored to the thread's own words 2 and 3, and loaded
};
inline constexpr uint32_t kVias = 5;

struct CellAccess {
  CellOp op = CellOp::Read;
  CellForm form = CellForm::Plain;
  Via via = Via::Register;
  uint32_t bytes = 4, elements = 1;  // more elements are a vector of 4 bytes each
  bool alias = false;                // through the second address
  bool is_generic = false;           // not in the form for global memory
  bool drops_result = false;         // of an atomic operation that has one
  // The offset of values[0], in bytes, is shifted left by so many bits more, in 64 bits.
  uint32_t shift = 0;
  // True if the access gives a value. The others commute, or write a value that is known anyway.
  [[nodiscard]] bool has_result() const {
    if (op >= CellOp::AtomicAddUsed) return !drops_result;
    return op == CellOp::Read || op == CellOp::Poll || op == CellOp::Affine || op == CellOp::Scratch;
  }
  [[nodiscard]] uint32_t words() const {
    return op == CellOp::Scratch ? 4 : std::max(bytes * elements / 4, 1U);
  }
};

// Why one thread follows another.
enum class Relation : uint8_t {
  Barrier,         // all of the block meet between turns
  WarpBarrier,     // the lanes of a warp meet; warps take their turns independently
  SomeLanes,       // the same, in code that only the lanes which take a turn come to
  Vote,            // lanes vote for who is left
  Shuffle,         // lanes hand on a word
  SharedAtomic,    // a thread waits until a word of shared memory is its number: atomic operations
  SharedVolatile,  // volatile accesses and fences
  SharedSwap,      // compare-and-swap used to read
  GlobalAcquire,   // a word of global memory: acquire and release
  GlobalVolatile,
  GlobalAtomic,
  Lock,  // whoever gets a lock in shared memory: one after another in any order
};
inline constexpr uint32_t kRelations = 12;
struct TurnsForm {
  Relation relation = Relation::Barrier;
  uint32_t count = 1;        // threads of the block, or lanes of the warp, that take a turn
  bool is_reversed = false;  // the last one begins
  bool is_unrolled = false;  // the body is written once for each turn; with Barrier and WarpBarrier
};

struct Statement {
  Kind kind = Kind::Return;
  uint32_t number = 0, limit = 0;
  std::vector<Expression> values;
  std::vector<Statement> body, other;
  Site site;
  CellAccess cell = {};
  TurnsForm turns = {};
};

enum class Width : uint8_t { U8, S8, U16, S16, U32, U64, F32 };
inline constexpr uint32_t kWidths = 7;

struct Function {
  // variable = Parameter 0, then `trips` times variable = step, in which Parameter 0 is the variable.
  Expression step;
  uint32_t trips = 1;
};

// The parameters of a kernel, in their order. Parameters that neither it nor the kernels it launches need are
// left out. Alias is the address of the cells once more.
enum class Role : uint8_t { Input, Sums, Own, Room, Depth, Message, Previous, Values, Cells, Alias };
struct Parameter {
  Role role{};
  std::vector<uint32_t> values;  // Values: one, or several that make a structure
};

struct Kernel {
  Dim3 grid{1, 1, 1}, block{1, 1, 1};  // the most of each
  std::vector<Width> values;
  std::vector<Parameter> parameters;
  uint32_t variables = 0, own_words = 1;
  bool dynamic_shared = false;  // what Exchange uses
  // The bound of the value with which its threads compare their index before anything else. They leave if the
  // index is not less.
  std::optional<uint32_t> bound;
  std::optional<Expression> message;  // goes to own word 0, first of all
  bool barrier_after_message = false;
  std::vector<Statement> body;
};

// One launch by the host.
struct Step {
  uint32_t kernel = 0, stream = 0;
  Dim3 grid{1, 1, 1}, block{1, 1, 1};
  uint32_t depth = 0;
  std::vector<uint32_t> arguments;
  bool wait = false;  // for everything, afterwards
};

struct Program {
  uint64_t seed = 0;
  std::vector<Kernel> kernels;  // launch later ones, or themselves
  std::vector<Function> functions;
  std::vector<Step> steps;
  uint32_t previous_words = 1;
};

// ---- properties ----

// Calls visit(statement) for every statement, each before those inside it.
template <class Statements, class Visit>
void for_each(Statements& statements, const Visit& visit) {
  for (auto& s : statements) {
    visit(s);
    for_each(s.body, visit);
    for_each(s.other, visit);
  }
}
template <class Item, class Visit>
void for_each_expression(Item& expression, const Visit& visit) {
  visit(expression);
  for (auto& operand : expression.operands) for_each_expression(operand, visit);
}
// All expressions of one statement, not those of the statements inside it.
template <class Item, class Visit>
void expressions_of(Item& statement, const Visit& visit) {
  for (auto& value : statement.values) for_each_expression(value, visit);
  if (statement.kind != Kind::Launch) return;
  for (auto& extent : statement.site.grid) for_each_expression(extent.of, visit);
  for_each_expression(statement.site.block_x.of, visit);
  for_each_expression(statement.site.cells_at, visit);
  for (auto& argument : statement.site.arguments) for_each_expression(argument, visit);
}

inline uint32_t product(const Dim3& d) { return d[0] * d[1] * d[2]; }
[[nodiscard]] bool has_kind(const std::vector<Statement>& body, Kind kind);
[[nodiscard]] bool uses(const Kernel& kernel, Op op);
[[nodiscard]] bool is_recursive(const Program& program, uint32_t kernel);
// Whether threads of the block wait for each other in it.
[[nodiscard]] bool synchronises(const Statement& statement);
[[nodiscard]] bool uses_cells(const Program& program);
// Turns that only lanes of one warp take.
[[nodiscard]] bool is_by_warp(Relation relation);
[[nodiscard]] bool is_by_word(Relation relation);         // of shared or global memory
[[nodiscard]] bool is_by_global_word(Relation relation);  // the block's flag
// True if the threads whose turn comes later see a thread's writes. (Launches are ordered by all.)
[[nodiscard]] bool orders_memory(Relation relation);
// Numbers the sites. To be called after every change.
void prepare(Program& program);
// The reason why the program is not one of those described above; empty if it is.
[[nodiscard]] std::string problem(const Program& program);

// ---- where a kernel's own memory lies, in words from the address it was given ----

struct SiteRoom {
  uint32_t offset = 0;
  uint32_t trips = 1;  // of all loops around the site together
  uint32_t need = 0;   // of each child; of a recursive launch by itself: unused
};
struct Layout {
  std::vector<SiteRoom> sites;     // by Site::id
  std::vector<uint32_t> fixed;     // by kernel: all but the recursive launch's
  std::vector<uint32_t> branches;  // by kernel: launches of itself by one grid
  std::vector<uint32_t> flags;     // by kernel: the first of one word for each block, behind what threads own
  // For grids of the whole program, at the most.
  uint64_t grids = 0, threads = 0;
  [[nodiscard]] uint32_t need(uint32_t kernel, uint32_t depth) const;
};
Layout lay_out(const Program& program);

// The value that arrives through a parameter of that width.
uint32_t through(Width width, uint32_t value);

// The parameters of a kernel with their offsets: only those of Kernel::parameters that it needs.
struct Slot {
  Role role{};
  uint32_t value = 0;      // Values: index into Kernel::values
  uint32_t parameter = 0;  // number of the parameter, and where in it
  uint32_t inside = 0;
};
struct Formal {
  bool is_structure = false;
  uint32_t bytes = 0, align = 0, offset = 0;
};
struct Signature {
  std::vector<Formal> formals;
  std::vector<Slot> slots;
  [[nodiscard]] const Slot* find(Role role) const;
};
Signature signature(const Program& program, uint32_t kernel);
uint32_t bytes_of_width(Width width);

}  // namespace klap::differential::random
