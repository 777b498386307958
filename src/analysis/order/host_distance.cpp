#include "analysis/order/host_distance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

#include "analysis/expressions/expression_ranges.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

// More ways than this, or steps to find them, are too many. So is a larger divisor.
constexpr size_t kMostWays = 16;
constexpr size_t kMostSteps = 2000;
constexpr uint64_t kLargestDivisor = 1 << 20;
constexpr uint32_t kAddressBytes = 8;
// The host reckons with so many bytes around each pointer in any case (runtime/parents/pointers_apart.cpp).
constexpr uint64_t kWithinElement = 16;

// A sum of products, by their factors in order, and what it is divided by. Rounding is of no account: it is
// less than an element. Products whose coefficients cancel out are left in.
struct Way {
  std::map<std::vector<HostFactor>, uint64_t> products;
  uint64_t divisor = 1;
  bool operator==(const Way&) const = default;
};

Way constant(uint64_t value) { return {{{{}, value}}, 1}; }

// Takes out what the divisor and all coefficients have in common.
void shorten(Way& way) {
  uint64_t common = way.divisor;
  for (const auto& [factors, coefficient] : way.products)
    common = std::gcd(common, static_cast<uint64_t>(std::abs(static_cast<int64_t>(coefficient))));
  if (common <= 1) return;
  way.divisor /= common;
  for (auto& [factors, coefficient] : way.products)
    coefficient = static_cast<uint64_t>(static_cast<int64_t>(coefficient) / static_cast<int64_t>(common));
}

Way product_of(const Way& a, const Way& b) {
  Way out{{}, a.divisor * b.divisor};
  for (const auto& [x, m] : a.products) {
    for (const auto& [y, n] : b.products) {
      std::vector<HostFactor> factors = x;
      factors.insert(factors.end(), y.begin(), y.end());
      std::ranges::sort(factors);
      out.products[factors] += m * n;
    }
  }
  shorten(out);
  return out;
}

Way sum_of(const Way& a, const Way& b) {
  Way out{{}, a.divisor * b.divisor};
  for (const auto& [factors, coefficient] : a.products) out.products[factors] += coefficient * b.divisor;
  for (const auto& [factors, coefficient] : b.products) out.products[factors] += coefficient * a.divisor;
  shorten(out);
  return out;
}

Way way_of(const HostDistance& distance) {
  Way out{{}, distance.divisor};
  for (const auto& [factors, coefficient] : distance.products) out.products[factors] += coefficient;
  return out;
}

HostDistance distance_of(const Way& way) {
  HostDistance out{{}, way.divisor};
  for (const auto& [factors, coefficient] : way.products)
    if (coefficient != 0) out.products.push_back({factors, coefficient});
  return out;
}

// The part of a value that is known: one for each way in which it may have been computed.
struct Part {
  std::vector<Way> ways;
  bool is_whole = false;  // the sum is all of the value
};

