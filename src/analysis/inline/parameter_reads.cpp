#include "analysis/inline/parameter_reads.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "analysis/graph/dataflow.h"

namespace klap::analysis {
namespace {

using ptx::Module;
using ptx::Parameter;
using ptx::Statement;

// The strictest alignment that an access at a computed address may rely on.
constexpr uint32_t kMostAlign = 16;

bool is_parameter_load(const Module& m, const Statement& s) {
  if (!m.is(s.head, "ld") || s.operands.size() != 2) return false;
  return m.has_modifier(s, ".param") || m.has_modifier(s, ".param::entry");
}

class ReadFinder {
 public:
  ReadFinder(const Module& module, const ptx::Function& kernel) : m_(module) {
    for (const Parameter& p : kernel.parameters) parameters_[p.name] = &p;
    ptx::for_each_statement(kernel.body, [&](const Statement& s) {
      if (s.kind == ptx::StatementKind::Instruction) instruction(s);
    });
  }
  std::optional<std::vector<ParameterRead>> take() {
    if (leaves_) return std::nullopt;
    return std::move(reads_);
  }

 private:
  [[nodiscard]] const Parameter* find(std::string_view name) const {
    const auto found = parameters_.find(name);
    return found == parameters_.end() ? nullptr : found->second;
  }

  void instruction(const Statement& s) {
    if (is_parameter_load(m_, s)) {
      const auto address = parse_address(m_, s.operands[1]);
      const Parameter* p = address ? find(address->base) : nullptr;
      if (p != nullptr) return load(s, *p, address->offset);
    }
    for (uint32_t t = s.tokens.first; t < s.tokens.last; ++t) {
      if (const Parameter* p = find(m_.text(t))) address_of(*p);
    }
  }

  // An array of unstated length may end anywhere.
  void address_of(const Parameter& p) {
    leaves_ = leaves_ || p.bytes == 0;
    reads_.push_back({p.offset, p.bytes, std::max(p.align, kMostAlign)});
  }

  void load(const Statement& s, const Parameter& p, int64_t offset) {
    const auto parts = static_cast<uint32_t>(components(m_, s.operands[0]).size());
    const uint32_t bytes = parts * ptx::type_bytes(m_.text(s.modifiers.last - 1));
    leaves_ = leaves_ || bytes == 0 || offset < 0 || offset + bytes > p.bytes;
    reads_.push_back({static_cast<uint32_t>(p.offset + offset), bytes, bytes});
  }

  const Module& m_;
  std::map<std::string_view, const Parameter*> parameters_;
  std::vector<ParameterRead> reads_;
  bool leaves_ = false;
};

}  // namespace

std::optional<std::vector<ParameterRead>> parameter_reads(const Module& module, const ptx::Function& kernel) {
  return ReadFinder(module, kernel).take();
}

}  // namespace klap::analysis
