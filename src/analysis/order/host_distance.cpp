#include "analysis/order/host_distance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "analysis/expressions/expression_ranges.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

// More ways than this, or steps to find them, are too many.
constexpr size_t kMostWays = 16;
constexpr size_t kMostSteps = 2000;
constexpr uint32_t kPointerBytes = 8;
// The host reckons with so many bytes around each pointer in any case (runtime/parents/pointers_apart.cpp).
constexpr int64_t kWithinElement = 16;

// A sum of products, by their factors in order. Products whose coefficients cancel out are left in.
using Sum = std::map<std::vector<HostFactor>, uint64_t>;

Sum constant(uint64_t value) { return {{{}, value}}; }

Sum product_of(const Sum& a, const Sum& b) {
  Sum out;
  for (const auto& [x, m] : a) {
    for (const auto& [y, n] : b) {
      std::vector<HostFactor> factors = x;
      factors.insert(factors.end(), y.begin(), y.end());
      std::ranges::sort(factors);
      out[factors] += m * n;
    }
  }
  return out;
}

// The part of a value that is known: one sum for each way in which it may have been computed.
struct Part {
  std::vector<Sum> ways;
  bool is_whole = false;  // the sum is all of the value
};

// Nothing of the value comes from the host.
Part none() { return {{Sum()}, false}; }

class DistanceReader {
 public:
  // Whether there are too many ways is known afterwards.
  [[nodiscard]] bool gives_up() const { return gives_up_; }

  Part read(const DistanceScope& in, const Expr& e, bool as_signed_number) {
    if (++steps_ > kMostSteps) gives_up_ = true;
    if (!e.known() || gives_up_) return none();
    switch (e->kind) {
      case ExprKind::Constant:
        return {{constant(extended(e->value, e->bits, as_signed_number))}, true};
      case ExprKind::Parameter:
        return parameter(in, *e, as_signed_number);
      case ExprKind::Sum:
        return sum(in, e, as_signed_number);
      case ExprKind::SignExtend:
        return read(in, e->operands[0], true);
      case ExprKind::ZeroExtend:
        return read(in, e->operands[0], false);
      case ExprKind::Truncate:
      case ExprKind::ToGeneric:
      case ExprKind::FromGeneric:
        return read(in, e->operands[0], as_signed_number);
      case ExprKind::And:
        return aligned(in, e, as_signed_number);
      case ExprKind::Merged:
        return merged(in, *e, as_signed_number);
      default:
        return none();
    }
  }

 private:
  static uint64_t extended(uint64_t value, uint32_t bits, bool is_signed) {
    return is_signed ? static_cast<uint64_t>(as_signed(value, bits)) : value;
  }

  Part parameter(const DistanceScope& in, const ExprNode& e, bool is_signed) {
    const auto offset = static_cast<uint32_t>(e.value);
    if (in.launched_by == nullptr) return {{{{{{offset, e.bits / 8, is_signed}}, 1}}}, true};
    const DistanceScope launcher{in.launcher, nullptr, nullptr};
    for (const Argument& argument : in.launched_by->arguments) {
      if (argument.offset != offset || argument.bytes * 8 != e.bits || argument.store == nullptr) continue;
      const uint32_t store = in.launcher->flow.index_of(argument.store);
      return read(launcher, in.launcher->values().symbolic.read(store, argument.source, e.bits), is_signed);
    }
    return none();
  }

  Part sum(const DistanceScope& in, const Expr& e, bool is_signed) {
    Part out{{Sum()}, true};
    for (const Term& term : e->terms) {
      Part of_term{{constant(extended(term.coefficient, e->bits, true))}, true};
      for (const Expr& factor : term.factors) of_term = times(of_term, read(in, factor, is_signed));
      // A product with a part that the host does not know counts elements.
      if (term.factors.size() > 1 && !of_term.is_whole) of_term = none();
      out = plus(out, of_term);
    }
    return out;
  }

  // A value that is rounded down to a multiple.
  Part aligned(const DistanceScope& in, const Expr& e, bool is_signed) {
    for (const Expr& operand : e->operands) {
      if (!operand->range.never_negative() || !operand.as_constant())
        return rough(read(in, operand, is_signed));
    }
    return none();
  }

