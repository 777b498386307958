#include "analysis/graph/flow.h"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/lines.h"

namespace klap::analysis {

using ptx::Statement;
using ptx::StatementKind;

const char* to_string(BlockEnd end) {
  switch (end) {
    case BlockEnd::FallsThrough:
      return "falls through";
    case BlockEnd::Branch:
      return "bra";
    case BlockEnd::IndexedBranch:
      return "brx";
    case BlockEnd::Return:
      return "ret";
    case BlockEnd::Exit:
      return "exit";
    case BlockEnd::Trap:
      return "trap";
    case BlockEnd::NoReturnCall:
      return "call that does not return";
  }
  return "?";
}

namespace {

bool says_noreturn(const ptx::Module& module, ptx::TokenRange range) {
  for (uint32_t t = range.first; t < range.last; ++t) {
    if (module.is(t, ".noreturn")) return true;
  }
  return false;
}

}  // namespace

ControlFlow::ControlFlow(const ptx::Module& module, const ptx::Function& function)
    : module_(module), function_(function) {
  for (const ptx::Function& f : module.functions) {
    if (says_noreturn(module, f.attributes)) noreturn_.insert(f.name);
  }
  parents_.emplace(&function.body, nullptr);
  flatten(function.body);
  labelled_.resize(instructions_.size() + 1);
  for (const auto& [name, instruction] : labels_) labelled_[instruction] = true;
  find_blocks();
  connect();
  mark_reachable();
  find_cycles();
}

void ControlFlow::flatten(const Statement& block) {
  std::string_view last_label;
  for (const Statement& s : block.body) {
    switch (s.kind) {
      case StatementKind::Block:
        parents_.emplace(&s, &block);
        flatten(s);
        break;
      case StatementKind::Label:
        last_label = module_.text(s.head);
        if (!labels_.emplace(ScopedName(&block, last_label), static_cast<uint32_t>(instructions_.size()))
                 .second)
          throw module_.error_at(s.head, "label '" + std::string(last_label) + "' is defined twice");
        break;
      case StatementKind::Directive:
        if (module_.is(s.head, ".branchtargets") || module_.is(s.head, ".callprototype"))
          tables_.emplace(ScopedName(&block, last_label), &s);
        break;
      case StatementKind::Instruction:
        instructions_.push_back({&s, &block, 0});
        break;
    }
  }
}

BlockEnd ControlFlow::end_of(const FlatInstruction& instruction) const {
  const std::string_view opcode = module_.text(instruction.statement->head);
  if (opcode == "bra") return BlockEnd::Branch;
  if (opcode == "brx") return BlockEnd::IndexedBranch;
  if (opcode == "ret") return BlockEnd::Return;
  if (opcode == "exit") return BlockEnd::Exit;
  if (opcode == "trap") return BlockEnd::Trap;
  if (opcode == "call" && is_noreturn_call(instruction)) return BlockEnd::NoReturnCall;
  return BlockEnd::FallsThrough;
}

// PTX promises that a function (or prototype) marked .noreturn does not return to its caller, so no path
// leads on from such a call. Where the mark is not found the call is taken to return.
bool ControlFlow::is_noreturn_call(const FlatInstruction& call) const {
  const auto& operands = call.statement->operands;
  const size_t callee = !operands.empty() && module_.is(operands[0].first, "(") ? 1 : 0;
  if (callee >= operands.size()) return false;
  const bool indirect = operands.size() > callee + 1 && !module_.is(operands.back().first, "(");
  if (indirect) {
    const Statement* prototype = table(module_.text(operands.back().first), call.scope).first;
    return prototype != nullptr && module_.is(prototype->head, ".callprototype") &&
           says_noreturn(module_, prototype->tokens);
  }
  const std::string_view name = module_.text(operands[callee].first);
  return noreturn_.contains(name) && says_noreturn(module_, module_.find_function(name)->attributes);
}

void ControlFlow::find_blocks() {
  for (uint32_t i = 0; i < instructions_.size(); ++i) {
    const bool leader = i == 0 || labelled_[i] || blocks_.back().end != BlockEnd::FallsThrough;
    if (leader) blocks_.push_back({.first = i, .last = i});
    BasicBlock& block = blocks_.back();
    block.last = i + 1;
    block.end = end_of(instructions_[i]);
    block.conditional = block.end != BlockEnd::FallsThrough && instructions_[i].statement->predicated;
    instructions_[i].block = static_cast<uint32_t>(blocks_.size() - 1);
  }
}

const Statement* ControlFlow::enclosing(const Statement* scope) const {
  const auto found = parents_.find(scope);
  return found == parents_.end() ? nullptr : found->second;
}

uint32_t ControlFlow::resolve(uint32_t label_token, const Statement* scope) const {
  const std::string_view label = module_.text(label_token);
  for (; scope != nullptr; scope = enclosing(scope)) {
    const auto found = labels_.find(ScopedName(scope, label));
    if (found != labels_.end()) return found->second;
  }
  throw module_.error_at(label_token, "branch to unknown label '" + std::string(label) + "'");
}

std::pair<const Statement*, const Statement*> ControlFlow::table(std::string_view name,
                                                                 const Statement* scope) const {
  for (; scope != nullptr; scope = enclosing(scope)) {
    const auto found = tables_.find(ScopedName(scope, name));
    if (found != tables_.end()) return {found->second, scope};
  }
  return {nullptr, nullptr};
}

std::vector<uint32_t> ControlFlow::targets(const FlatInstruction& branch) const {
  const Statement& s = *branch.statement;
  std::vector<uint32_t> out;
  if (module_.is(s.head, "bra")) {
    if (s.operands.empty()) throw module_.error_at(s.head, "branch without a target");
    out.push_back(resolve(s.operands[0].first, branch.scope));
  } else if (module_.is(s.head, "brx") && s.operands.size() == 2) {
    // The labels of a list are those that are visible where the list stands.
    const auto [list, scope] = table(module_.text(s.operands[1].first), branch.scope);
    if (list == nullptr || !module_.is(list->head, ".branchtargets")) return out;
    for (uint32_t t = list->head + 1; t < list->tokens.last; ++t) {
      if (module_.tokens[t].kind == ptx::TokenKind::Identifier) out.push_back(resolve(t, scope));
    }
  }
  return out;
}

void ControlFlow::connect() {
  for (uint32_t b = 0; b < blocks_.size(); ++b) connect(b);
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    for (uint32_t to : blocks_[b].successors) blocks_[to].predecessors.push_back(b);
  }
}

