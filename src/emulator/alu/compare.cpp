// Comparisons: setp and set.
//
// setp is common, so each of its operators on each type is a function of its own; set, and setp on half
// precision, look the operator up as they run.
#include "emulator/alu/families.h"
#include "emulator/alu/float.h"
#include "emulator/alu/integer.h"
#include "emulator/alu/small_float.h"

namespace klap::emulator::alu {
namespace {

enum class Operator : uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
constexpr int kIntegerOperators = 6;

// The operators that end in u are true as well if an operand is a NaN.
template <class T>
inline bool compare(Operator by, T a, T b) {
  switch (by) {
    case Operator::Eq:
      return a == b;
    case Operator::Ne:
      return a < b || a > b;
    case Operator::Lt:
      return a < b;
    case Operator::Le:
      return a <= b;
    case Operator::Gt:
      return a > b;
    case Operator::Ge:
      return a >= b;
    case Operator::Equ:
      return !(a < b || a > b);
    case Operator::Neu:
      return !(a == b);
    case Operator::Ltu:
      return !(a >= b);
    case Operator::Leu:
      return !(a > b);
    case Operator::Gtu:
      return !(a <= b);
    case Operator::Geu:
      return !(a < b);
    case Operator::Num:
      return a == a && b == b;
    case Operator::Nan:
      return a != a || b != b;
  }
  return false;
}

// Settings. kTrue and the value in the low half are for set only.
enum class Combine : uint8_t { None, And, Or, Xor };
constexpr uint64_t kTrueMask = 0xffffffff;
constexpr int kCombineShift = 32, kOperatorShift = 36;
constexpr uint64_t kFlush = 1ull << 34;

bool combine(Setting setting, bool value, bool with) {
  switch (static_cast<Combine>(setting.bits >> kCombineShift & 3)) {
    case Combine::And:
      return value && with;
    case Combine::Or:
      return value || with;
    case Combine::Xor:
      return value != with;
    case Combine::None:
      break;
  }
  return value;
}

template <Operator By, class T>
bool test(T a, T b) {
  return compare(By, a, b);
}
template <Operator By>
bool test_flushed(float a, float b) {
  return compare(By, flush(a), flush(b));
}

// From the test of two values to the forms of setp: with a second predicate, combined with a third operand,
// or both.
template <class T, bool (*Test)(T, T)>
Both<bool, bool> test_both(T a, T b) {
  const bool value = Test(a, b);
  return {value, !value};
}
template <class T, bool (*Test)(T, T)>
Both<bool, bool> test_combined(Setting setting, T a, T b, bool c) {
  const bool value = Test(a, b);
  return {combine(setting, value, c), combine(setting, !value, c)};
}

// The function with its first result only.
template <auto Function, class S = decltype(Function)>
struct First;
template <auto Function, class... A>
struct First<Function, Both<bool, bool> (*)(A...)> {
  static bool run(A... operands) { return Function(operands...).first; }
};

struct Form {
  Combine combine = Combine::None;
  bool second = false;  // p|q
};

template <auto Function>
AluOp one_or_both(Form form, uint64_t setting) {
  return form.second ? operation<Function>(setting) : operation<&First<Function>::run>(setting);
}

template <class T, bool (*Test)(T, T)>
AluOp setp_of(Form form) {
  if (form.combine == Combine::None) return form.second ? operation<test_both<T, Test>>() : operation<Test>();
  return one_or_both<test_combined<T, Test>>(form, static_cast<uint64_t>(form.combine) << kCombineShift);
}

template <class T>
Found setp_integer(Operator by, Form form) {
  switch (by) {
    case Operator::Eq:
      return setp_of<T, test<Operator::Eq, T>>(form);
    case Operator::Ne:
      return setp_of<T, test<Operator::Ne, T>>(form);
    case Operator::Lt:
      return setp_of<T, test<Operator::Lt, T>>(form);
    case Operator::Le:
      return setp_of<T, test<Operator::Le, T>>(form);
    case Operator::Gt:
      return setp_of<T, test<Operator::Gt, T>>(form);
    case Operator::Ge:
      return setp_of<T, test<Operator::Ge, T>>(form);
    default:
      return std::nullopt;
  }
}

template <class T, bool Flush, Operator By>
AluOp setp_float_by(Form form) {
  if constexpr (Flush) {
    return setp_of<T, test_flushed<By>>(form);
  } else {
    return setp_of<T, test<By, T>>(form);
  }
}
template <class T, bool Flush, size_t... I>
AluOp setp_float_table(Operator by, Form form, std::index_sequence<I...>) {
  constexpr std::array<AluOp (*)(Form), sizeof...(I)> kTable{
      setp_float_by<T, Flush, static_cast<Operator>(I)>...};
  return kTable[static_cast<size_t>(by)](form);
}
template <class T, bool Flush>
AluOp setp_float(Operator by, Form form) {
  return setp_float_table<T, Flush>(by, form, std::make_index_sequence<14>());
}

template <class T>
inline bool compare_by_setting(Setting setting, T a, T b) {
  const auto by = static_cast<Operator>(setting.bits >> kOperatorShift & 15);
  const bool flush_operands = (setting.bits & kFlush) != 0;
  if constexpr (std::is_arithmetic_v<T>) {
    if constexpr (std::is_same_v<T, float>) {
      if (flush_operands) return compare(by, flush(a), flush(b));
    }
    return compare(by, a, b);
  } else {
    double wide_a = to_double(a), wide_b = to_double(b);
    if (flush_operands) {
      wide_a = flush_small(format_of<T>(), wide_a);
      wide_b = flush_small(format_of<T>(), wide_b);
    }
    return compare(by, wide_a, wide_b);
  }
}

// setp on half precision. On pairs, p and q are the results of the low and the high half.
template <class T>
Both<bool, bool> test_half(Setting setting, T a, T b, bool c) {
  const bool value = compare_by_setting(setting, a, b);
  return {combine(setting, value, c), combine(setting, !value, c)};
}
template <class T>
Both<bool, bool> test_half_short(Setting setting, T a, T b) {
  return test_half(setting, a, b, false);
}
template <class T>
Both<bool, bool> test_pair(Setting setting, Pair<T> a, Pair<T> b, bool c) {
  return {combine(setting, compare_by_setting(setting, a.low, b.low), c),
          combine(setting, compare_by_setting(setting, a.high, b.high), c)};
}
template <class T>
Both<bool, bool> test_pair_short(Setting setting, Pair<T> a, Pair<T> b) {
  return test_pair(setting, a, b, false);
}

template <auto Short, auto Combined>
AluOp pick_half(Form form, uint64_t setting) {
  return form.combine == Combine::None ? one_or_both<Short>(form, setting)
                                       : one_or_both<Combined>(form, setting);
}
Found setp_half(Type type, Form form, uint64_t setting) {
  switch (type) {
    case Type::F16:
      return pick_half<test_half_short<Half>, test_half<Half>>(form, setting);
    case Type::BF16:
      return pick_half<test_half_short<BFloat>, test_half<BFloat>>(form, setting);
    case Type::F16x2:
      return pick_half<test_pair_short<Half>, test_pair<Half>>(form, setting);
    case Type::BF16x2:
      return pick_half<test_pair_short<BFloat>, test_pair<BFloat>>(form, setting);
    default:
      return std::nullopt;
  }
}

template <class T>
uint64_t choose(Setting setting, T a, T b) {
  return compare_by_setting(setting, a, b) ? setting.bits & kTrueMask : 0;
}
template <class T>
uint64_t choose_combined(Setting setting, T a, T b, bool c) {
  return combine(setting, compare_by_setting(setting, a, b), c) ? setting.bits & kTrueMask : 0;
}
template <class T>
uint64_t choose_pair_combined(Setting setting, Pair<T> a, Pair<T> b, bool c) {
  return choose_combined(setting, a.low, b.low, c) | choose_combined(setting, a.high, b.high, c) << 16;
}
template <class T>
uint64_t choose_pair(Setting setting, Pair<T> a, Pair<T> b) {
  return choose(setting, a.low, b.low) | choose(setting, a.high, b.high) << 16;
}

template <auto Short, auto Combined>
AluOp pick_set(uint64_t setting, uint8_t bits) {
  const bool is_short = (setting >> kCombineShift & 3) == 0;
  AluOp op = is_short ? operation<Short>(setting) : operation<Combined>(setting);
  op.destinations[0] = {bits, false};
  return op;
}
template <class T>
AluOp pick_set_of(uint64_t setting, uint8_t bits) {
  return pick_set<choose<T>, choose_combined<T>>(setting, bits);
}

struct SetResult {
  uint32_t true_value;
  uint8_t bits;
};
std::optional<SetResult> set_result(Type type, bool of_pair) {
  switch (type) {
    case Type::U32:
    case Type::S32:
      return SetResult{of_pair ? 0xffffu : 0xffffffffu, 32};
    case Type::F32:
      return SetResult{0x3f800000, 32};
    case Type::U16:
    case Type::S16:
      return SetResult{0xffff, 16};
    case Type::F16:
      return SetResult{0x3c00, 16};
    case Type::BF16:
      return SetResult{0x3f80, 16};
    case Type::F16x2:
      return SetResult{0x3c00, 32};
    case Type::BF16x2:
      return SetResult{0x3f80, 32};
    default:
      return std::nullopt;
  }
}

Found find_set_of(Type source, uint64_t setting, uint8_t bits) {
  switch (source) {
    case Type::F32:
      return pick_set_of<float>(setting, bits);
    case Type::F64:
      return pick_set_of<double>(setting, bits);
    case Type::F16:
      return pick_set_of<Half>(setting, bits);
    case Type::BF16:
      return pick_set_of<BFloat>(setting, bits);
    case Type::F16x2:
      return pick_set<choose_pair<Half>, choose_pair_combined<Half>>(setting, bits);
    case Type::BF16x2:
      return pick_set<choose_pair<BFloat>, choose_pair_combined<BFloat>>(setting, bits);
    default:
      break;
  }
  const auto pick = [&]<class T>(T) { return pick_set_of<T>(setting, bits); };
  const Found found = for_bits(source, pick);
  return found.has_value() ? found : for_integer(source, pick);
}

struct Parsed {
  Operator by{};
  Form form;
  bool unsigned_names = false;  // lo, ls, hi, hs
};
std::optional<Parsed> take_operator(Modifiers& m) {
  const int by = m.take_one({".eq", ".ne", ".lt", ".le", ".gt", ".ge", ".equ", ".neu", ".ltu", ".leu", ".gtu",
                             ".geu", ".num", ".nan", ".lo", ".ls", ".hi", ".hs"});
  if (by < 0) return std::nullopt;
  Parsed parsed;
  parsed.unsigned_names = by >= 14;
  parsed.by = static_cast<Operator>(parsed.unsigned_names ? by - 14 + static_cast<int>(Operator::Lt) : by);
  parsed.form.combine = static_cast<Combine>(m.take_one({".and", ".or", ".xor"}) + 1);
  return parsed;
}

bool is_unsigned(Type type) { return type == Type::U16 || type == Type::U32 || type == Type::U64; }
bool is_untyped(Type type) { return type == Type::B16 || type == Type::B32 || type == Type::B64; }

// Which operators there are depends on the type.
bool has_operator(Type type, const Parsed& parsed) {
  if (is_float(type) || is_half(type)) return !parsed.unsigned_names;
  if (static_cast<int>(parsed.by) >= kIntegerOperators) return false;
  if (parsed.unsigned_names) return is_unsigned(type);
  return !is_untyped(type) || parsed.by == Operator::Eq || parsed.by == Operator::Ne;
}

Found find_setp(Modifiers& m) {
  auto parsed = take_operator(m);
  const bool is_flushed = m.take(".ftz");
  const auto type = m.take_type();
  if (!parsed || !type || !has_operator(*type, *parsed)) return std::nullopt;
  Form& form = parsed->form;
  form.second = m.operand_count() == (form.combine == Combine::None ? 4 : 5);
  if (is_half(*type)) {
    return setp_half(*type, form,
                     static_cast<uint64_t>(form.combine) << kCombineShift | (is_flushed ? kFlush : 0) |
                         static_cast<uint64_t>(parsed->by) << kOperatorShift);
  }
  if (*type == Type::F32) {
    return is_flushed ? setp_float<float, true>(parsed->by, form)
                      : setp_float<float, false>(parsed->by, form);
  }
  if (is_flushed) return std::nullopt;
  if (*type == Type::F64) return setp_float<double, false>(parsed->by, form);
  const auto pick = [&]<class T>(T) { return setp_integer<T>(parsed->by, form); };
  const Found found = for_bits(*type, pick);
  return found.has_value() ? found : for_integer(*type, pick);
}

Found find_set(Modifiers& m) {
  const auto parsed = take_operator(m);
  const bool is_flushed = m.take(".ftz");
  const auto result_type = m.take_type();
  const auto type = m.take_type();
  if (!parsed || !result_type || !type || !has_operator(*type, *parsed)) return std::nullopt;
  const bool pair = *type == Type::F16x2 || *type == Type::BF16x2;
  const auto result = set_result(*result_type, pair);
  if (!result || (is_flushed && *type != Type::F32 && !is_half(*type))) return std::nullopt;
  const uint64_t setting = result->true_value | static_cast<uint64_t>(parsed->form.combine) << kCombineShift |
                           static_cast<uint64_t>(parsed->by) << kOperatorShift | (is_flushed ? kFlush : 0);
  return find_set_of(*type, setting, result->bits);
}

}  // namespace

Found find_compare(std::string_view opcode, Modifiers& modifiers) {
  if (opcode == "setp") return find_setp(modifiers);
  if (opcode == "set") return find_set(modifiers);
  return std::nullopt;
}

}  // namespace klap::emulator::alu