  // A register that one of several instructions has written. A loop's step leads on from the others, within
  // the array.
  Part merged(const DistanceScope& in, const ExprNode& e, bool is_signed) {
    const Values& values = in.facts->values();
    const auto instruction = static_cast<uint32_t>(e.value);
    const uint32_t reg = values.registers.find(instruction, e.name);
    if (reg == VirtualRegisters::kNone) return none();
    Part out{{}, false};
    for (const uint32_t definition : values.reaching.origins(instruction, reg).definitions) {
      const auto same = [&](const Place& place) {
        return place.in == in.facts && place.definition == definition && place.reg == reg;
      };
      if (const auto step = std::ranges::find_if(under_way_, same); step != under_way_.end()) {
        step->is_step = true;
        continue;
      }
      under_way_.push_back({in.facts, definition, reg});
      const Part way = read(in, values.symbolic.written(definition, reg), is_signed);
      const bool is_step = under_way_.back().is_step;
      under_way_.pop_back();
      if (is_step) continue;
      for (const Sum& sum : way.ways) add_way(out, sum);
    }
    return out.ways.empty() ? none() : out;
  }

  static Part rough(Part part) {
    part.is_whole = false;
    return part;
  }

  void add_way(Part& to, const Sum& way) {
    if (std::ranges::find(to.ways, way) != to.ways.end()) return;
    to.ways.push_back(way);
    if (to.ways.size() > kMostWays) gives_up_ = true;
  }

  Part plus(const Part& a, const Part& b) {
    Part out{{}, a.is_whole && b.is_whole};
    for (const Sum& x : a.ways) {
      for (const Sum& y : b.ways) {
        if (gives_up_) return none();
        Sum both = x;
        for (const auto& [factors, coefficient] : y) both[factors] += coefficient;
        add_way(out, both);
      }
    }
    return out;
  }

  Part times(const Part& a, const Part& b) {
    Part out{{}, a.is_whole && b.is_whole};
    for (const Sum& x : a.ways) {
      for (const Sum& y : b.ways) {
        if (gives_up_) return none();
        add_way(out, product_of(x, y));
      }
    }
    return out;
  }

  struct Place {
    const FunctionFacts* in = nullptr;
    uint32_t definition = 0, reg = 0;
    bool is_step = false;
  };
  std::vector<Place> under_way_;
  size_t steps_ = 0;
  bool gives_up_ = false;
};

}  // namespace

std::optional<std::set<HostDistance>> host_distances(const DistanceScope& in, const Expr& address,
                                                     uint32_t pointer) {
  DistanceReader reader;
  const Part part = reader.read(in, address, false);
  if (reader.gives_up()) return std::nullopt;
  std::map<HostDistance, std::set<int64_t>> constants;  // by the rest of their sums
  for (Sum sum : part.ways) {
    // Other ways start from other pointers.
    const auto start = std::ranges::find_if(sum, [&](const auto& product) {
      const auto& [factors, coefficient] = product;
      return coefficient == 1 && factors.size() == 1 && factors[0].parameter_offset == pointer &&
             factors[0].bytes == kPointerBytes;
    });
    if (start == sum.end()) continue;
    sum.erase(start);
    const auto constant_part = static_cast<int64_t>(std::exchange(sum[{}], 0));
    HostDistance rest;
    for (const auto& [factors, coefficient] : sum)
      if (coefficient != 0) rest.push_back({factors, coefficient});
    constants[rest].insert(constant_part);
  }
  std::set<HostDistance> out;
  for (const auto& [rest, of_rest] : constants) {
    // Everything between the least and the most is in their allocation.
    for (const int64_t each : {*of_rest.begin(), *of_rest.rbegin()}) {
      HostDistance distance = rest;
      if (std::abs(each) > kWithinElement) distance.push_back({{}, static_cast<uint64_t>(each)});
      if (!distance.empty()) out.insert(std::move(distance));
    }
  }
  return out;
}

std::string to_string(const HostDistance& distance) {
  std::string out;
  for (const auto& [factors, coefficient] : distance) {
    const auto value = static_cast<int64_t>(coefficient);
    const bool is_negative = value < 0;
    out += out.empty() ? (is_negative ? "-" : "") : is_negative ? " - " : " + ";
    const uint64_t amount = is_negative ? 0 - coefficient : coefficient;
    std::vector<std::string> parts;
    if (amount != 1 || factors.empty()) parts.push_back(fmt::format("{}", amount));
    for (const HostFactor& factor : factors)
      parts.push_back(fmt::format("p[{}:{}]", factor.parameter_offset, factor.bytes));
    out += fmt::format("{}", fmt::join(parts, "*"));
  }
  return out;
}

}  // namespace klap::analysis
