#include "analysis/inline/copy_loops.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

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

// The instructions of one loop, in the order in which nvcc writes them.
struct Shape {
  const Statement* label = nullptr;
  std::vector<const Statement*> instructions;  // all up to the branch
  bool is_indexed = false;                     // computes its places from the count
};
// A loop that moves its places on: the three additions stand in any order.
constexpr std::string_view kMoving[] = {"ld", "st", "add", "add", "add", "setp", "bra"};
constexpr size_t kLoad = 0, kStore = 1;
// A loop that computes its places.
constexpr std::string_view kIndexed[] = {"mul", "add", "ld", "add", "st", "add", "setp", "bra"};
constexpr size_t kMultiply = 0, kAddFrom = 1, kIndexedLoad = 2, kAddTo = 3, kIndexedStore = 4, kAddCount = 5;

constexpr size_t operands_of(std::string_view opcode) {
  if (opcode == "bra") return 1;
  return opcode == "ld" || opcode == "st" ? 2 : 3;
}

bool are(const Module& m, std::span<const Statement* const> all, std::span<const std::string_view> opcodes) {
  return std::ranges::equal(all, opcodes, [&](const Statement* s, std::string_view opcode) {
    return m.is(s->head, opcode) && s->operands.size() == operands_of(opcode);
  });
}

