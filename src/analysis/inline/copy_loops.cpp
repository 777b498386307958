#include "analysis/inline/copy_loops.h"

#include <algorithm>
#include <optional>

#include "analysis/graph/dataflow.h"
#include "analysis/graph/flow.h"
#include "analysis/inline/inlining.h"

namespace klap::analysis {

namespace {

using ptx::Function;
using ptx::Module;
using ptx::Statement;
using ptx::StatementKind;

// A kernel's parameters have at most so many bytes, and a copy of them so many elements.
constexpr uint64_t kMostElements = 4096;

// The instructions of one loop, in the order in which nvcc writes them; the three additions in any.
struct Shape {
  const Statement* label = nullptr;
  std::vector<const Statement*> instructions;  // all up to the branch
};
constexpr size_t kInstructions = 7, kLoad = 0, kStore = 1, kFirstAdd = 2, kCompare = 5, kBranch = 6;

bool is_instruction(const Module& m, const Statement& s, std::string_view opcode, size_t operands) {
  return m.is(s.head, opcode) && s.operands.size() == operands;
}

// The loop that a block's statements from a label on look like; it is then examined closely.
std::optional<Shape> shape_at(const Module& m, const ptx::View<Statement>& block, size_t label) {
  Shape shape{&block[label], {}};
  for (size_t i = label + 1; i < block.size() && shape.instructions.size() < kInstructions; ++i) {
    const Statement& s = block[i];
    if (s.kind == StatementKind::Directive) continue;
    if (s.kind != StatementKind::Instruction) return std::nullopt;
    shape.instructions.push_back(&s);
  }
  const auto& all = shape.instructions;
  if (all.size() != kInstructions || !is_instruction(m, *all[kLoad], "ld", 2) ||
      !is_instruction(m, *all[kStore], "st", 2) || !is_instruction(m, *all[kCompare], "setp", 3) ||
      !is_instruction(m, *all[kBranch], "bra", 1))
    return std::nullopt;
  for (size_t i = kFirstAdd; i < kCompare; ++i)
    if (!is_instruction(m, *all[i], "add", 3)) return std::nullopt;
  if (!m.is(all[kBranch]->operands[0].first, m.text(shape.label->head))) return std::nullopt;
  return shape;
}

void find_shapes(const Module& m, const Statement& block, std::vector<Shape>& out) {
  for (size_t i = 0; i < block.body.size(); ++i) {
    const Statement& s = block.body[i];
    if (s.kind == StatementKind::Block) find_shapes(m, s, out);
    if (s.kind != StatementKind::Label) continue;
    if (auto shape = shape_at(m, block.body, i)) out.push_back(std::move(*shape));
  }
}

class Finder {
 public:
  Finder(const Module& module, const Function& function)
      : m_(module),
        function_(function),
        flow_(module, function),
        data_(module, function, flow_),
        registers_(module, function) {}

  std::optional<CopyLoop> at(const Shape& shape) {
    const auto& all = shape.instructions;
    CopyLoop loop;
    loop.label = shape.label;
    loop.load = all[kLoad];
    loop.store = all[kStore];
    loop.branch = all[kBranch];
    block_ = flow_.instructions()[flow_.index_of(loop.load)].block;
    if (!stands_alone(loop, all) || !is_copy(loop)) return std::nullopt;
    const auto from = parse_address(m_, loop.load->operands[1]),
               to = parse_address(m_, loop.store->operands[0]);
    if (!from || !to) return std::nullopt;
    const auto times = counted(all);
    const auto from_step = step_of(all, from->base), to_step = step_of(all, to->base);
    const std::string_view count = m_.text(all[kCompare]->operands[1].first);
    const bool are_three = from->base != to->base && from->base != count && to->base != count;
    if (!times || !from_step || !to_step || !are_three) return std::nullopt;
    loop.times = *times;
    loop.from = {std::string(from->base), from->offset, *from_step};
    loop.to = {std::string(to->base), to->offset, *to_step};
    const Statement* const from_begin = begun_by(from->base);
    const Statement* const to_begin = begun_by(to->base);
    if (from_begin == nullptr || to_begin == nullptr || !goes_to_buffer(loop, *to_begin)) return std::nullopt;
    read_from_parameter(loop, *from_begin);
    loop.beginnings.push_back(to_begin);
    return loop;
  }

