// Loads, stores, atomics, fences, and address conversions.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "emulator/decode/decode_function.h"

namespace klap::emulator {

namespace {

using Modifier = std::string_view;

struct Type {
  uint8_t bytes;
  NumberType number;
};
constexpr std::pair<Modifier, Type> kTypes[] = {
    {".b8", {1, NumberType::Bits}},           {".b16", {2, NumberType::Bits}},
    {".b32", {4, NumberType::Bits}},          {".b64", {8, NumberType::Bits}},
    {".b128", {16, NumberType::Bits}},        {".u8", {1, NumberType::Unsigned}},
    {".u16", {2, NumberType::Unsigned}},      {".u32", {4, NumberType::Unsigned}},
    {".u64", {8, NumberType::Unsigned}},      {".s8", {1, NumberType::Signed}},
    {".s16", {2, NumberType::Signed}},        {".s32", {4, NumberType::Signed}},
    {".s64", {8, NumberType::Signed}},        {".f32", {4, NumberType::Float}},
    {".f64", {8, NumberType::Float}},         {".f16", {2, NumberType::Half}},
    {".f16x2", {4, NumberType::HalfPair}},    {".bf16", {2, NumberType::BFloat}},
    {".bf16x2", {4, NumberType::BFloatPair}},
};
constexpr std::pair<Modifier, Space> kSpaces[] = {
    {".global", Space::Global}, {".const", Space::Const},        {".local", Space::Local},
    {".shared", Space::Shared}, {".shared::cta", Space::Shared}, {".shared::cluster", Space::Shared},
    {".param", Space::Param},   {".param::entry", Space::Param}, {".param::func", Space::Param},
};
constexpr std::pair<Modifier, Semantics> kSemantics[] = {
    {".acq_rel", Semantics::AcquireRelease}, {".acquire", Semantics::Acquire},
    {".release", Semantics::Release},        {".relaxed", Semantics::Relaxed},
    {".volatile", Semantics::Volatile},      {".weak", Semantics::Weak},
};
constexpr std::pair<Modifier, Scope> kScopes[] = {
    {".cta", Scope::Cta},
    {".cluster", Scope::Cluster},
    {".gpu", Scope::Gpu},
    {".sys", Scope::Sys},
};
constexpr std::pair<Modifier, uint8_t> kVectors[] = {{".v2", 2}, {".v4", 4}, {".v8", 8}};
constexpr std::pair<Modifier, AtomicOp> kAtomics[] = {
    {".and", AtomicOp::And},   {".or", AtomicOp::Or},   {".xor", AtomicOp::Xor}, {".cas", AtomicOp::Cas},
    {".exch", AtomicOp::Exch}, {".add", AtomicOp::Add}, {".inc", AtomicOp::Inc}, {".dec", AtomicOp::Dec},
    {".min", AtomicOp::Min},   {".max", AtomicOp::Max},
};

OperandForm form_of(const MemoryDetail& memory) {
  return {static_cast<uint8_t>(8 * memory.bytes), memory.type == NumberType::Float};
}

}  // namespace

// ---- shared by the instructions ----

// `.param` alone is the function's own: a kernel's parameter block, or a called function's frame.
void FunctionDecoder::take_space(Modifiers& modifiers, Instruction& i, bool& is_plain_parameter) {
  is_plain_parameter = modifiers.take(".param") || modifiers.take(".param::func");
  if (is_plain_parameter) {
    i.memory.space = out_.is_kernel ? Space::Param : Space::Local;
  } else {
    i.memory.space = modifiers.take_one(kSpaces).value_or(Space::Generic);
  }
}

void FunctionDecoder::take_order(Modifiers& modifiers, Instruction& i) {
  if (const auto semantics = modifiers.take_one(kSemantics)) i.memory.semantics = *semantics;
  if (const auto scope = modifiers.take_one(kScopes)) i.memory.scope = *scope;
}

// Where a line is cached and for how long: changes nothing that a program can see.
void FunctionDecoder::take_cache_hints(Modifiers& modifiers) {
  for (const Modifier m : {".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt", ".unified"}) modifiers.take(m);
  for (const Modifier prefix : {".L1::", ".L2::", ".level::", ".level1::", ".level2::"}) {
    while (modifiers.take_prefixed(prefix)) {
    }
  }
}

void FunctionDecoder::take_type(Modifiers& modifiers, Instruction& i) {
  i.memory.elements = modifiers.take_one(kVectors).value_or(1);
  const auto type = modifiers.take_one(kTypes);
  if (!type) unsupported("no type");
  i.memory.bytes = type->bytes;
  i.memory.type = type->number;
}

// A symbol in the address knows its own space.
void FunctionDecoder::set_address(Instruction& i, TokenRange operand, bool is_plain_parameter) {
  const AddressPlace place = address(operand);
  add_source(i, place.base);
  i.memory.offset = place.offset;
  if (!place.space) return;
  if (i.memory.space != Space::Generic && !is_plain_parameter && i.memory.space != *place.space) {
    unsupported_at(operand.first, "the address names a variable of another space");
  }
  i.memory.space = *place.space;
}

// ---- loads and stores ----

void FunctionDecoder::read_load() {
  Instruction i = begin(Kind::Load);
  Modifiers modifiers(m_, statement().modifiers);
  const bool has_policy = modifiers.take(".L2::cache_hint");
  expect_operands(has_policy ? 3 : 2);
  bool is_plain_parameter = false;
  take_space(modifiers, i, is_plain_parameter);
  take_order(modifiers, i);
  take_cache_hints(modifiers);
  take_type(modifiers, i);
  modifiers.take(".mmio");  // relaxed, and each access happens as it is written: so do all of them here
  if (modifiers.take(".nc") || m_.is(statement().head, "ldu")) i.memory.semantics = Semantics::NonCoherent;
  finish_modifiers(modifiers);
  const std::vector<Operand> values = vector_destination(operand(0), i.memory.register_bits);
  if (values.size() != i.memory.elements) unsupported(fmt::format("{} destinations", values.size()));
  for (const Operand& value : values) add_destination(i, value);
  set_address(i, operand(1), is_plain_parameter);
  emit(i);
}

void FunctionDecoder::read_store() {
  Instruction i = begin(Kind::Store);
  Modifiers modifiers(m_, statement().modifiers);
  const bool has_policy = modifiers.take(".L2::cache_hint");
  expect_operands(has_policy ? 3 : 2);
  bool is_plain_parameter = false;
  take_space(modifiers, i, is_plain_parameter);
  take_order(modifiers, i);
  take_cache_hints(modifiers);
  take_type(modifiers, i);
  modifiers.take(".mmio");
  finish_modifiers(modifiers);
  set_address(i, operand(0), is_plain_parameter);
  const std::vector<Operand> values = vector_source(operand(1), form_of(i.memory));
  if (values.size() != i.memory.elements) unsupported(fmt::format("{} values", values.size()));
  for (const Operand& value : values) add_source(i, value);
  emit(i);
}

// ---- atomics ----

void FunctionDecoder::read_atomic() {
  const bool returns = m_.is(statement().head, "atom");
  Instruction i = begin(returns ? Kind::Atomic : Kind::Reduction);
  Modifiers modifiers(m_, statement().modifiers);
  const bool has_policy = modifiers.take(".L2::cache_hint");
  i.memory.semantics = Semantics::Relaxed;
  i.memory.scope = Scope::Gpu;
  take_order(modifiers, i);
  take_cache_hints(modifiers);
  modifiers.take(".noftz");  // of half precision, where there is no other way
  const auto op = modifiers.take_one(kAtomics);
  if (!op) unsupported("no operation");
  i.memory.atomic = *op;
  bool is_plain_parameter = false;
  take_space(modifiers, i, is_plain_parameter);
  take_type(modifiers, i);
  finish_modifiers(modifiers);
  const size_t first = returns ? 1 : 0, inputs = *op == AtomicOp::Cas ? 2 : 1;
  expect_operands(first + 1 + inputs + (has_policy ? 1 : 0));
  if (returns) {
    for (const Operand& d : vector_destination(operand(0), i.memory.register_bits)) add_destination(i, d);
    if (i.destination_count != i.memory.elements) unsupported("destinations of another number");
  }
  set_address(i, operand(first), is_plain_parameter);
  for (size_t n = 1; n <= inputs; ++n) {
    for (const Operand& v : vector_source(operand(first + n), form_of(i.memory))) add_source(i, v);
  }
  if (i.source_count != 1 + inputs * i.memory.elements) unsupported("operands of another number");
  emit(i);
}

// ---- fences ----

void FunctionDecoder::read_fence() {
  Modifiers modifiers(m_, statement().modifiers);
  // There is one proxy here, so nothing to order between two of them.
  const bool is_proxy = modifiers.take(".proxy");
  Instruction i = begin(is_proxy ? Kind::Nothing : Kind::Fence);
  if (is_proxy) {
    const bool known = modifiers.take(".alias") || modifiers.take_prefixed(".async");
    if (!known) unsupported("this proxy");
    modifiers.take_one(kSpaces);
  } else {
    i.memory.sequentially_consistent = modifiers.take(".sc");
    i.memory.semantics = Semantics::AcquireRelease;
    modifiers.take(".mbarrier_init");
    take_order(modifiers, i);
  }
  finish_modifiers(modifiers);
  expect_operands(0);
  emit(i);
}

// From sm_70 on another way to write fence.sc.
void FunctionDecoder::read_membar() {
  static constexpr std::pair<Modifier, Scope> kLevels[] = {
      {".cta", Scope::Cta}, {".gl", Scope::Gpu}, {".sys", Scope::Sys}};
  Modifiers modifiers(m_, statement().modifiers);
  if (modifiers.take(".proxy")) return read_fence();
  Instruction i = begin(Kind::Fence);
  const auto scope = modifiers.take_one(kLevels);
  if (!scope) unsupported("no level");
  finish_modifiers(modifiers);
  expect_operands(0);
  i.memory.scope = *scope;
  i.memory.semantics = Semantics::AcquireRelease;
  i.memory.sequentially_consistent = true;
  emit(i);
}

void FunctionDecoder::read_hint() { emit(begin(Kind::Prefetch)); }

// ---- copies from global to shared memory ----

// `cp.async` of up to 16 bytes is done at once, which is one of the times at which it may happen. The
// instructions that wait for it have nothing to wait for then.
void FunctionDecoder::read_copy() {
  Modifiers modifiers(m_, statement().modifiers);
  if (!modifiers.take(".async")) unsupported("not an asynchronous copy of the simple kind");
  if (modifiers.take(".commit_group") || modifiers.take(".wait_group") || modifiers.take(".wait_all")) {
    finish_modifiers(modifiers);
    return emit(begin(Kind::Nothing));
  }
  const bool has_policy = modifiers.take(".L2::cache_hint");
  take_cache_hints(modifiers);
  const bool to_shared = modifiers.take(".shared") || modifiers.take(".shared::cta");
  if (!to_shared || !modifiers.take(".global")) unsupported("not from global to shared memory");
  finish_modifiers(modifiers);
  const size_t policy = has_policy ? 1 : 0;
  expect_operands(3 + policy, 4 + policy);
  const auto size = [&](size_t n) -> uint64_t {
    const Operand bytes = source(operand(n), {.bits = 32});
    if (bytes.from != Operand::From::Constant) unsupported("size that is not a constant");
    return out_.constants[uint64_t{bytes.index} * kLanes];
  };
  const uint64_t bytes = size(2);
  if (bytes != 4 && bytes != 8 && bytes != 16) unsupported("this size");
  if (statement().operands.size() == 3 + policy) return emit_copy(bytes, 0, false);
  const Operand limit = source(operand(3), {.bits = 32});
  if (limit.from != Operand::From::Constant) {
    // How much is copied is known at run time: each byte asks for itself.
    emit_copy(bytes, 0, true);
    for (uint64_t byte = 0; byte < bytes; ++byte) emit_copy(1, byte, false, limit);
    return;
  }
  const uint64_t copied = size(3);
  if (copied > bytes) unsupported("this size");
  if (copied < bytes) emit_copy(bytes, 0, true);
  for (uint64_t done = 0; done < copied;) {
    const uint64_t piece = std::bit_floor(copied - done);
    emit_copy(piece, done, false);
    done += piece;
  }
}

// One piece of an asynchronous copy, or its zeros. With a limit, it is copied where that is more than the
// piece's offset.
void FunctionDecoder::emit_copy(uint64_t bytes, uint64_t offset, bool zeros, const Operand& limit) {
  const auto emit_access = [&](Instruction i) {
    if (limit.from != Operand::From::None) {
      i.memory.limited = true;
      i.memory.above = static_cast<uint32_t>(offset);
      add_source(i, limit);
    }
    emit(i);
  };
  const auto access = [&](Kind kind, Space space, size_t address) {
    Instruction i = begin(kind);
    i.memory.bytes = static_cast<uint8_t>(bytes);
    i.memory.space = space;
    set_address(i, operand(address), false);
    i.memory.offset += static_cast<int64_t>(offset);
    return i;
  };
  Instruction store = access(Kind::Store, Space::Shared, 0);
  if (zeros) {
    add_source(store, constant128(0));
    return emit(store);
  }
  const Operand value{Operand::From::Register, temporary(2)};
  Instruction load = access(Kind::Load, Space::Global, 1);
  load.memory.register_bits = static_cast<uint8_t>(8 * bytes);
  add_destination(load, value);
  add_source(store, value);
  emit_access(load);
  emit_access(store);
}

// ---- addresses ----

// A parameter without `::func` is a kernel's.
void FunctionDecoder::read_cvta() {
  Modifiers modifiers(m_, statement().modifiers);
  Instruction i = begin(modifiers.take(".to") ? Kind::FromGeneric : Kind::ToGeneric);
  const auto space = modifiers.take_one(kSpaces);
  if (!space || !modifiers.take(".u64")) unsupported("no space, or addresses of 32 bits");
  finish_modifiers(modifiers);
  expect_operands(2);
  i.memory.space = *space;
  add_destination(i, destination(operand(0)));
  const Operand from = source(operand(1), {.bits = 64});
  // A called function's own parameter lies in its frame.
  if (from.from == Operand::From::LocalVariable) i.memory.space = Space::Local;
  add_source(i, from);
  emit(i);
}

void FunctionDecoder::read_isspacep() {
  Instruction i = begin(Kind::IsSpace);
  Modifiers modifiers(m_, statement().modifiers);
  const auto space = modifiers.take_one(kSpaces);
  if (!space) unsupported("no space");
  finish_modifiers(modifiers);
  expect_operands(2);
  i.memory.space = *space;
  add_destination(i, destination(operand(0)));
  add_source(i, source(operand(1), {.bits = 64}));
  emit(i);
}

void FunctionDecoder::read_mapa() {
  Instruction i = begin(Kind::MapShared);
  Modifiers modifiers(m_, statement().modifiers);
  i.memory.space = modifiers.take_one(kSpaces).value_or(Space::Generic);
  const bool wide = modifiers.take(".u64");
  if (!wide && !modifiers.take(".u32")) unsupported("no type");
  finish_modifiers(modifiers);
  expect_operands(3);
  add_destination(i, destination(operand(0)));
  add_source(i, source(operand(1), {.bits = 64}));
  add_source(i, source(operand(2), {.bits = 32}));
  emit(i);
}

}  // namespace klap::emulator
