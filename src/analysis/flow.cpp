#include "analysis/flow.h"

#include <algorithm>

namespace klap::analysis {

using ptx::Statement;
using ptx::StatementKind;

ControlFlow::ControlFlow(const ptx::Module& module, const ptx::Function& function) : module_(module) {
  parents_.emplace_back(&function.body, nullptr);
  flatten(function.body);
  labelled_.resize(instructions_.size() + 1);
  for (const Label& label : labels_) labelled_[label.instruction] = true;
  find_blocks();
  connect();
  close();
}

void ControlFlow::flatten(const Statement& block) {
  std::string_view last_label;
  for (const Statement& s : block.body) {
    switch (s.kind) {
      case StatementKind::Block:
        parents_.emplace_back(&s, &block);
        flatten(s);
        break;
      case StatementKind::Label:
        last_label = module_.text(s.head);
        labels_.push_back({last_label, &block, static_cast<uint32_t>(instructions_.size())});
        break;
      case StatementKind::Directive:
        if (module_.is(s.head, ".branchtargets")) {
          TargetList list{last_label, {}};
          for (uint32_t t = s.head + 1; t < s.tokens.last; ++t) {
            if (module_.tokens[t].kind == ptx::TokenKind::Identifier) list.labels.push_back(module_.text(t));
          }
          target_lists_.push_back(std::move(list));
        }
        break;
      case StatementKind::Instruction:
        instructions_.push_back({&s, &block, 0});
        break;
    }
  }
}

bool ControlFlow::never_falls_through(const Statement& s) const {
  const std::string_view opcode = module_.text(s.head);
  return !s.predicated &&
         (opcode == "bra" || opcode == "brx" || opcode == "ret" || opcode == "exit" || opcode == "trap");
}

bool ControlFlow::ends_block(const Statement& s) const {
  const std::string_view opcode = module_.text(s.head);
  return opcode == "bra" || opcode == "brx" || opcode == "ret" || opcode == "exit" || opcode == "trap";
}

void ControlFlow::find_blocks() {
  for (uint32_t i = 0; i < instructions_.size(); ++i) {
    const bool leader = i == 0 || labelled_[i] || ends_block(*instructions_[i - 1].statement);
    if (leader) blocks_.push_back({i, i, {}});
    blocks_.back().last = i + 1;
    instructions_[i].block = static_cast<uint32_t>(blocks_.size() - 1);
  }
}

uint32_t ControlFlow::resolve(std::string_view label, const FlatInstruction& branch) const {
  for (const Statement* scope = branch.scope; scope != nullptr;) {
    for (const Label& candidate : labels_) {
      if (candidate.scope == scope && candidate.name == label) return candidate.instruction;
    }
    const auto up =
        std::find_if(parents_.begin(), parents_.end(), [&](const auto& p) { return p.first == scope; });
    scope = up == parents_.end() ? nullptr : up->second;
  }
  throw module_.error_at(branch.statement->head, "branch to unknown label '" + std::string(label) + "'");
}

std::vector<uint32_t> ControlFlow::targets(const FlatInstruction& branch) const {
  const Statement& s = *branch.statement;
  std::vector<uint32_t> out;
  if (module_.is(s.head, "bra")) {
    if (s.operands.empty()) throw module_.error_at(s.head, "branch without a target");
    out.push_back(resolve(module_.text(s.operands[0].first), branch));
  } else if (module_.is(s.head, "brx") && s.operands.size() == 2) {
    const std::string_view list = module_.text(s.operands[1].first);
    const auto found = std::find_if(target_lists_.begin(), target_lists_.end(),
                                    [&](const TargetList& candidate) { return candidate.name == list; });
    if (found != target_lists_.end()) {
      for (std::string_view label : found->labels) out.push_back(resolve(label, branch));
    }
  }
  return out;
}

void ControlFlow::connect() {
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    const FlatInstruction& last = instructions_[blocks_[b].last - 1];
    auto& successors = blocks_[b].successors;
    const std::vector<uint32_t> jumps = targets(last);
    if (module_.is(last.statement->head, "brx") && jumps.empty()) unknown_branch_ = true;
    for (uint32_t instruction : jumps) {
      if (instruction < instructions_.size()) successors.push_back(instructions_[instruction].block);
    }
    if (!never_falls_through(*last.statement) && b + 1 < blocks_.size()) successors.push_back(b + 1);
  }
}

void ControlFlow::close() {
  const size_t n = blocks_.size();
  reaches_.assign(n, std::vector<bool>(n));
  for (uint32_t from = 0; from < n; ++from) {
    std::vector<uint32_t> work(blocks_[from].successors);
    while (!work.empty()) {
      const uint32_t b = work.back();
      work.pop_back();
      if (reaches_[from][b]) continue;
      reaches_[from][b] = true;
      work.insert(work.end(), blocks_[b].successors.begin(), blocks_[b].successors.end());
    }
  }
}

uint32_t ControlFlow::index_of(const Statement* statement) const {
  for (uint32_t i = 0; i < instructions_.size(); ++i) {
    if (instructions_[i].statement == statement) return i;
  }
  return npos;
}

bool ControlFlow::can_follow(uint32_t from, uint32_t to) const {
  if (unknown_branch_) return true;
  const uint32_t a = instructions_[from].block, b = instructions_[to].block;
  return (a == b && from < to) || reaches_[a][b];
}

}  // namespace klap::analysis