// Nothing of the value comes from the host.
Part none() { return {{Way()}, false}; }

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
      case ExprKind::Divide:
      case ExprKind::DivideSigned:
        return quotient(in, e, e->operands[1].as_constant().value_or(0), as_signed_number);
      case ExprKind::ShiftRight:
      case ExprKind::ShiftRightSigned:
        return quotient(in, e, power_of_two(e->operands[1].as_constant()), as_signed_number);
      case ExprKind::Minimum:
      case ExprKind::MinimumSigned:
      case ExprKind::Maximum:
      case ExprKind::MaximumSigned:
        return one_of(in, e, as_signed_number);
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
    if (in.launched_by == nullptr) return {{Way{{{{{offset, e.bits / 8, is_signed}}, 1}}, 1}}, true};
    const DistanceScope launcher{in.launcher, nullptr, nullptr};
    for (const Argument& argument : in.launched_by->arguments) {
      if (argument.offset != offset || argument.bytes * 8 != e.bits || argument.store == nullptr) continue;
      const uint32_t store = in.launcher->flow.index_of(argument.store);
      return read(launcher, in.launcher->values().symbolic.read(store, argument.source, e.bits), is_signed);
    }
    return none();
  }

  Part sum(const DistanceScope& in, const Expr& e, bool is_signed) {
    Part out{{Way()}, true};
    for (const Term& term : e->terms) {
      Part of_term{{constant(extended(term.coefficient, e->bits, true))}, true};
      for (const Expr& factor : term.factors) of_term = times(of_term, read(in, factor, is_signed));
      // A product with a part that the host does not know counts elements.
      if (term.factors.size() > 1 && !of_term.is_whole) of_term = none();
      out = plus(out, of_term);
    }
    return out;
  }

  // Reads a value that a mask rounds down to a multiple.
  Part aligned(const DistanceScope& in, const Expr& e, bool is_signed) {
    for (const Expr& operand : e->operands) {
      if (!operand.as_constant()) return {read(in, operand, is_signed).ways, false};
    }
    return none();
  }

  static uint64_t power_of_two(std::optional<uint64_t> exponent) {
    return exponent && *exponent < 64 ? uint64_t{1} << *exponent : 0;
  }

  Part quotient(const DistanceScope& in, const Expr& e, uint64_t divisor, bool is_signed) {
    if (divisor == 0 || divisor > kLargestDivisor) return none();
    Part out = read(in, e->operands[0], is_signed);
    for (Way& way : out.ways) way.divisor *= divisor;
    return out;
  }

  Part one_of(const DistanceScope& in, const Expr& e, bool is_signed) {
    Part out{{}, false};
    for (const Expr& operand : e->operands) {
      for (const Way& way : read(in, operand, is_signed).ways) add_way(out, way);
    }
    return out;
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
      for (const Way& each : way.ways) add_way(out, each);
    }
    return out.ways.empty() ? none() : out;
  }

  void add_way(Part& to, const Way& way) {
    if (way.divisor > kLargestDivisor) gives_up_ = true;
    if (std::ranges::find(to.ways, way) != to.ways.end()) return;
    to.ways.push_back(way);
    if (to.ways.size() > kMostWays) gives_up_ = true;
  }

  Part plus(const Part& a, const Part& b) {
    Part out{{}, a.is_whole && b.is_whole};
    for (const Way& x : a.ways) {
      for (const Way& y : b.ways) {
        if (gives_up_) return none();
        add_way(out, sum_of(x, y));
      }
    }
    return out;
  }

  Part times(const Part& a, const Part& b) {
    Part out{{}, a.is_whole && b.is_whole};
    for (const Way& x : a.ways) {
      for (const Way& y : b.ways) {
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
  std::set<HostDistance> out;
  for (Way way : part.ways) {
    // Other ways start from other pointers.
    const auto start = std::ranges::find_if(way.products, [&](const auto& product) {
      const auto& [factors, coefficient] = product;
      return coefficient == way.divisor && factors.size() == 1 && factors[0].parameter_offset == pointer &&
             factors[0].bytes == kAddressBytes;
    });
    if (start == way.products.end()) continue;
    way.products.erase(start);
    HostDistance distance = distance_of(way);
    const auto bound = static_cast<int64_t>(kWithinElement * way.divisor);
    std::erase_if(distance.products, [&](const HostProduct& product) {
      return product.factors.empty() && std::abs(static_cast<int64_t>(product.coefficient)) <= bound;
    });
    if (!distance.products.empty()) out.insert(std::move(distance));
  }
  return outermost(out);
}

std::set<HostDistance> outermost(const std::set<HostDistance>& distances) {
  std::map<HostDistance, std::map<int64_t, HostDistance>> by_rest;  // and by their constants
  for (const HostDistance& distance : distances) {
    HostDistance rest = distance;
    int64_t constant_part = 0;
    std::erase_if(rest.products, [&](const HostProduct& product) {
      if (product.factors.empty()) constant_part = static_cast<int64_t>(product.coefficient);
      return product.factors.empty();
    });
    by_rest[rest].emplace(constant_part, distance);
  }
  std::set<HostDistance> out;
  for (const auto& [rest, by_constant] : by_rest) {
    // Without a rest they are counted from the pointer itself.
    const bool has_rest = !rest.products.empty();
    if (has_rest || by_constant.begin()->first < 0) out.insert(by_constant.begin()->second);
    if (has_rest || by_constant.rbegin()->first > 0) out.insert(by_constant.rbegin()->second);
  }
  return out;
}

HostDistance operator+(const HostDistance& a, const HostDistance& b) {
  return distance_of(sum_of(way_of(a), way_of(b)));
}

std::string to_string(const HostDistance& distance) {
  std::string out;
  for (const auto& [factors, coefficient] : distance.products) {
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
  return distance.divisor == 1 ? out : fmt::format("({})/{}", out, distance.divisor);
}

}  // namespace klap::analysis
