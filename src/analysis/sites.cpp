#include "analysis/sites.h"

#include <algorithm>

namespace klap::analysis {

using ptx::Statement;
using ptx::StatementKind;
using ptx::TokenRange;

std::optional<Call> parse_call(const ptx::Module& module, const Statement& s, const LocalNames& names) {
  if (s.kind != StatementKind::Instruction || !module.is(s.head, "call")) return std::nullopt;
  const auto list = [&](TokenRange range) {
    std::vector<std::string_view> out;
    for (uint32_t t = range.first; t < range.last; ++t) {
      if (module.tokens[t].kind == ptx::TokenKind::Identifier) out.push_back(module.text(t));
    }
    return out;
  };
  Call call;
  call.statement = &s;
  size_t next = 0;
  if (next < s.operands.size() && module.is(s.operands[next].first, "("))
    call.results = list(s.operands[next++]);
  if (next >= s.operands.size()) throw module.error_at(s.head, "call without a function");
  call.callee = module.text(s.operands[next++].first);
  if (next < s.operands.size() && module.is(s.operands[next].first, "("))
    call.parameters = list(s.operands[next]);
  call.direct = !names.is_register(call.callee);
  return call;
}

namespace {

// The stores of the actual parameters of one call: parameter name -> offset -> operand text.
using Actuals = std::map<std::string_view, std::map<uint32_t, std::string>>;

// What a scope of the form `{ .reg/.param declarations; st.param...; call; ld.param... }` says.
struct CallScope {
  Actuals actuals;
  std::string result;  // register that receives the (single) result
  std::string problem;
};

CallScope read_call_scope(const ptx::Module& module, const Statement& scope, const Statement& call) {
  CallScope out;
  for (const Statement& s : scope.body) {
    if (&s == &call || s.kind == StatementKind::Directive) continue;
    const bool plain = s.kind == StatementKind::Instruction && !s.predicated && s.operands.size() == 2;
    if (plain && module.is(s.head, "st") && module.has_modifier(s, ".param")) {
      const auto address = parse_address(module, s.operands[0]);
      if (!address || address->offset < 0) {
        out.problem = "a parameter store of unknown address";
        return out;
      }
      const uint32_t width = ptx::type_bytes(module.text(s.modifiers.last - 1));
      uint32_t offset = static_cast<uint32_t>(address->offset);
      for (std::string& component : components(module, s.operands[1])) {
        out.actuals[address->base][offset] = std::move(component);
        offset += width;
      }
    } else if (plain && module.is(s.head, "ld") && module.has_modifier(s, ".param")) {
      out.result = std::string(module.text(s.operands[0]));
    } else {
      out.problem = "the call's scope holds other instructions";
      return out;
    }
  }
  return out;
}

const std::string* actual(const CallScope& scope, std::string_view parameter, uint32_t offset) {
  const auto found = scope.actuals.find(parameter);
  if (found == scope.actuals.end()) return nullptr;
  const auto value = found->second.find(offset);
  return value == found->second.end() ? nullptr : &value->second;
}

class SiteFinder {
 public:
  SiteFinder(const ptx::Module& module, const ptx::Function& function, const ControlFlow& flow,
             const DataFlow& data)
      : m_(module), function_(function), flow_(flow), data_(data) {}

  std::vector<Site> run() {
    std::vector<Site> sites;
    const auto& instructions = flow_.instructions();
    for (uint32_t i = 0; i < instructions.size(); ++i) {
      const auto call = parse_call(m_, *instructions[i].statement, data_.names());
      if (!call || !call->direct) continue;
      if (idioms().is_get_buffer(call->callee)) {
        sites.push_back(site_at(i, *call));
      } else if (idioms().by_launch(call->callee) != nullptr && !taken(sites, call->statement)) {
        Site orphan;
        orphan.line = static_cast<uint32_t>(m_.line(call->statement->head));
        orphan.problem = "a launch whose argument buffer comes from elsewhere";
        sites.push_back(orphan);
      }
    }
    return sites;
  }

 private:
  static bool taken(const std::vector<Site>& sites, const Statement* launch) {
    return std::any_of(sites.begin(), sites.end(), [&](const Site& s) { return s.launch_call == launch; });
  }

