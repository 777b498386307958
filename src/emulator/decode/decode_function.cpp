// The frame around the instructions: headers, the loop, branch targets.
#include "emulator/decode/decode_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "emulator/decode/decode_constant.h"
#include "ptx/opcodes.h"

namespace klap::emulator {

using ptx::Statement;

// ---- modifiers ----

Modifiers::Modifiers(const ptx::Module& module, ptx::TokenRange range) {
  for (uint32_t t = range.first; t < range.last; ++t) all_.push_back(module.text(t));
  taken_.resize(all_.size());
}

bool Modifiers::take(std::string_view modifier) {
  const auto found = std::find(all_.begin(), all_.end(), modifier);
  if (found == all_.end()) return false;
  taken_[static_cast<size_t>(found - all_.begin())] = true;
  return true;
}

bool Modifiers::take_prefixed(std::string_view prefix) {
  for (size_t i = 0; i < all_.size(); ++i) {
    if (taken_[i] || !all_[i].starts_with(prefix)) continue;
    taken_[i] = true;
    return true;
  }
  return false;
}

std::string_view Modifiers::left_over() const {
  const auto found = std::find(taken_.begin(), taken_.end(), false);
  return found == taken_.end() ? std::string_view() : all_[static_cast<size_t>(found - taken_.begin())];
}

// ---- the function ----

FunctionDecoder::FunctionDecoder(Linker& linker, const ptx::Module& module, const ptx::LineNumbers& lines,
                                 const ptx::Function& function, Function& out)
    : linker_(linker),
      m_(module),
      lines_(lines),
      function_(function),
      out_(out),
      flow_(module, function),
      registers_(flow_),
      columns_(assign_columns(flow_, registers_)),
      scopes_(linker, flow_, out) {}

void FunctionDecoder::run() {
  out_.columns = columns_.count;
  out_.register_estimate = columns_.register_estimate;
  describe_header();
  const auto count = static_cast<uint32_t>(flow_.instructions().size());
  for (at_ = 0; at_ < count; ++at_) {
    places_.push_back(static_cast<uint32_t>(out_.code.size()));
    try {
      read_instruction();
    } catch (Error& error) {
      if (error.code() != ErrorCode::Unsupported) throw error.kernel(function_.name);
      if (out_.unsupported.empty()) out_.unsupported = error.kernel(function_.name).what();
    }
  }
  places_.push_back(static_cast<uint32_t>(out_.code.size()));
  finish();
}

void FunctionDecoder::describe_header() {
  for (const ptx::Parameter& p : function_.parameters) {
    if (out_.is_kernel) {
      out_.parameter_offsets.push_back(p.offset);
      out_.parameter_sizes.push_back(p.bytes);
    } else {
      out_.parameters.push_back(formal(p));
    }
  }
  for (const ptx::Parameter& p : function_.results) out_.results.push_back(formal(p));
  out_.parameter_bytes = out_.is_kernel ? function_.parameter_bytes : 0;
  describe_attributes();
}

FormalParameter FunctionDecoder::formal(const ptx::Parameter& p) {
  FormalParameter out{{}, p.bytes, p.offset};
  if (!m_.is(p.tokens.first, ".reg")) {
    out.where = {Operand::From::LocalVariable, scopes_.find(nullptr, p.name)->offset};
    return out;
  }
  for (uint32_t reg = 0; reg < registers_.all().size(); ++reg) {
    if (registers_[reg].is_parameter && registers_[reg].name == p.name) {
      out.where = {Operand::From::Register, columns_.first[reg]};
    }
  }
  return out;
}

void FunctionDecoder::describe_attributes() {
  const auto numbers = [&](uint32_t at, std::array<uint32_t, 3>& out) {
    out = {1, 1, 1};
    for (size_t n = 0; n < 3 && at < function_.attributes.last; ++n) {
      out[n] = static_cast<uint32_t>(ptx::integer_value(m_.text(at)).value_or(1));
      if (at + 1 >= function_.attributes.last || !m_.is(at + 1, ",")) break;
      at += 2;
    }
  };
  for (uint32_t t = function_.attributes.first; t < function_.attributes.last; ++t) {
    if (m_.is(t, ".reqntid")) numbers(t + 1, out_.limits.required);
    if (m_.is(t, ".maxntid")) numbers(t + 1, out_.limits.maximum);
    std::array<uint32_t, 3> value{};
    if (m_.is(t, ".maxnreg")) {
      numbers(t + 1, value);
      out_.register_estimate = std::min(out_.register_estimate, value[0]);
    }
    if (m_.is(t, ".reqnctapercluster")) {
      numbers(t + 1, value);
      if (value != std::array<uint32_t, 3>{1, 1, 1}) {
        out_.unsupported =
            error_at(ErrorCode::Unsupported, m_, t, "clusters of blocks").kernel(function_.name).what();
      }
    }
  }
}

// ---- instructions ----

FunctionDecoder::Reader FunctionDecoder::reader_of(std::string_view opcode) {
  using D = FunctionDecoder;
  static const std::unordered_map<std::string_view, Reader> kReaders = {
      {"mov", &D::read_move},
      {"ld", &D::read_load},
      {"ldu", &D::read_load},
      {"st", &D::read_store},
      {"atom", &D::read_atomic},
      {"red", &D::read_atomic},
      {"fence", &D::read_fence},
      {"membar", &D::read_membar},
      {"prefetch", &D::read_hint},
      {"prefetchu", &D::read_hint},
      {"applypriority", &D::read_hint},
      {"discard", &D::read_hint},
      {"createpolicy", &D::read_create_policy},
      {"cp", &D::read_copy},
      {"cvta", &D::read_cvta},
      {"isspacep", &D::read_isspacep},
      {"mapa", &D::read_mapa},
      {"bar", &D::read_barrier},
      {"barrier", &D::read_barrier},
      {"shfl", &D::read_shuffle},
      {"vote", &D::read_vote},
      {"match", &D::read_match},
      {"redux", &D::read_redux},
      {"activemask", &D::read_active_mask},
      {"elect", &D::read_elect},
      {"bra", &D::read_branch},
      {"brx", &D::read_indexed_branch},
      {"call", &D::read_call},
      {"ret", &D::read_return},
      {"exit", &D::read_plain},
      {"trap", &D::read_plain},
      {"brkpt", &D::read_plain},
      {"pmevent", &D::read_plain},
      {"setmaxnreg", &D::read_plain},
      {"nanosleep", &D::read_nanosleep},
      {"griddepcontrol", &D::read_dependency},
      {"stacksave", &D::read_stack},
      {"stackrestore", &D::read_stack},
      {"alloca", &D::read_stack},
      {"tex", &D::read_texture},
  };
  const auto found = kReaders.find(opcode);
  if (found != kReaders.end()) return found->second;
  return ptx::opcode_of(opcode).is_computation() ? &D::read_alu : nullptr;
}

void FunctionDecoder::read_instruction() {
  const std::string_view opcode = m_.text(statement().head);
  if (!ptx::opcode_of(opcode).is_known()) unsupported("PTX has no such opcode");
  const Reader reader = reader_of(opcode);
  if (reader == nullptr) unsupported("this opcode is not supported");
  (this->*reader)();
}

Instruction FunctionDecoder::begin(Kind kind) {
  const Statement& s = statement();
  Instruction i;
  i.kind = kind;
  i.line = static_cast<uint32_t>(lines_.of(s.head));
  const auto [opcode, is_new] =
      opcodes_.emplace(m_.full_opcode(s), static_cast<uint32_t>(out_.opcodes.size()));
  if (is_new) out_.opcodes.push_back(opcode->first);
  i.opcode = opcode->second;
  if (s.predicated) {
    const auto guard = register_use({s.predicate, s.predicate + 1});
    if (!guard || guard->bits != 1) {
      throw error_at(ErrorCode::Parse, m_, s.predicate, "the guard is not a predicate register");
    }
    i.guarded = true;
    i.guard_negated = s.predicate_negated;
    i.guard = guard->column;
  }
  return i;
}

void FunctionDecoder::emit(const Instruction& instruction) { out_.code.push_back(instruction); }

void FunctionDecoder::expect_operands(size_t least, size_t most) {
  const size_t count = statement().operands.size();
  if (count < least || count > most) unsupported(fmt::format("{} operands", count));
}

void FunctionDecoder::finish_modifiers(const Modifiers& modifiers) {
  if (!modifiers.left_over().empty()) unsupported(fmt::format("modifier '{}'", modifiers.left_over()));
}

void FunctionDecoder::unsupported(const std::string& reason) const {
  unsupported_at(statement().head, reason);
}

void FunctionDecoder::unsupported_at(uint32_t token, const std::string& reason) const {
  throw error_at(ErrorCode::Unsupported, m_, token,
                 fmt::format("the emulator does not know '{}': {}", m_.full_opcode(statement()), reason));
}

void FunctionDecoder::add_destination(Instruction& i, const Operand& operand) const {
  if (i.destination_count == i.destinations.size()) unsupported("more destinations than any instruction has");
  i.destinations[i.destination_count++] = operand;
}

void FunctionDecoder::add_source(Instruction& i, const Operand& operand) const {
  if (i.source_count == i.sources.size()) unsupported("more sources than any instruction has");
  i.sources[i.source_count++] = operand;
}

// Labels become places in the code, and running off the end a return.
void FunctionDecoder::finish() {
  const auto end = static_cast<uint32_t>(out_.code.size());
  bool falls_off = out_.code.empty();
  for (Instruction& i : out_.code) {
    if (i.kind != Kind::Branch) continue;
    i.target = places_[i.target];
    falls_off = falls_off || i.target == end;
  }
  for (std::vector<uint32_t>& table : out_.tables) {
    for (uint32_t& target : table) {
      target = places_[target];
      falls_off = falls_off || target == end;
    }
  }
  if (!falls_off) {
    const Instruction& last = out_.code.back();
    const bool leaves = last.kind == Kind::Return || last.kind == Kind::Exit || last.kind == Kind::Trap ||
                        last.kind == Kind::Branch || last.kind == Kind::IndexedBranch;
    falls_off = last.guarded || !leaves;
  }
  if (!falls_off) return;
  Instruction leave;
  leave.kind = out_.is_kernel ? Kind::Exit : Kind::Return;
  leave.line = static_cast<uint32_t>(lines_.of(function_.tokens.last - 1));
  leave.opcode = static_cast<uint32_t>(out_.opcodes.size());
  out_.opcodes.emplace_back("}");
  emit(leave);
}

}  // namespace klap::emulator