// The loop that a block's statements from a label on look like; it is then examined closely.
std::optional<Shape> shape_at(const Module& m, const ptx::View<Statement>& block, size_t label) {
  Shape shape{&block[label], {}};
  auto& all = shape.instructions;
  for (size_t i = label + 1; i < block.size() && all.size() < std::size(kIndexed); ++i) {
    const Statement& s = block[i];
    if (s.kind == StatementKind::Directive) continue;
    if (s.kind != StatementKind::Instruction) break;
    all.push_back(&s);
  }
  shape.is_indexed = are(m, all, kIndexed);
  if (!shape.is_indexed) {
    all.resize(std::min(all.size(), std::size(kMoving)));
    if (!are(m, all, kMoving)) return std::nullopt;
  }
  if (!m.is(all.back()->operands[0].first, m.text(shape.label->head))) return std::nullopt;
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
    loop.load = all[shape.is_indexed ? kIndexedLoad : kLoad];
    loop.store = all[shape.is_indexed ? kIndexedStore : kStore];
    loop.branch = all.back();
    block_ = flow_.instructions()[flow_.index_of(loop.load)].block;
    if (!stands_alone(loop, all) || !is_copy(loop)) return std::nullopt;
    const auto times = counted(all);
    if (!times) return std::nullopt;
    loop.times = *times;
    const bool is_found = shape.is_indexed ? has_computed_places(loop, all) : has_moving_places(loop, all);
    return is_found ? std::optional(std::move(loop)) : std::nullopt;
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

  [[nodiscard]] std::string_view count_of(const std::vector<const Statement*>& all) const {
    return m_.text(all[all.size() - 2]->operands[1].first);
  }

  // Additions of the loop move both places on.
  bool has_moving_places(CopyLoop& loop, const std::vector<const Statement*>& all) {
    const auto from = parse_address(m_, loop.load->operands[1]),
               to = parse_address(m_, loop.store->operands[0]);
    if (!from || !to) return false;
    const auto from_step = step_of(all, from->base), to_step = step_of(all, to->base);
    const std::string_view count = count_of(all);
    const bool are_three = from->base != to->base && from->base != count && to->base != count;
    if (!from_step || !to_step || !are_three) return false;
    loop.from = {std::string(from->base), from->offset, *from_step};
    loop.to = {std::string(to->base), to->offset, *to_step};
    const Statement* const from_begin = begun_by(from->base);
    const Statement* const to_begin = begun_by(to->base);
    if (from_begin == nullptr || to_begin == nullptr || !goes_to_buffer(loop, *to_begin)) return false;
    read_from_parameter(loop, *from_begin);
    loop.beginnings.push_back(to_begin);
    return true;
  }

  // The count, times the size of an element, is added to where both sides begin.
  bool has_computed_places(CopyLoop& loop, const std::vector<const Statement*>& all) const {
    const Statement& multiply = *all[kMultiply];
    const std::string_view count = count_of(all);
    const auto step = ptx::integer_value(m_.text(multiply.operands[2].first));
    const bool is_product = m_.has_modifier(multiply, ".wide") && m_.is(multiply.operands[1].first, count) &&
                            multiply.operands[2].size() == 1 && step && *step <= kMostElements;
    if (!is_product || !is_of_round(written_by(multiply)) || written_by(*all[kAddCount]) != count)
      return false;
    const auto place = [&](const ptx::TokenRange& operand, size_t add) -> std::optional<CopyLoop::Place> {
      const auto address = parse_address(m_, operand);
      const Statement& sum = *all[add];
      const std::string_view base = m_.text(sum.operands[1].first);
      const bool is_sum = address && address->base == written_by(sum) && is_of_round(address->base) &&
                          m_.is(sum.operands[2].first, written_by(multiply)) && stays(base);
      if (!is_sum) return std::nullopt;
      return CopyLoop::Place{std::string(base), address->offset, static_cast<int64_t>(*step)};
    };
    const auto from = place(loop.load->operands[1], kAddFrom), to = place(loop.store->operands[0], kAddTo);
    if (!from || !to || !is_buffer(to->base)) return false;
    loop.from = *from;
    loop.to = *to;
    return true;
  }

  // A register that one instruction sets, which is in the loop, and no code outside reads.
  [[nodiscard]] bool is_of_round(std::string_view name) const {
    return !data_.is_ambiguous(name) && data_.definitions(name).size() == 1 &&
           flow_.instructions()[data_.definitions(name).front()].block == block_ && only_here(name);
  }
  // A register that the loop does not set.
  [[nodiscard]] bool stays(std::string_view name) const {
    const auto& definitions = data_.definitions(name);
    return !data_.is_ambiguous(name) && !definitions.empty() &&
           std::ranges::none_of(definitions,
                                [&](uint32_t d) { return flow_.instructions()[d].block == block_; });
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
    for (const Statement* const s : all) {
      const Statement& add = *s;
      if (!m_.is(add.head, "add") || written_by(add) != name) continue;
      if (step || !m_.is(add.operands[1].first, name) || add.operands[2].size() != 1) return std::nullopt;
      const uint64_t by = ptx::integer_value(m_.text(add.operands[2].first)).value_or(kMostElements + 1);
      if (by > kMostElements) return std::nullopt;
      step = static_cast<int64_t>(by);
    }
    return step;
  }

  // The loop's trip count: it counts from 0 in steps of 1 while below a constant.
  [[nodiscard]] std::optional<uint32_t> counted(const std::vector<const Statement*>& all) const {
    const Statement& compare = *all[all.size() - 2];
    const std::string_view count = count_of(all), predicate = written_by(compare);
    const auto most = data_.constant(m_.text(compare.operands[2].first));
    const bool is_below = m_.has_modifier(compare, ".lt") &&
                          (m_.has_modifier(compare, ".u32") || m_.has_modifier(compare, ".s32"));
    if (!is_below || compare.operands[0].size() != 1 || compare.operands[2].size() != 1 || !most ||
        *most == 0 || *most > kMostElements)
      return std::nullopt;
    if (!m_.is(all.back()->predicate, predicate) || data_.is_ambiguous(predicate) || !only_here(predicate))
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

  // A register with a call's result, as a launch's buffer is.
  [[nodiscard]] bool is_buffer(std::string_view name) const {
    const auto& definitions = data_.definitions(name);
    if (data_.is_ambiguous(name) || definitions.size() != 1) return false;
    const Statement& result = *flow_.instructions()[definitions.front()].statement;
    return m_.is(result.head, "ld") && m_.has_modifier(result, ".param");
  }

  // True if the loop stores to a buffer. The buffer becomes the place's base.
  bool goes_to_buffer(CopyLoop& loop, const Statement& begin) {
    if (!m_.is(begin.head, "mov") || begin.operands.size() != 2 || begin.operands[1].size() != 1)
      return false;
    if (!only_here(m_.text(begin.operands[0].first))) return false;  // the instruction goes
    const std::string_view buffer = m_.text(begin.operands[1].first);
    if (!is_buffer(buffer)) return false;
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