  Site site_at(uint32_t index, const Call& get) {
    Site site;
    site.get_call = get.statement;
    site.line = static_cast<uint32_t>(m_.line(get.statement->head));
    site.problem = get_buffer(site, index, get);
    if (!site.understood()) return site;
    uint32_t at = index + 1;
    site.problem = null_test(site, at);
    if (!site.understood()) return site;
    site.problem = fill_and_launch(site, at);
    if (site.understood()) site.problem = buffer_escapes(site);
    std::sort(site.arguments.begin(), site.arguments.end(),
              [](const Argument& a, const Argument& b) { return a.offset < b.offset; });
    return site;
  }

  [[nodiscard]] const FlatInstruction& at(uint32_t index) const { return flow_.instructions()[index]; }

  std::string get_buffer(Site& site, uint32_t index, const Call& get) {
    site.get_scope = at(index).scope;
    if (site.get_scope == &function_.body) return "the call stands in no scope of its own";
    if (get.statement->predicated) return "the call is predicated";
    if (get.parameters.size() != 4) return "the call has an unexpected number of parameters";
    const CallScope scope = read_call_scope(m_, *site.get_scope, *get.statement);
    if (!scope.problem.empty()) return scope.problem;
    if (scope.result.empty()) return "the buffer's address is not used";
    site.buffer = scope.result;
    const std::string* callee = actual(scope, get.parameters[0], 0);
    const std::string* shared = actual(scope, get.parameters[3], 0);
    if (callee == nullptr || shared == nullptr) return "a parameter is not set";
    site.callee_operand = *callee;
    site.callee = data_.symbol(*callee).value_or("");
    site.shared = *shared;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      const std::string* grid = actual(scope, get.parameters[1], axis * 4);
      const std::string* block = actual(scope, get.parameters[2], axis * 4);
      if (grid == nullptr || block == nullptr) return "a dimension is not set by a 32-bit store";
      site.grid[axis] = *grid;
      site.block[axis] = *block;
    }
    return {};
  }

  // setp.eq.{s,u,b}64 p, buffer, 0;  @p bra ELSEWHERE;  possibly with unrelated instructions in between.
  // Leaves `i` behind the branch.
  std::string null_test(Site& site, uint32_t& i) {
    std::string_view predicate;
    const auto& instructions = flow_.instructions();
    // The ld.param of the result is still part of the first scope.
    while (i < instructions.size() && at(i).scope == site.get_scope) ++i;
    for (; i < instructions.size(); ++i) {
      const Statement& s = *at(i).statement;
      if (flow_.is_labelled(i)) return "a label stands before the null test";
      if (m_.is(s.head, "setp") && s.operands.size() == 3 && m_.text(s.operands[1]) == site.buffer) {
        if (s.modifiers.empty() || !m_.is(s.modifiers.first, ".eq") ||
            data_.constant(m_.text(s.operands[2])) != 0) {
          return "the buffer is not tested for null in the known way";
        }
        predicate = m_.text(s.operands[0]);
      } else if (m_.is(s.head, "bra")) {
        const bool on_null = s.predicated && !s.predicate_negated && m_.text(s.predicate) == predicate;
        if (!on_null) return "the branch after the call does not test the buffer";
        site.null_branch = &s;
        ++i;
        return {};
      } else if (m_.is(s.head, "call") || m_.is(s.head, "ret") || m_.is(s.head, "exit")) {
        return "the buffer is not tested for null";
      }
    }
    return "the buffer is not tested for null";
  }

  std::string fill_and_launch(Site& site, uint32_t i) {
    const auto& instructions = flow_.instructions();
    for (; i < instructions.size(); ++i) {
      const Statement& s = *at(i).statement;
      if (flow_.is_labelled(i)) return "a label stands between the two calls";
      if (const auto call = parse_call(m_, s, data_.names())) return launch(site, i, *call);
      const std::string_view opcode = m_.text(s.head);
      if (opcode == "bra" || opcode == "brx" || opcode == "ret" || opcode == "exit" || opcode == "trap") {
        return "control flow between the two calls";
      }
      if (opcode == "st") {
        const auto address = s.operands.size() == 2 ? parse_address(m_, s.operands[0]) : std::nullopt;
        if (address && address->base == site.buffer) {
          std::string problem = argument_store(site, s, *address);
          if (!problem.empty()) return problem;
        }
      }
    }
    return "no launch follows the buffer";
  }

