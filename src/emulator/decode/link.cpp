// Choosing definitions.
#include "emulator/decode/link.h"

#include <fmt/format.h>

#include "emulator/decode/builtins.h"
#include "emulator/decode/decode_constant.h"

namespace klap::emulator {

using ptx::Linkage;
using ptx::Module;

namespace {

// The toolkit's device runtime calls down into the driver by names that no program uses.
bool is_device_runtime(const Module& unit) {
  for (const ptx::Function& f : unit.functions) {
    const bool is_driver = f.name.starts_with("__cuda_syscall_cnp") || f.name.starts_with("cnpLaunchDevice");
    if (!f.is_definition && is_driver) return true;
  }
  return false;
}

}  // namespace

Linker::Linker(const std::vector<const Module*>& units, Memory& memory) : memory_(memory) {
  for (const Module* unit : units) {
    if (!is_device_runtime(*unit)) units_.push_back(unit);
  }
}

void Linker::run() {
  for (const Module* unit : units_) collect(*unit);
  make_symbols();
}

void Linker::free_all() {
  for (const auto& [address, owner] : allocated_) memory_.free(address, owner);
}

// ---- definitions ----

void Linker::collect(const Module& unit) {
  for (const ptx::Item& item : unit.items) {
    if (item.kind == ptx::ItemKind::Variable) collect_variables(unit, item.tokens);
    if (item.kind == ptx::ItemKind::Other && unit.is(item.tokens.first, ".alias")) {
      collect_alias(unit, item.tokens);
    }
    if (item.kind != ptx::ItemKind::Function) continue;
    const ptx::Function& f = unit.functions[item.index];
    if (f.is_definition) {
      add({.name = f.name, .unit = &unit, .linkage = f.linkage, .token = f.name_token, .function = &f});
    }
  }
}

void Linker::collect_variables(const Module& unit, ptx::TokenRange item) {
  const Declaration& d = declarations_.emplace_back(read_declaration(unit, item));
  for (const DeclaredVariable& v : d.variables) {
    for (uint32_t i = 0; i < std::max(1u, v.range); ++i) {
      Definition made{.name = std::string(v.name), .unit = &unit, .linkage = d.linkage, .token = v.token};
      if (v.range != 0) made.name += std::to_string(i);
      made.declaration = &d;
      made.variable = &v;
      if (d.linkage != Linkage::Extern) {
        add(std::move(made));
      } else if (d.space == ".shared") {
        Definition& kept = definitions_.emplace_back(std::move(made));
        dynamic_shared_[&unit].emplace(kept.name, &kept);
      }
    }
  }
}

// `.alias name, function;`: name is declared before, and as visible as its declaration says.
void Linker::collect_alias(const Module& unit, ptx::TokenRange item) {
  if (item.size() < 4) throw error_at(ErrorCode::Parse, unit, item.first, "malformed .alias");
  const uint32_t token = item.first + 1;
  const ptx::Function* declared = unit.find_function(unit.text(token));
  add({.name = std::string(unit.text(token)),
       .unit = &unit,
       .linkage = declared == nullptr ? Linkage::Internal : declared->linkage,
       .token = token,
       .alias_of = unit.text(item.first + 3)});
}

void Linker::add(Definition definition) {
  const bool is_own = definition.linkage == Linkage::Internal;
  Table& table = is_own ? own_names_[definition.unit] : shared_names_;
  Definition& made = definitions_.emplace_back(std::move(definition));
  const auto [entry, is_new] = table.emplace(made.name, &made);
  if (is_new) return;
  Definition& other = *entry->second;
  const auto strength = [](const Definition& d) {
    return d.linkage == Linkage::Weak ? 0 : d.linkage == Linkage::Common ? 1 : 2;
  };
  if (strength(made) == 2 && strength(other) == 2) {
    throw error_at(ErrorCode::Link, *made.unit, made.token,
                   fmt::format("'{}' is defined more than once, first in {}:{}", made.name, other.unit->name,
                               other.unit->line(other.token)));
  }
  const bool larger = strength(made) == 1 && strength(other) == 1 && made.variable != nullptr &&
                      other.variable != nullptr && made.variable->bytes > other.variable->bytes;
  const bool takes_over = strength(made) > strength(other) || larger;
  (takes_over ? other : made).dropped = true;
  if (takes_over) entry->second = &made;
}

// ---- symbols ----

void Linker::make_symbols() {
  for (Definition& d : definitions_) {
    if (!d.dropped) make_symbol(d);
  }
  // The host cannot tell apart variables that several units keep to themselves under one name. It gets the
  // first, and a variable that the units share comes before that.
  for (const bool own : {false, true}) {
    for (const Definition& d : definitions_) {
      if (!d.dropped && (d.linkage == Linkage::Internal) == own) name_for_host(d);
    }
  }
  for (const Definition& d : definitions_) {
    if (!d.dropped && d.symbol.kind == Symbol::Kind::Variable) {
      initialise(*d.unit, *d.variable, image_->variables[d.symbol.index].address);
    }
  }
}

void Linker::make_symbol(Definition& d) {
  if (d.declaration != nullptr) {
    d.symbol = make_variable(d);
  } else if (d.function != nullptr) {
    d.symbol = {Symbol::Kind::Function, static_cast<uint32_t>(image_->functions.size())};
    auto made = std::make_unique<Function>();
    made->name = d.name;
    made->unit = d.unit->name;
    made->is_kernel = d.function->kind == ptx::FunctionKind::Entry;
    image_->functions.push_back(std::move(made));
  }
}

void Linker::name_for_host(const Definition& d) {
  if (d.symbol.kind == Symbol::Kind::Function && image_->functions[d.symbol.index]->is_kernel) {
    image_->kernels.emplace(d.name, d.symbol.index);
  }
  if (d.symbol.kind == Symbol::Kind::Variable) {
    const bool first = host_variables_.emplace(d.name, d.symbol.index).second;
    image_->variables[d.symbol.index].visible = first;
  }
}

Symbol Linker::find(const Module& unit, std::string_view name, uint32_t token) {
  const auto in = [&](const Table& table) -> const Definition* {
    const auto found = table.find(name);
    return found == table.end() ? nullptr : found->second;
  };
  const Definition* found = in(own_names_[&unit]);
  if (found == nullptr) found = in(shared_names_);
  if (found == nullptr) found = in(dynamic_shared_[&unit]);
  if (found != nullptr && !found->alias_of.empty()) {
    if (found->alias_of == name) throw error_at(ErrorCode::Parse, unit, token, "alias of itself");
    return find(*found->unit, found->alias_of, token);
  }
  if (found != nullptr) return found->symbol;
  const Symbol provided = builtin(unit, name);
  if (provided.kind != Symbol::Kind::None) return provided;
  throw error_at(ErrorCode::Link, unit, token, fmt::format("undefined symbol '{}'", name));
}

// The machine's function of this name, which appears in the image once it is used.
Symbol Linker::builtin(const Module& unit, std::string_view name) {
  const int number = find_builtin(name);
  const ptx::Function* declared = unit.find_function(name);
  if (number < 0 || declared == nullptr) return {};
  const auto [entry, is_new] = builtins_.emplace(number, static_cast<uint32_t>(image_->functions.size()));
  if (is_new) {
    auto made = std::make_unique<Function>();
    made->name = std::string(name);
    made->unit = unit.name;
    made->builtin = number;
    for (const ptx::Parameter& p : declared->parameters) made->parameters.push_back({{}, p.bytes, p.offset});
    for (const ptx::Parameter& p : declared->results) made->results.push_back({{}, p.bytes, p.offset});
    image_->functions.push_back(std::move(made));
  }
  return {Symbol::Kind::Function, entry->second};
}

uint64_t Linker::address_of_function(uint32_t function) {
  if (address_taken_.size() <= function) address_taken_.resize(function + 1);
  if (!address_taken_[function] && !image_->functions[function]->is_kernel) {
    image_->indirect_callees.push_back(function);
  }
  address_taken_[function] = true;
  return kCodeWindow + 16 * uint64_t{function};
}

// ---- bodies ----

std::vector<Linker::Body> Linker::bodies() const {
  std::vector<Body> out;
  for (const Module* unit : units_) {
    for (const Definition& d : definitions_) {
      if (d.unit != unit || d.dropped || d.function == nullptr) continue;
      out.push_back({unit, d.function, image_->functions[d.symbol.index].get()});
    }
  }
  return out;
}

}  // namespace klap::emulator