 private:
  [[nodiscard]] std::string_view written_by(const Statement& s) const { return m_.text(s.operands[0].first); }

  // Only its own branch and one other block lead into the loop, the latter by going on in the text.
  [[nodiscard]] bool stands_alone(const CopyLoop& loop, const std::vector<const Statement*>& all) const {
    if (flow_.has_unknown_branch()) return false;
    for (const Statement* s : all) {
      if (flow_.instructions()[flow_.index_of(s)].block != block_) return false;
      if (s->predicated != (s == loop.branch)) return false;
    }
    const BasicBlock& block = flow_.blocks()[block_];
    const bool whole =
        block.first == flow_.index_of(all.front()) && block.last == flow_.index_of(all.back()) + 1;
    if (!whole || loop.branch->predicate_negated || block.predecessors.size() != 2 || block_ == 0)
      return false;
    const BasicBlock& ahead = flow_.blocks()[block_ - 1];
    const bool falls_in = std::ranges::count(block.predecessors, block_ - 1) == 1 &&
                          (ahead.end == BlockEnd::FallsThrough || ahead.conditional);
    if (!falls_in || std::ranges::count(block.predecessors, block_) != 1) return false;
    const Statement& last = *flow_.instructions()[ahead.last - 1].statement;
    if (ahead.end == BlockEnd::Branch && m_.is(last.operands[0].first, m_.text(loop.label->head)))
      return false;
    return true;
  }

  // Whether control cannot come back to the loop.
  [[nodiscard]] bool runs_once() const {
    const auto& of = flow_.components().of;
    return std::ranges::count(of, of[block_]) == 1;
  }

  // True if the load and the store copy one element, whose registers no other code uses.
  bool is_copy(CopyLoop& loop) {
    const Statement& load = *loop.load;
    if (!is_plain(load) || !is_plain(*loop.store) || m_.has_modifier(*loop.store, ".local")) return false;
    const auto loaded = components(m_, load.operands[0]), stored = components(m_, loop.store->operands[1]);
    if (loaded != stored) return false;
    for (const std::string& element : loaded) {
      const uint32_t bits = registers_.of(element);
      if (bits == 0 || (loop.register_bits != 0 && bits != loop.register_bits)) return false;
      loop.register_bits = bits;
      if (data_.is_ambiguous(element) || data_.definitions(element).size() != 1 || !only_here(element))
        return false;
    }
    return true;
  }

  // A state space, a vector and a type, and nothing said about order or caches.
  [[nodiscard]] bool is_plain(const Statement& s) const {
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      const std::string_view modifier = m_.text(t);
      const bool known = modifier == ".param" || modifier == ".global" || modifier == ".local" ||
                         modifier == ".const" || modifier == ".v2" || modifier == ".v4" ||
                         ptx::type_bytes(modifier) != 0;
      if (!known) return false;
    }
    return true;
  }

  // Nothing outside the loop reads it.
  [[nodiscard]] bool only_here(std::string_view name) const {
    return std::ranges::all_of(data_.uses(name),
                               [&](uint32_t use) { return flow_.instructions()[use].block == block_; });
  }
  // True if no code reads the value that the loop leaves in it.
  [[nodiscard]] bool is_done_with(std::string_view name) const {
    const uint32_t branch = flow_.blocks()[block_].last - 1;
    return std::ranges::all_of(data_.uses(name), [&](uint32_t use) {
      return flow_.instructions()[use].block == block_ || !flow_.can_follow(branch, use);
    });
  }

  // The step by which the loop's additions move a register on: exactly one addition, of a constant.
  [[nodiscard]] std::optional<int64_t> step_of(const std::vector<const Statement*>& all,
                                               std::string_view name) const {
    std::optional<int64_t> step;
    for (size_t i = kFirstAdd; i < kCompare; ++i) {
      const Statement& add = *all[i];
      if (written_by(add) != name) continue;
      if (step || !m_.is(add.operands[1].first, name) || add.operands[2].size() != 1) return std::nullopt;
      const uint64_t by = ptx::integer_value(m_.text(add.operands[2].first)).value_or(kMostElements + 1);
      if (by > kMostElements) return std::nullopt;
      step = static_cast<int64_t>(by);
    }
    return step;
  }