  std::string argument_store(Site& site, const Statement& s, const Address& address) {
    if (s.predicated) return "an argument store is predicated";
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      const std::string_view modifier = m_.text(t);
      const bool known =
          modifier == ".global" || modifier == ".v2" || modifier == ".v4" || ptx::type_bytes(modifier) != 0;
      if (!known) return "an argument store of an unknown form";
    }
    const uint32_t width = ptx::type_bytes(m_.text(s.modifiers.last - 1));
    if (width == 0 || address.offset < 0) return "an argument store of unknown width or place";
    uint32_t offset = static_cast<uint32_t>(address.offset);
    for (std::string& component : components(m_, s.operands[1])) {
      if (component == site.buffer) return "the buffer's address is passed on";
      site.arguments.push_back(
          {offset, width, std::string(m_.text(s.modifiers.last - 1)), std::move(component)});
      offset += width;
    }
    return {};
  }

  std::string launch(Site& site, uint32_t i, const Call& call) {
    const Idiom* idiom = call.direct ? idioms().by_launch(call.callee) : nullptr;
    if (idiom == nullptr) return "another call stands between the two calls";
    if (call.statement->predicated || call.parameters.size() != 2) return "the launch has an unexpected form";
    site.launch_scope = at(i).scope;
    if (site.launch_scope == &function_.body) return "the launch stands in no scope of its own";
    site.launch_call = call.statement;
    const CallScope scope = read_call_scope(m_, *site.launch_scope, *call.statement);
    if (!scope.problem.empty()) return scope.problem;
    const std::string* buffer = actual(scope, call.parameters[0], 0);
    const std::string* stream = actual(scope, call.parameters[1], 0);
    if (buffer == nullptr || stream == nullptr || *buffer != site.buffer)
      return "the launch uses another buffer";
    site.idiom = idiom;
    site.stream = *stream;
    site.result = scope.result;
    return {};
  }

  // The buffer may be defined once and read by the null test, the argument stores and the launch only.
  std::string buffer_escapes(const Site& site) {
    if (data_.definitions(site.buffer).size() != 1) return "the buffer's register is written elsewhere too";
    for (uint32_t use : data_.uses(site.buffer)) {
      const FlatInstruction& f = at(use);
      const Statement& s = *f.statement;
      const bool test = m_.is(s.head, "setp");
      const bool fill = m_.is(s.head, "st") && parse_address(m_, s.operands[0]) &&
                        parse_address(m_, s.operands[0])->base == site.buffer;
      if (!test && !fill && f.scope != site.launch_scope)
        return "the buffer's address is used for something else";
    }
    return {};
  }

  const ptx::Module& m_;
  const ptx::Function& function_;
  const ControlFlow& flow_;
  const DataFlow& data_;
};

}  // namespace

std::vector<Site> find_sites(const ptx::Module& module, const ptx::Function& function,
                             const ControlFlow& flow, const DataFlow& data) {
  return SiteFinder(module, function, flow, data).run();
}

std::vector<ErrorQuery> find_error_queries(const ptx::Module& module, const ptx::Function& function,
                                           const ControlFlow& flow, const DataFlow& data) {
  std::vector<ErrorQuery> out;
  for (const FlatInstruction& f : flow.instructions()) {
    const auto call = parse_call(module, *f.statement, data.names());
    if (!call || !call->direct) continue;
    ErrorQuery query;
    query.clears = idioms().is_last_error(call->callee);
    if (!query.clears && !idioms().is_peek_last_error(call->callee)) continue;
    query.call = f.statement;
    query.scope = f.scope;
    if (f.scope == &function.body || f.statement->predicated) {
      query.problem = "the call stands in no scope of its own";
    } else {
      const CallScope scope = read_call_scope(module, *f.scope, *f.statement);
      query.problem = scope.problem;
      query.result = scope.result;
    }
    out.push_back(std::move(query));
  }
  return out;
}

}  // namespace klap::analysis
