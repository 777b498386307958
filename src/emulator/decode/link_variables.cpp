// Variables: their memory, and their first values.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <functional>
#include <span>

#include "emulator/decode/decode_constant.h"
#include "emulator/decode/link.h"

namespace klap::emulator {

using ptx::Module;

Symbol Linker::make_variable(const Definition& definition) {
  const Declaration& declaration = *definition.declaration;
  const DeclaredVariable& v = *definition.variable;
  if (declaration.is_reference) {
    image_->texture_names.push_back(definition.name);
    return {Symbol::Kind::Texture, static_cast<uint32_t>(image_->texture_names.size() - 1)};
  }
  if (declaration.space == ".shared") {
    image_->shared_variables.push_back({definition.name, v.is_unsized ? 0 : v.bytes, v.align});
    return {Symbol::Kind::Shared, static_cast<uint32_t>(image_->shared_variables.size() - 1)};
  }
  const bool is_const = declaration.space == ".const";
  if (!is_const && declaration.space != ".global") {
    throw error_at(ErrorCode::Unsupported, *definition.unit, v.token,
                   fmt::format("variable in space '{}'", declaration.space));
  }
  const Owner owner = declaration.is_managed ? Owner::Managed : Owner::Module;
  const auto address =
      memory_.allocate(std::max<uint64_t>(v.bytes, 1), owner, std::max(v.align, 1u), definition.name);
  if (!address) {
    throw error_at(ErrorCode::Link, *definition.unit, v.token,
                   fmt::format("no memory left for the {} bytes of '{}'", v.bytes, definition.name));
  }
  allocated_.emplace_back(*address, owner);
  image_->variables.push_back({.name = definition.name,
                               .address = *address,
                               .bytes = v.bytes,
                               .align = v.align,
                               .is_const = is_const,
                               .is_managed = declaration.is_managed});
  return {Symbol::Kind::Variable, static_cast<uint32_t>(image_->variables.size() - 1)};
}

Symbol Linker::declare_in_function(const Module& unit, const Declaration& declaration,
                                   const DeclaredVariable& variable) {
  Definition made{.name = std::string(variable.name), .unit = &unit, .token = variable.token};
  made.declaration = &declaration;
  made.variable = &variable;
  const Symbol symbol = make_variable(made);
  if (symbol.kind == Symbol::Kind::Variable) {
    image_->variables[symbol.index].visible = false;
    initialise(unit, variable, image_->variables[symbol.index].address);
  }
  return symbol;
}

namespace {

// Writes the values of an initialiser one after the other. Braces may be left out inside, as in C: a value
// that stands where an inner list could goes to the next element.
class Initialiser {
 public:
  using AddressOf = std::function<uint64_t(const ConstantValue&)>;
  Initialiser(const Module& module, const DeclaredVariable& v, std::span<std::byte> memory, AddressOf address)
      : m_(module), v_(v), memory_(memory), address_(std::move(address)), reader_(module, v.initialiser) {}

  void run() {
    if (is_list())
      list(0, 0);
    else
      value(0);
    if (!reader_.at_end()) fail("unexpected text after an initialiser");
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw error_at(ErrorCode::Parse, m_, std::min(reader_.at(), v_.initialiser.last - 1), reason);
  }
  [[nodiscard]] bool is_list() const {
    return reader_.at() < v_.initialiser.last && m_.is(reader_.at(), "{");
  }
  // Elements in one item of a list at this depth.
  [[nodiscard]] uint64_t stride(size_t depth) const {
    uint64_t count = 1;
    for (size_t i = depth + 1; i < v_.dimensions.size(); ++i) count *= v_.dimensions[i];
    return count;
  }

  void list(size_t depth, uint64_t element) {
    if (depth >= v_.dimensions.size()) fail("more braces than dimensions");
    const uint64_t end = element + stride(depth) * v_.dimensions[depth];
    reader_.accept("{");
    while (!reader_.accept("}")) {
      if (element >= end) fail(fmt::format("more values than '{}' has elements", v_.name));
      if (is_list()) {
        list(depth + 1, element);
        element += stride(depth);
      } else {
        value(element++);
      }
      if (!reader_.accept(",") && !(reader_.at() < v_.initialiser.last && m_.is(reader_.at(), "}"))) {
        fail("expected ',' or '}' in an initialiser");
      }
    }
  }

  void value(uint64_t element) {
    const ConstantValue read = reader_.read();
    const uint32_t bytes = v_.element_bytes;
    uint64_t bits = 0;
    if (read.kind == ConstantValue::Kind::Symbol) {
      bits = (address_(read) & read.mask) >> std::countr_zero(read.mask);
      if (bytes < 8 && (bits >> (8 * bytes)) != 0) {
        throw error_at(ErrorCode::Link, m_, read.token, "address does not fit the variable");
      }
    } else {
      const bool is_float = v_.type.starts_with(".f");
      bits = bits_of(m_, read, {static_cast<uint8_t>(8 * std::min(bytes, 8u)), is_float});
    }
    std::memcpy(memory_.data() + element * bytes, &bits, std::min(bytes, 8u));
  }

  const Module& m_;
  const DeclaredVariable& v_;
  std::span<std::byte> memory_;
  AddressOf address_;
  ConstantReader reader_;
};

}  // namespace

void Linker::initialise(const Module& unit, const DeclaredVariable& v, uint64_t address) {
  auto* const bytes = reinterpret_cast<std::byte*>(address);  // a device address is a pointer: memory.h
  std::memset(bytes, 0, v.bytes);
  if (v.initialiser.empty()) return;
  const auto address_of = [&](const ConstantValue& value) -> uint64_t {
    const Symbol symbol = find(unit, unit.text(value.token), value.token);
    if (symbol.kind == Symbol::Kind::Function) return address_of_function(symbol.index) + value.bits;
    if (symbol.kind == Symbol::Kind::Variable) return image_->variables[symbol.index].address + value.bits;
    throw error_at(ErrorCode::Link, unit, value.token, "this symbol has no address before a kernel runs");
  };
  Initialiser(unit, v, {bytes, v.bytes}, address_of).run();
}

}  // namespace klap::emulator