  // The loop's trip count: it counts from 0 in steps of 1 while below a constant.
  [[nodiscard]] std::optional<uint32_t> counted(const std::vector<const Statement*>& all) const {
    const Statement& compare = *all[kCompare];
    const std::string_view count = m_.text(compare.operands[1].first), predicate = written_by(compare);
    const auto most = data_.constant(m_.text(compare.operands[2].first));
    const bool is_below = m_.has_modifier(compare, ".lt") &&
                          (m_.has_modifier(compare, ".u32") || m_.has_modifier(compare, ".s32"));
    if (!is_below || compare.operands[0].size() != 1 || compare.operands[2].size() != 1 || !most ||
        *most == 0 || *most > kMostElements)
      return std::nullopt;
    if (!m_.is(all[kBranch]->predicate, predicate) || data_.is_ambiguous(predicate) || !only_here(predicate))
      return std::nullopt;
    const Statement* const begin = begun_by(count);
    if (step_of(all, count) != 1 || begin == nullptr || !m_.is(begin->head, "mov")) return std::nullopt;
    if (begin->operands[1].size() != 1 || ptx::integer_value(m_.text(begin->operands[1].first)) != 0)
      return std::nullopt;
    return static_cast<uint32_t>(*most);
  }

  // The one instruction outside that sets a register of the loop, whose last value no code needs. It must run
  // each time that control comes to the loop, if control can come back.
  [[nodiscard]] const Statement* begun_by(std::string_view name) const {
    const auto& definitions = data_.definitions(name);
    if (data_.is_ambiguous(name) || definitions.size() != 2 || !is_done_with(name)) return nullptr;
    const Statement* found = nullptr;
    for (const uint32_t definition : definitions) {
      const FlatInstruction& i = flow_.instructions()[definition];
      const bool is_ahead = i.block == block_ - 1 || (i.block != block_ && runs_once());
      if (is_ahead && !i.statement->predicated) found = i.statement;
    }
    return found;
  }

  // True if the loop stores to a buffer that a call has returned, as a launch's buffer is. The buffer becomes
  // the place's base.
  bool goes_to_buffer(CopyLoop& loop, const Statement& begin) {
    if (!m_.is(begin.head, "mov") || begin.operands.size() != 2 || begin.operands[1].size() != 1)
      return false;
    if (!only_here(m_.text(begin.operands[0].first))) return false;  // the instruction goes
    const std::string_view buffer = m_.text(begin.operands[1].first);
    const auto& definitions = data_.definitions(buffer);
    if (data_.is_ambiguous(buffer) || definitions.size() != 1) return false;
    const Statement& result = *flow_.instructions()[definitions.front()].statement;
    if (!m_.is(result.head, "ld") || !m_.has_modifier(result, ".param")) return false;
    loop.to.base = buffer;
    return true;
  }

  // A parameter that is read by its address is read by its name.
  void read_from_parameter(CopyLoop& loop, const Statement& begin) {
    if (!m_.has_modifier(*loop.load, ".param") || !m_.is(begin.head, "mov")) return;
    const std::string_view name = m_.text(begin.operands[1].first);
    if (begin.operands[1].size() != 1 || !only_here(loop.from.base) ||
        std::ranges::find(function_.parameters, name, &ptx::Parameter::name) == function_.parameters.end())
      return;
    loop.from.base = name;
    loop.beginnings.push_back(&begin);
  }

  const Module& m_;
  const Function& function_;
  const ControlFlow flow_;
  const DataFlow data_;
  const RegisterBits registers_;
  uint32_t block_ = 0;
};

}  // namespace

std::vector<CopyLoop> find_copy_loops(const Module& module, const Function& function) {
  std::vector<Shape> shapes;
  find_shapes(module, function.body, shapes);
  std::vector<CopyLoop> found;
  if (shapes.empty()) return found;
  Finder finder(module, function);
  for (const Shape& shape : shapes) {
    if (auto loop = finder.at(shape)) found.push_back(std::move(*loop));
  }
  return found;
}

}  // namespace klap::analysis
