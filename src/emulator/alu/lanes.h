// From a function of one lane's values to an operation on a whole warp.
//
// An instruction is written as an ordinary function of C++ types, such as `uint32_t add(uint32_t, uint32_t)`;
// `operation<add>()` makes the loop over the lanes and describes the operands. So each instruction states its
// operands and result once, and the loop, with its quick case of a full warp, is written once.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include "emulator/alu/types.h"

namespace klap::emulator::alu {

// A function whose first parameter is a Setting gets AluCall::setting.
struct Setting {
  uint64_t bits;
};
// A function whose first parameter is a CarryIn gets its lane's carry, and returns a WithCarry. The new carry
// is kept if kWriteCarry is in the setting.
struct CarryIn {
  bool set;
};
template <class T>
struct WithCarry {
  T value;
  bool carry;
};
inline constexpr uint64_t kWriteCarry = 1;

// Two destinations.
template <class First, class Second>
struct Both {
  First first;
  Second second;
};

template <class Lane>
inline void for_lanes(uint32_t mask, Lane&& lane) {
  if (mask == ~0u) {
    // A lane writes nothing that another one reads, even where source and destination are one register.
#pragma GCC ivdep
    for (uint32_t i = 0; i < kLanes; ++i) lane(i);
  } else {
    for (; mask != 0; mask &= mask - 1) lane(static_cast<uint32_t>(std::countr_zero(mask)));
  }
}

enum class Extra { None, Setting, Carry };

template <class Function>
struct Signature;
template <class R, class... A>
struct Signature<R (*)(A...)> {
  static constexpr Extra extra = Extra::None;
  using Result = R;
  using Arguments = std::tuple<A...>;
};
template <class R, class... A>
struct Signature<R (*)(Setting, A...)> {
  static constexpr Extra extra = Extra::Setting;
  using Result = R;
  using Arguments = std::tuple<A...>;
};
template <class R, class... A>
struct Signature<R (*)(CarryIn, A...)> {
  static constexpr Extra extra = Extra::Carry;
  using Result = R;
  using Arguments = std::tuple<A...>;
};

// How a result goes to the destinations.
template <class R>
struct Results {
  static constexpr uint8_t count = 1;
  static void describe(AluOp& op) { op.destinations[0] = Slot<R>::form; }
  static void write(const std::array<Column, 2>& d, uint32_t lane, R value) {
    d[0][lane] = Slot<R>::write(value);
  }
};
template <class First, class Second>
struct Results<Both<First, Second>> {
  static constexpr uint8_t count = 2;
  static void describe(AluOp& op) {
    op.destinations[0] = Slot<First>::form;
    op.destinations[1] = Slot<Second>::form;
  }
  static void write(const std::array<Column, 2>& d, uint32_t lane, Both<First, Second> value) {
    d[0][lane] = Slot<First>::write(value.first);
    d[1][lane] = Slot<Second>::write(value.second);
  }
};
template <class T>
struct Results<WithCarry<T>> : Results<T> {};

template <class T>
inline T read_source(uint64_t slot, uint64_t setting, size_t index) {
  if constexpr (std::is_same_v<T, bool>) {
    return Slot<bool>::read(slot ^ (setting / kNegateSource >> index));
  } else {
    (void)setting, (void)index;
    return Slot<T>::read(slot);
  }
}

template <auto Function, size_t... I>
inline void run_lanes(const AluCall& call, std::index_sequence<I...>) {
  using S = Signature<decltype(Function)>;
  using A = typename S::Arguments;
  constexpr uint8_t count = Results<typename S::Result>::count;
  // Copies, since the compiler must else expect a lane's result to change the call.
  const std::array<ConstColumn, sizeof...(I)> s{call.sources[I]...};
  const uint64_t setting = call.setting;
  const Column carry = call.carry;
  uint64_t bucket[kLanes];
  std::array<Column, 2> d{bucket, bucket};
  for (uint8_t k = 0; k < count; ++k) {
    if (call.destinations[k] != nullptr) d[k] = call.destinations[k];
  }
  for_lanes(call.mask, [&](uint32_t lane) {
    if constexpr (S::extra == Extra::None) {
      Results<typename S::Result>::write(
          d, lane, Function(read_source<std::tuple_element_t<I, A>>(s[I][lane], setting, I)...));
    } else if constexpr (S::extra == Extra::Setting) {
      Results<typename S::Result>::write(
          d, lane,
          Function(Setting{setting}, read_source<std::tuple_element_t<I, A>>(s[I][lane], setting, I)...));
    } else {
      const auto result = Function(CarryIn{(carry[lane] & 1) != 0},
                                   read_source<std::tuple_element_t<I, A>>(s[I][lane], setting, I)...);
      Results<typename S::Result>::write(d, lane, result.value);
      if ((setting & kWriteCarry) != 0) carry[lane] = result.carry ? 1 : 0;
    }
  });
}

template <auto Function>
void each_lane(const AluCall& call) {
  using A = typename Signature<decltype(Function)>::Arguments;
  run_lanes<Function>(call, std::make_index_sequence<std::tuple_size_v<A>>());
}

template <class Arguments, size_t... I>
void describe_sources(AluOp& op, std::index_sequence<I...>) {
  ((op.sources[I] = Slot<std::tuple_element_t<I, Arguments>>::form), ...);
}

template <auto Function>
AluOp operation(uint64_t setting = 0) {
  using S = Signature<decltype(Function)>;
  using A = typename S::Arguments;
  AluOp op;
  op.run = each_lane<Function>;
  op.destination_count = Results<typename S::Result>::count;
  op.source_count = std::tuple_size_v<A>;
  Results<typename S::Result>::describe(op);
  describe_sources<A>(op, std::make_index_sequence<std::tuple_size_v<A>>());
  op.setting = setting;
  return op;
}

// The operation on both halves of packed operands.
template <auto Function, class S = Signature<decltype(Function)>>
struct Halves;
template <auto Function, class R, class... A>
struct Halves<Function, Signature<R (*)(A...)>> {
  static Pair<R> both(Pair<A>... operands) { return {Function(operands.low...), Function(operands.high...)}; }
};
template <auto Function, class R, class... A>
struct Halves<Function, Signature<R (*)(Setting, A...)>> {
  static Pair<R> both(Setting setting, Pair<A>... operands) {
    return {Function(setting, operands.low...), Function(setting, operands.high...)};
  }
};
template <auto Function>
AluOp packed_operation(uint64_t setting = 0) {
  return operation<&Halves<Function>::both>(setting);
}

}  // namespace klap::emulator::alu