void ControlFlow::connect(uint32_t b) {
  BasicBlock& block = blocks_[b];
  std::vector<uint32_t> jumps = targets(instructions_[block.last - 1]);
  if (block.end == BlockEnd::IndexedBranch && jumps.empty()) unknown_branch_ = true;
  const bool jump_only = block.end != BlockEnd::FallsThrough && !block.conditional;
  if (!jump_only) jumps.push_back(block.last);
  std::set<uint32_t> seen;  // a table often repeats a target
  for (uint32_t instruction : jumps) {
    if (instruction == instructions_.size()) {
      block.falls_off = block.exits_function = true;
    } else if (seen.insert(instructions_[instruction].block).second) {
      block.successors.push_back(instructions_[instruction].block);
    }
  }
  block.exits_function = block.exits_function || block.end == BlockEnd::Return ||
                         block.end == BlockEnd::Exit || block.end == BlockEnd::Trap ||
                         block.end == BlockEnd::NoReturnCall;
}

void ControlFlow::mark_reachable() {
  if (blocks_.empty()) return;
  std::vector<uint32_t> work{0};
  blocks_[0].reachable = true;
  while (!work.empty()) {
    const uint32_t b = work.back();
    work.pop_back();
    for (uint32_t to : blocks_[b].successors) {
      if (!blocks_[to].reachable) work.push_back(to);
      blocks_[to].reachable = true;
    }
  }
}

void ControlFlow::find_cycles() {
  components_ = strongly_connected(
      static_cast<uint32_t>(blocks_.size()), [this](uint32_t b) -> const auto& {
        return blocks_[b].successors;
      });
  cyclic_.resize(components_.count);
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    for (uint32_t to : blocks_[b].successors) {
      if (components_.of[to] == components_.of[b]) cyclic_[components_.of[b]] = true;
    }
  }
}

uint32_t ControlFlow::index_of(const Statement* statement) const {
  if (statement == nullptr) return npos;
  const auto found = std::lower_bound(
      instructions_.begin(), instructions_.end(), statement->tokens.first,
      [](const FlatInstruction& f, uint32_t token) { return f.statement->tokens.first < token; });
  if (found == instructions_.end() || found->statement != statement) return npos;
  return static_cast<uint32_t>(found - instructions_.begin());
}

