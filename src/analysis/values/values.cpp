#include "analysis/values/values.h"

#include <fmt/format.h>

#include <algorithm>

namespace klap::analysis {
namespace {

using ptx::Statement;

// Evaluates operands where the launch sequence stores them.
class SiteReader {
 public:
  SiteReader(const Values& values, const Site& site)
      : values_(values), m_(values.flow.module()), site_(site) {}

  SiteValues read() {
    SiteValues out;
    const uint32_t launch = values_.flow.index_of(site_.launch_call);
    if (!site_.understood() || launch == ControlFlow::npos) return out;
    out.reached = values_.uniformity.reached(launch);
    for (size_t axis = 0; axis < 3; ++axis) {
      out.grid.at(axis) = dimension(site_.grid.at(axis));
      out.block.at(axis) = dimension(site_.block.at(axis));
    }
    out.shared = dimension(site_.shared);
    for (const Argument& argument : site_.arguments) {
      out.arguments.push_back({argument.offset, argument.bytes, this->argument(argument)});
    }
    return out;
  }

 private:
  [[nodiscard]] const FlatInstruction& at(uint32_t index) const { return values_.flow.instructions()[index]; }
  [[nodiscard]] SiteOperand operand(uint32_t store, std::string_view text, uint32_t bits) const {
    return {values_.symbolic.value(store, text, bits), values_.uniformity.operand(store, text)};
  }

  // A dimension stands in a store to a parameter of one of the two calls.
  [[nodiscard]] SiteOperand dimension(const std::string& text) const {
    for (const Statement* call : {site_.get_call, site_.launch_call}) {
      const uint32_t end = values_.flow.index_of(call);
      uint32_t i = end;
      while (i > 0 && at(i - 1).scope == at(end).scope) --i;
      for (; i < end; ++i) {
        if (stores(i, text)) return operand(i, text, 32);
      }
    }
    return {};
  }

  // An argument stands in a store to the buffer.
  [[nodiscard]] SiteOperand argument(const Argument& argument) const {
    return operand(values_.flow.index_of(argument.store), argument.source, 8 * argument.bytes);
  }

  [[nodiscard]] bool stores(uint32_t index, const std::string& text) const {
    const Statement& s = *at(index).statement;
    if (!m_.is(s.head, "st") || s.operands.size() != 2) return false;
    const auto texts = components(m_, s.operands[1]);
    return std::find(texts.begin(), texts.end(), text) != texts.end();
  }

  const Values& values_;
  const ptx::Module& m_;
  const Site& site_;
};

std::string text_of(const SiteOperand& operand) {
  return fmt::format("{} [{}]", to_string(operand.value), to_string(operand.uniform));
}

std::string text_of(const std::array<SiteOperand, 3>& dimensions) {
  return fmt::format("({}, {}, {})", text_of(dimensions[0]), text_of(dimensions[1]), text_of(dimensions[2]));
}

}  // namespace

SiteValues site_values(const Values& values, const Site& site) { return SiteReader(values, site).read(); }

std::string to_string(const SiteValues& site) {
  std::string out = fmt::format("reached by the same threads of each {}\n", to_string(site.reached));
  out += fmt::format("grid {}\nblock {}\nshared {}\n", text_of(site.grid), text_of(site.block),
                     text_of(site.shared));
  for (const SiteArgument& argument : site.arguments) {
    out += fmt::format("argument at {}, {} bytes: {}\n", argument.offset, argument.bytes,
                       text_of(argument.operand));
  }
  return out;
}

}  // namespace klap::analysis
