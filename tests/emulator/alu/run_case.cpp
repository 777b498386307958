#include "run_case.h"

#include <bit>
#include <cmath>

namespace suite {
namespace {

using klap::emulator::AluCall;
using klap::emulator::AluOp;
using klap::emulator::kLanes;

constexpr uint64_t kUntouched = 0x5a5a5a5a5a5a5a5a;

// Two columns, for registers of 128 bits.
using Columns = std::array<uint64_t, size_t{2} * kLanes>;

[[noreturn]] void fail(const Case& of, const std::string& why) {
  throw std::runtime_error("line " + std::to_string(of.line) + ": " + of.text + ": " + why);
}

// ".lt" and ".f32" of "setp.lt.f32", after the opcode.
std::vector<std::string> words(const std::string& instruction) {
  std::vector<std::string> result = split(instruction, '.');
  for (size_t i = 1; i < result.size(); ++i) result[i].insert(0, ".");
  return result;
}

bool is_vector(const std::vector<Operand>& operands) { return !operands.empty() && operands[0].joint == '{'; }

void fill(Columns& columns, Value value) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    columns[lane] = value.low;
    columns[kLanes + lane] = value.high;
  }
}

Value read(const Case& of, const Columns& columns, uint32_t mask, int bits) {
  const auto first = static_cast<size_t>(std::countr_zero(mask));
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) {
      if (columns[lane] != kUntouched) fail(of, "writes a lane that does not execute");
    } else if (columns[lane] != columns[first] || columns[kLanes + lane] != columns[kLanes + first]) {
      fail(of, "gives lanes different results");
    }
  }
  return {columns[first], bits > 64 ? columns[kLanes + first] : 0};
}

struct Error {
  const char* prefix;  // of the instruction
  double relative, absolute;
};
// As the PTX manual bounds them, with a unit in the last place as 2^-23.
constexpr Error kErrors[] = {
    {"tanh.approx.f32", 0x1p-11, 0},
    {"tanh.approx.f16", 0, 0x1p-10},
    {"tanh.approx.bf16", 0x1p-7, 0},
    {"ex2.approx.f16", 0x1p-9, 0},
    {"ex2.approx.ftz.bf16", 0x1p-7, 0},
    {"ex2.approx", 0x1p-22, 0},
    {"lg2.approx", 0x1p-22, 0x1p-22},
    {"sin.approx", 0, 0x1p-20},
    {"cos.approx", 0, 0x1p-20},
    {"rsqrt.approx.f64", 0x1p-20, 0},
    {"rsqrt.approx.ftz.f64", 0x1p-20, 0},
    {"rcp.approx.ftz.f64", 0x1p-20, 0},
    {"rsqrt.approx", 0x1p-22, 0},
    {"rcp.approx", 0x1p-23, 0},
    {"sqrt.approx", 0x1p-23, 0},
    {"div.approx", 0x1p-22, 0},
    {"div.full", 0x1p-22, 0},
};

const Error* find_error(const std::string& instruction) {
  for (const Error& error : kErrors) {
    if (instruction.rfind(error.prefix, 0) == 0) return &error;
  }
  return nullptr;
}

double half_number(uint64_t bits, int mantissa) {
  const int exponent_bits = 15 - mantissa, bias = (1 << (exponent_bits - 1)) - 1;
  const auto field = static_cast<int>(bits >> mantissa & ((1u << exponent_bits) - 1));
  const auto fraction = static_cast<int>(bits & ((1u << mantissa) - 1));
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (field == (1 << exponent_bits) - 1) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  if (field == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa);
  return sign * std::ldexp((1 << mantissa) + fraction, field - bias - mantissa);
}

// The numbers in a result, by the instruction's type.
std::vector<double> numbers(const std::string& instruction, uint64_t bits) {
  const std::string type = words(instruction).back();
  if (type == ".f64") return {std::bit_cast<double>(bits)};
  if (type == ".f32") return {std::bit_cast<float>(static_cast<uint32_t>(bits))};
  const int mantissa = type.rfind(".b", 0) == 0 ? 7 : 10;
  if (type.find("x2") == std::string::npos) return {half_number(bits, mantissa)};
  return {half_number(bits & 0xffff, mantissa), half_number(bits >> 16, mantissa)};
}

bool close(const Error& error, double got, double recorded) {
  if (std::isnan(got) || std::isnan(recorded)) return std::isnan(got) == std::isnan(recorded);
  if (std::isinf(got) || std::isinf(recorded)) return got == recorded;
  const double distance = std::fabs(got - recorded);
  return distance <= error.absolute || distance <= error.relative * std::fabs(recorded);
}

}  // namespace

std::optional<AluOp> find_operation(const Case& of) {
  const std::vector<std::string> text = words(of.instruction);
  if (is_vector(of.sources)) {
    return klap::emulator::find_pack(text.back(), static_cast<uint32_t>(of.values.size()));
  }
  if (is_vector(of.destinations)) {
    return klap::emulator::find_unpack(text.back(),
                                       static_cast<uint32_t>(of.destinations[0].registers.size()));
  }
  const std::vector<std::string_view> modifiers(text.begin() + 1, text.end());
  std::vector<uint8_t> bits;
  for (const auto* operands : {&of.destinations, &of.sources}) {
    for (const Register& each : all_registers(*operands)) {
      if (!each.carry) bits.push_back(each.immediate ? 0 : static_cast<uint8_t>(each.bits));
    }
  }
  return klap::emulator::find_alu(text[0], modifiers, bits);
}

std::vector<Value> run_case(const Case& of, uint32_t mask) {
  const std::optional<AluOp> op = find_operation(of);
  if (!op) fail(of, "unknown to the emulator");
  const std::vector<Register> destinations = all_registers(of.destinations),
                              sources = all_registers(of.sources);
  std::vector<Columns> in(sources.size()), out(destinations.size());
  Columns carry{};
  for (Columns& columns : out) fill(columns, {kUntouched, kUntouched});
  AluCall call{};
  call.mask = mask;
  call.setting = op->setting;
  call.carry = carry.data();
  size_t source_count = 0, destination_count = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    fill(sources[i].carry ? carry : in[i], of.values[i]);
    if (sources[i].carry) continue;
    if (sources[i].negated) call.setting |= klap::emulator::kNegateSource << source_count;
    call.sources[source_count++] = in[i].data();
  }
  for (size_t i = 0; i < destinations.size(); ++i) {
    if (!destinations[i].carry) call.destinations[destination_count++] = out[i].data();
  }
  if (source_count != op->source_count || destination_count != op->destination_count) {
    fail(of, "has another number of operands in the emulator");
  }
  op->run(call);
  std::vector<Value> results;
  for (size_t i = 0; i < destinations.size(); ++i) {
    if (destinations[i].carry) {
      results.push_back({carry[static_cast<size_t>(std::countr_zero(mask))], 0});
    } else {
      results.push_back(read(of, out[i], mask, destinations[i].bits));
    }
  }
  return results;
}

bool agrees(const Case& of, Value got, Value recorded) {
  if (got == recorded) return true;
  const Error* error = find_error(of.instruction);
  if (error == nullptr) return false;
  const std::vector<double> is = numbers(of.instruction, got.low),
                            was = numbers(of.instruction, recorded.low);
  for (size_t i = 0; i < is.size(); ++i) {
    if (!close(*error, is[i], was[i])) return false;
  }
  return true;
}

}  // namespace suite
