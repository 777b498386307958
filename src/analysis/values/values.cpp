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
    first_ = launch;
    while (first_ > 0 && !begins_scope(first_)) --first_;
    last_ = launch;
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
  // The first instruction of the scope of the first call.
  [[nodiscard]] bool begins_scope(uint32_t index) const {
    return at(index).scope == site_.get_scope && (index == 0 || at(index - 1).scope != site_.get_scope);
  }

  [[nodiscard]] SiteOperand operand(uint32_t store, std::string_view text, uint32_t bits) const {
    return {values_.symbolic.value(store, text, bits), values_.uniformity.operand(store, text)};
  }

  // A dimension stands in a store to a parameter of one of the two calls.
  [[nodiscard]] SiteOperand dimension(const std::string& text) const {
    for (uint32_t i = first_; i <= last_; ++i) {
      const bool passes = at(i).scope == site_.get_scope || at(i).scope == site_.launch_scope;
      if (passes && stores(i, text)) return operand(i, text, 32);
    }
    return {};
  }

  // An argument stands in a store to the buffer.
  [[nodiscard]] SiteOperand argument(const Argument& argument) const {
    for (uint32_t i = first_; i <= last_; ++i) {
      if (!stores(i, argument.source)) continue;
      const auto address = parse_address(m_, at(i).statement->operands[0]);
      const bool buffer = address && address->base == site_.buffer && address->offset >= 0;
      const auto texts = components(m_, at(i).statement->operands[1]);
      for (size_t k = 0; buffer && k < texts.size(); ++k) {
        const auto offset = static_cast<uint64_t>(address->offset) + k * argument.bytes;
        if (offset == argument.offset && texts[k] == argument.source) {
          return operand(i, argument.source, 8 * argument.bytes);
        }
      }
    }
    return {};
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
  uint32_t first_ = 0, last_ = 0;  // instructions of the launch sequence
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
