// Choosing and moving: selp, slct, mov, and the packing and unpacking that mov does with vectors.
#include "emulator/alu/families.h"
#include "emulator/alu/float.h"

namespace klap::emulator::alu {
namespace {

template <class T>
T copy(T a) {
  return a;
}
template <class T>
T select(T a, T b, bool c) {
  return c ? a : b;
}
// A NaN chooses b.
template <class T, class By>
T select_by_sign(T a, T b, By c) {
  return c >= 0 ? a : b;
}
// A negative denormal is flushed to a zero, which chooses a.
template <class T>
T select_by_flushed_sign(T a, T b, float c) {
  return flush(c) >= 0 ? a : b;
}

struct Moved {
  uint8_t bits;
  bool is_float;
};
std::optional<Moved> moved(Type type) {
  switch (type) {
    case Type::Pred:
      return Moved{1, false};
    case Type::B16:
    case Type::U16:
    case Type::S16:
      return Moved{16, false};
    case Type::B32:
    case Type::U32:
    case Type::S32:
      return Moved{32, false};
    case Type::B64:
    case Type::U64:
    case Type::S64:
      return Moved{64, false};
    case Type::F16:
    case Type::BF16:
      return Moved{16, true};
    case Type::F32:
      return Moved{32, true};
    case Type::F64:
      return Moved{64, true};
    default:
      return std::nullopt;
  }
}

// The bits go as they are, a NaN's too; only immediate operands need to know that they are floating point.
AluOp with_form(AluOp op, Moved form, uint8_t sources) {
  op.destinations[0] = {form.bits, form.is_float};
  for (uint8_t i = 0; i < sources; ++i) op.sources[i] = {form.bits, form.is_float};
  return op;
}

void move128(const AluCall& call) {
  if (call.destinations[0] == nullptr) return;
  for_lanes(call.mask, [&](uint32_t lane) {
    call.destinations[0][lane] = call.sources[0][lane];
    call.destinations[0][kLanes + lane] = call.sources[0][kLanes + lane];
  });
}
AluOp make_move128() {
  AluOp op;
  op.run = move128;
  op.destination_count = op.source_count = 1;
  op.destinations[0] = op.sources[0] = {128, false};
  return op;
}

Found find_move(Modifiers& m) {
  const auto type = m.take_type();
  if (!type || m.operand_count() > 2) return std::nullopt;
  if (*type == Type::B128) return make_move128();
  const auto form = moved(*type);
  if (!form) return std::nullopt;
  if (form->bits == 1) return operation<copy<bool>>();
  if (form->bits == 16) return with_form(operation<copy<uint16_t>>(), *form, 1);
  if (form->bits == 32) return with_form(operation<copy<uint32_t>>(), *form, 1);
  return with_form(operation<copy<uint64_t>>(), *form, 1);
}

Found find_selp(Modifiers& m) {
  const auto type = m.take_type();
  const auto form = type ? moved(*type) : std::nullopt;
  if (!form || form->bits == 1) return std::nullopt;
  if (form->bits == 16) return with_form(operation<select<uint16_t>>(), *form, 2);
  if (form->bits == 32) return with_form(operation<select<uint32_t>>(), *form, 2);
  return with_form(operation<select<uint64_t>>(), *form, 2);
}

template <class T>
Found pick_slct(Type by, bool is_flushed) {
  if (by == Type::S32 && !is_flushed) return operation<select_by_sign<T, int32_t>>();
  if (by != Type::F32) return std::nullopt;
  return is_flushed ? operation<select_by_flushed_sign<T>>() : operation<select_by_sign<T, float>>();
}
Found find_slct(Modifiers& m) {
  const bool is_flushed = m.take(".ftz");
  const auto type = m.take_type();
  const auto by = m.take_type();
  const auto form = type ? moved(*type) : std::nullopt;
  if (!form || !by || form->bits == 1) return std::nullopt;
  const Found found = form->bits == 16   ? pick_slct<uint16_t>(*by, is_flushed)
                      : form->bits == 32 ? pick_slct<uint32_t>(*by, is_flushed)
                                         : pick_slct<uint64_t>(*by, is_flushed);
  if (!found) return std::nullopt;
  return with_form(*found, *form, 2);
}

// Settings of packing: how many elements, and how wide each is.
constexpr int kCountShift = 8;
uint32_t element_bits(const AluCall& call) { return static_cast<uint32_t>(call.setting & 0xff); }
uint32_t element_count(const AluCall& call) {
  return static_cast<uint32_t>(call.setting >> kCountShift & 0xff);
}
uint64_t element_mask(uint32_t bits) { return ~0ull >> (64 - bits); }

void pack(const AluCall& call) {
  const uint32_t bits = element_bits(call), count = element_count(call);
  const uint64_t mask = element_mask(bits);
  for_lanes(call.mask, [&](uint32_t lane) {
    uint64_t words[2] = {};
    for (uint32_t i = 0; i < count; ++i) {
      words[i * bits / 64] |= (call.sources[i][lane] & mask) << (i * bits % 64);
    }
    call.destinations[0][lane] = words[0];
    if (bits * count > 64) call.destinations[0][kLanes + lane] = words[1];
  });
}

void unpack(const AluCall& call) {
  const uint32_t bits = element_bits(call), count = element_count(call);
  const uint64_t mask = element_mask(bits);
  for_lanes(call.mask, [&](uint32_t lane) {
    // A destination may be the source itself.
    const uint64_t words[2] = {call.sources[0][lane], bits * count > 64 ? call.sources[0][kLanes + lane] : 0};
    for (uint32_t i = 0; i < count; ++i) {
      if (call.destinations[i] == nullptr) continue;
      call.destinations[i][lane] = words[i * bits / 64] >> (i * bits % 64) & mask;
    }
  });
}

// The bits of an element of a vector of the type; 0 if there is none.
uint8_t vector_element(std::string_view type, uint32_t count) {
  constexpr std::pair<std::string_view, uint8_t> kWidths[] = {
      {".b16", 16}, {".b32", 32}, {".b64", 64}, {".b128", 128}};
  if (count != 2 && count != 4) return 0;
  for (const auto& [name, bits] : kWidths) {
    if (name != type) continue;
    const auto element = static_cast<uint8_t>(bits / count);
    return element >= 8 && element <= 64 ? element : 0;
  }
  return 0;
}

AluOp vector_move(AluFunction run, uint8_t element, uint32_t count) {
  AluOp op;
  op.run = run;
  op.setting = element | uint64_t{count} << kCountShift;
  return op;
}

}  // namespace

Found find_select(std::string_view opcode, Modifiers& modifiers) {
  if (opcode == "mov") return find_move(modifiers);
  if (opcode == "selp") return find_selp(modifiers);
  if (opcode == "slct") return find_slct(modifiers);
  return std::nullopt;
}

}  // namespace klap::emulator::alu

namespace klap::emulator {

std::optional<AluOp> find_pack(std::string_view type, uint32_t count) {
  const uint8_t element = alu::vector_element(type, count);
  if (element == 0) return std::nullopt;
  AluOp op = alu::vector_move(alu::pack, element, count);
  op.destination_count = 1;
  op.source_count = static_cast<uint8_t>(count);
  op.destinations[0] = {static_cast<uint8_t>(element * count), false};
  for (uint32_t i = 0; i < count; ++i) op.sources[i] = {element, false};
  return op;
}

std::optional<AluOp> find_unpack(std::string_view type, uint32_t count) {
  const uint8_t element = alu::vector_element(type, count);
  if (element == 0) return std::nullopt;
  AluOp op = alu::vector_move(alu::unpack, element, count);
  op.destination_count = static_cast<uint8_t>(count);
  op.source_count = 1;
  op.sources[0] = {static_cast<uint8_t>(element * count), false};
  for (uint32_t i = 0; i < count; ++i) op.destinations[i] = {element, false};
  return op;
}

}  // namespace klap::emulator