bool ControlFlow::can_follow(uint32_t from, uint32_t to) const {
  if (unknown_branch_) return true;
  const uint32_t a = instructions_[from].block, b = instructions_[to].block;
  if (a == b && from < to) return true;
  const auto& component = components_.of;
  if (component[a] == component[b]) return cyclic_[component[a]];
  // Edges never lead to a larger component, so nothing below b's need be looked at.
  std::vector<bool> seen(blocks_.size());
  std::vector<uint32_t> work{a};
  while (!work.empty()) {
    const uint32_t at = work.back();
    work.pop_back();
    for (uint32_t next : blocks_[at].successors) {
      if (next == b) return true;
      if (seen[next] || component[next] < component[b]) continue;
      seen[next] = true;
      work.push_back(next);
    }
  }
  return false;
}

// ---- printing ----

namespace {

std::string block_list(const std::vector<uint32_t>& blocks) {
  std::string out;
  for (uint32_t b : blocks) out += fmt::format(" b{}", b);
  return out;
}

// Where control goes from a block: " -> b1 b2 exit".
std::string ways_on(const ControlFlow& flow, const BasicBlock& block) {
  std::string out = block_list(block.successors);
  if (block.exits_function) out += " exit";
  const bool unknown = flow.has_unknown_branch() && block.end == BlockEnd::IndexedBranch &&
                       block.successors.size() == (block.conditional ? 1 : 0);
  if (unknown) out += " unknown";
  return " ->" + out;
}

std::string how_it_ends(const BasicBlock& block) {
  std::string out = to_string(block.end);
  if (block.conditional) out = "conditional " + out;
  if (block.falls_off) out += ", runs off the end";
  return out;
}

// Text inside a double-quoted string of Graphviz.
std::string in_dot(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string dot_box(const ControlFlow& flow, uint32_t b, const ptx::LineNumbers& lines) {
  const BasicBlock& block = flow.blocks()[b];
  std::string text =
      fmt::format("b{}, line {}\\l", b, lines.of(flow.instructions()[block.first].statement->head));
  for (uint32_t i = block.first; i < block.last; ++i)
    text += in_dot(flow.module().compact(flow.instructions()[i].statement->tokens)) + "\\l";
  return fmt::format("  b{} [label=\"{}\"{}];\n", b, text, block.reachable ? "" : ", style=dashed");
}

}  // namespace

std::string print_flow(const ControlFlow& flow) {
  const ptx::LineNumbers lines(flow.module());
  std::string out;
  if (flow.has_unknown_branch())
    out += "unknown: a branch without a list of its targets; any path is possible\n";
  for (uint32_t b = 0; b < flow.blocks().size(); ++b) {
    const BasicBlock& block = flow.blocks()[b];
    const auto line = [&](uint32_t i) { return lines.of(flow.instructions()[i].statement->head); };
    out += fmt::format("b{} lines {}-{}: {},{}", b, line(block.first), line(block.last - 1),
                       how_it_ends(block), ways_on(flow, block));
    if (!block.predecessors.empty()) out += ", from" + block_list(block.predecessors);
    if (b == 0) out += ", entry";
    if (!block.reachable) out += flow.has_unknown_branch() ? ", reachable: unknown" : ", unreachable";
    out += '\n';
  }
  return out;
}

std::string print_flow_dot(const ControlFlow& flow) {
  const ptx::LineNumbers lines(flow.module());
  std::string out = fmt::format("digraph \"{}\" {{\n  node [shape=box, fontname=monospace];\n",
                                in_dot(flow.function().name));
  bool exit = false, unknown = false;
  std::string edges;
  for (uint32_t b = 0; b < flow.blocks().size(); ++b) {
    const BasicBlock& block = flow.blocks()[b];
    out += dot_box(flow, b, lines);
    for (uint32_t to : block.successors) {
      const bool falls = block.conditional && to == b + 1;
      edges += fmt::format("  b{} -> b{}{};\n", b, to, falls ? " [label=else]" : "");
    }
    if (block.exits_function) edges += fmt::format("  b{} -> exit;\n", b);
    exit = exit || block.exits_function;
    if (ways_on(flow, block).ends_with("unknown")) {
      edges += fmt::format("  b{} -> unknown [style=dotted];\n", b);
      unknown = true;
    }
  }
  if (exit) out += "  exit [shape=oval];\n";
  if (unknown) out += "  unknown [shape=oval, style=dotted];\n";
  return out + edges + "}\n";
}

}  // namespace klap::analysis
