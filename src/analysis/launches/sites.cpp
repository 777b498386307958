#include "analysis/launches/sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/graph/register_bits.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {

using ptx::Statement;

namespace {

class SiteFinder {
 public:
  SiteFinder(const ptx::Module& module, const ptx::Function& function, const ControlFlow& flow,
             const DataFlow& data)
      : m_(module), function_(function), flow_(flow), data_(data) {}

  // A launch may stand in the text before the call that asks for its buffer. So all of these are looked at
  // first.
  std::vector<Site> run() {
    std::map<uint32_t, Site> asking;
    for_each_runtime_call([&](uint32_t i, const Call& call, std::string_view function) {
      const Idiom* idiom = idioms().by_get_buffer(function);
      if (idiom != nullptr) asking.emplace(i, site_at(i, call, idiom->form));
    });
    std::set<const Statement*> taken;
    for (const auto& [i, site] : asking) taken.insert(site.launch_call);
    std::vector<Site> sites;
    for_each_runtime_call([&](uint32_t i, const Call& call, std::string_view function) {
      if (const auto found = asking.find(i); found != asking.end()) {
        sites.push_back(std::move(found->second));
      } else if (const Idiom* launched = idioms().by_launch(function)) {
        if (!taken.contains(call.statement)) lone_launch(sites, orphan(i, call, *launched));
      }
    });
    if (!sites.empty() && is_wrapper_of_calls(m_, function_)) sites.clear();
    return sites;
  }

 private:
  template <class Visit>
  void for_each_runtime_call(Visit visit) {
    const auto& instructions = flow_.instructions();
    for (uint32_t i = 0; i < instructions.size(); ++i) {
      const auto call = parse_call(m_, *instructions[i].statement, data_.names());
      if (call && call->direct) visit(i, *call, runtime_function(m_, call->callee));
    }
  }

  // The launch of a site whose first call was not understood is not a site of its own.
  void lone_launch(std::vector<Site>& sites, Site launch) {
    const auto begun = std::find_if(sites.rbegin(), sites.rend(), [](const Site& s) {
      return s.get_call != nullptr && s.launch_call == nullptr;
    });
    if (begun == sites.rend() || completed_.contains(begun->get_call)) {
      sites.push_back(std::move(launch));
      return;
    }
    completed_.insert(begun->get_call);
    begun->idiom = launch.idiom;
    if (begun->callee.empty()) begun->callee = launch.callee;
    const bool says_more = launch.problem.find(": ") != std::string::npos &&
                           launch.problem.find(m_.place(begun->get_call->head)) == std::string::npos;
    if (says_more) begun->problem += "; behind it, " + launch.problem;
  }

  // A launch that belongs to no call for a buffer before it.
  Site orphan(uint32_t index, const Call& call, const Idiom& idiom) {
    Site site;
    site.position = m_.position(call.statement->head);
    site.idiom = &idiom;
    site.problem = "a launch whose argument buffer comes from elsewhere";
    const bool documented = idiom.form == LaunchForm::Documented;
    if (at(index).scope == &function_.body || call.parameters.size() != (documented ? 6 : 2)) return site;
    const CallScope scope = read_call_scope(m_, *at(index).scope, *call.statement);
    if (documented) {
      // This call only names the child and its grid; the site counts as not understood either way.
      static_cast<void>(description(site, scope, call.parameters[0], {call.parameters[2], call.parameters[3]},
                                    call.parameters[4]));
    }
    const std::string* buffer = scope.actual(call.parameters[documented ? 1 : 0], 0);
    if (buffer == nullptr) return site;
    site.problem += ": " + print(origins_of({m_, function_, flow_, data_}, *buffer), function_);
    return site;
  }

  Site site_at(uint32_t index, const Call& get, LaunchForm form) {
    Site site;
    site.get_call = get.statement;
    site.position = m_.position(get.statement->head);
    site.problem = get_buffer(site, index, get, form);
    if (!site.understood()) return site;
    site.problem = follow(site, index + 1, form);
    if (site.understood()) site.problem = buffer_escapes(site);
    std::sort(site.arguments.begin(), site.arguments.end(),
              [](const Argument& a, const Argument& b) { return a.offset < b.offset; });
    return site;
  }

  // True if the scope loads a result of that width to a register of the same width.
  bool is_result_of(const CallScope& scope, uint32_t bytes) {
    if (!registers_) registers_.emplace(m_, function_);
    return scope.result_bytes == bytes && registers_->of(scope.result) == 8 * bytes;
  }

  static constexpr std::string_view kUnknownResult = "the call's result is read in another width";
  static constexpr std::string_view kControlFlow = "control flow between the two calls";
  static constexpr std::string_view kUnknownNullTest = "the buffer is not tested for null in the known way";

  [[nodiscard]] const FlatInstruction& at(uint32_t index) const { return flow_.instructions()[index]; }

  // The problem's text, with the instruction that shows it.
  [[nodiscard]] std::string problem(std::string_view what, const Statement& s) const {
    return fmt::format("{} ({})", what, m_.place(s.head));
  }

  std::string get_buffer(Site& site, uint32_t index, const Call& get, LaunchForm form) {
    site.get_scope = at(index).scope;
    if (site.get_scope == &function_.body) return "the call stands in no scope of its own";
    if (get.statement->predicated) return "the call is predicated";
    if (get.parameters.size() != (form == LaunchForm::Documented ? 2 : 4))
      return "the call has an unexpected number of parameters";
    const CallScope scope = read_call_scope(m_, *site.get_scope, *get.statement);
    if (!scope.problem.empty()) return scope.problem;
    if (scope.result.empty()) return "the buffer's address is not used";
    if (!is_result_of(scope, 8)) return problem(kUnknownResult, *get.statement);
    site.buffer = scope.result;
    if (form == LaunchForm::Described) {
      return description(site, scope, get.parameters[0], {get.parameters[1], get.parameters[2]},
                         get.parameters[3]);
    }
    const std::string* bytes = scope.actual(get.parameters[1], 0, 8);
    if (bytes == nullptr) return "a parameter is not set";
    site.buffer_bytes = *bytes;
    return {};
  }

  // Reads the child, grid, block and shared memory, which both forms pass to their describing call.
  std::string description(Site& site, const CallScope& scope, std::string_view callee_name,
                          std::array<std::string_view, 2> grid_and_block, std::string_view shared_name) {
    const std::string* callee = scope.actual(callee_name, 0, 8);
    const std::string* shared = scope.actual(shared_name, 0, 4);
    if (callee == nullptr || shared == nullptr) return "a parameter is not set";
    site.callee_operand = *callee;
    site.callee = data_.symbol(*callee).value_or("");
    if (site.callee.empty()) {
      // Several definitions that all are the same kernel's address are as good as one.
      const auto origins = origins_of({m_, function_, flow_, data_}, *callee);
      if (origins.size() == 1 && origins[0].kind == OriginKind::Symbol) site.callee = origins[0].name;
    }
    site.shared = *shared;
    for (uint32_t axis = 0; axis < 3; ++axis) {
      const std::string* grid = scope.actual(grid_and_block[0], axis * 4, 4);
      const std::string* block = scope.actual(grid_and_block[1], axis * 4, 4);
      if (grid == nullptr || block == nullptr) return "a dimension is not set by a 32-bit store";
      site.grid[axis] = *grid;
      site.block[axis] = *block;
    }
    return {};
  }

  // Walks from behind the first call along the only path to the second, over the null test, if there is one,
  // and the argument stores. Without a test the stores of a launch that CUDA refuses would end the program
  // natively. Here they go into a record of no blocks.
  std::string follow(Site& site, uint32_t i, LaunchForm form) {
    path_.clear();
    null_when_.clear();
    const auto& instructions = flow_.instructions();
    // The ld.param of the result is still part of the first scope.
    while (i < instructions.size() && at(i).scope == site.get_scope) ++i;
    bool labelled = i < instructions.size() && flow_.is_labelled(i);
    while (i < instructions.size() && path_.size() <= instructions.size()) {
      const Statement& s = *at(i).statement;
      if (labelled) return problem("a label stands between the two calls", s);
      if (const auto call = parse_call(m_, s, data_.names())) return launch(site, i, *call, form);
      const std::string_view opcode = m_.text(s.head);
      if (opcode == "brx" || opcode == "ret" || opcode == "exit" || opcode == "trap")
        return problem(kControlFlow, s);
      path_.push_back(i);
      if (opcode == "bra") {
        std::string wrong = branch(site, s, i);
        if (!wrong.empty()) return wrong;
        labelled = site.null_branch == &s && leaves_on_null(s) && flow_.is_labelled(i);
        continue;
      }
      std::string wrong = opcode == "st" ? store(site, s) : predicate(site, s);
      if (!wrong.empty()) return wrong;
      ++i;
      labelled = i < instructions.size() && flow_.is_labelled(i);
    }
    return "no launch follows the buffer";
  }

  // `setp.eq p, buffer, 0` and `.ne`, and `not.pred` of it; anything else that writes a known predicate makes
  // it unknown.
  std::string predicate(const Site& site, const Statement& s) {
    const bool test =
        m_.is(s.head, "setp") && s.operands.size() == 3 && m_.text(s.operands[1]) == site.buffer;
    const bool equal = !s.modifiers.empty() && m_.is(s.modifiers.first, ".eq");
    if (test) {
      const bool known = equal || (!s.modifiers.empty() && m_.is(s.modifiers.first, ".ne"));
      if (!known || s.predicated || data_.constant(m_.text(s.operands[2])) != 0)
        return problem(kUnknownNullTest, s);
      null_when_[m_.text(s.operands[0])] = equal;
      return {};
    }
    if (m_.is(s.head, "not") && s.operands.size() == 2 && !s.predicated) {
      const auto source = null_when_.find(m_.text(s.operands[1]));
      if (source != null_when_.end()) {
        null_when_[m_.text(s.operands[0])] = !source->second;
        return {};
      }
    }
    for (const std::string_view written : registers_of(m_, s, data_.names()).written)
      null_when_.erase(written);
    return {};
  }

  // True for a branch that is taken where the buffer is null.
  [[nodiscard]] bool leaves_on_null(const Statement& branch) const {
    const auto known = null_when_.find(m_.text(branch.predicate));
    return known != null_when_.end() && known->second != branch.predicate_negated;
  }

  // Moves `i` to where the path goes on behind a branch.
  std::string branch(Site& site, const Statement& s, uint32_t& i) {
    if (!s.predicated) {
      i = jump_target(i);
      return i == ControlFlow::npos ? problem("a branch that others join stands between the two calls", s)
                                    : "";
    }
    if (site.null_branch != nullptr) return problem(kControlFlow, s);
    if (!null_when_.contains(m_.text(s.predicate)))
      return problem("the branch behind the call does not test the buffer", s);
    site.null_branch = &s;
    if (leaves_on_null(s)) {
      ++i;
      return {};
    }
    i = jump_target(i);
    return i == ControlFlow::npos ? problem(kUnknownNullTest, s) : "";
  }

  // Where a branch goes, if nothing else goes there.
  [[nodiscard]] uint32_t jump_target(uint32_t i) const {
    const Statement& s = *at(i).statement;
    const auto& blocks = flow_.blocks();
    const auto& successors = blocks[at(i).block].successors;
    if (flow_.has_unknown_branch() || successors.size() != (s.predicated ? 2u : 1u)) return ControlFlow::npos;
    for (uint32_t target : successors) {
      const bool falls_through = s.predicated && blocks[target].first == i + 1;
      if (falls_through) continue;
      size_t entries = target == 0 ? 1 : 0;
      for (const BasicBlock& b : blocks)
        entries += static_cast<size_t>(std::count(b.successors.begin(), b.successors.end(), target));
      if (entries == 1) return blocks[target].first;
    }
    return ControlFlow::npos;
  }

  std::string store(Site& site, const Statement& s) {
    const auto address = s.operands.size() == 2 ? parse_address(m_, s.operands[0]) : std::nullopt;
    return address && address->base == site.buffer ? argument_store(site, s, *address) : "";
  }

  std::string argument_store(Site& site, const Statement& s, const Address& address) {
    if (s.predicated) return problem("an argument store is predicated", s);
    for (uint32_t t = s.modifiers.first; t < s.modifiers.last; ++t) {
      const std::string_view modifier = m_.text(t);
      const bool known =
          modifier == ".global" || modifier == ".v2" || modifier == ".v4" || ptx::type_bytes(modifier) != 0;
      if (!known) return problem("an argument store of an unknown form", s);
    }
    const uint32_t width = ptx::type_bytes(m_.text(s.modifiers.last - 1));
    if (width == 0 || address.offset < 0) return problem("an argument store of unknown width or place", s);
    uint32_t offset = static_cast<uint32_t>(address.offset);
    for (std::string& component : components(m_, s.operands[1])) {
      if (component == site.buffer) return problem("the buffer's address is passed on", s);
      site.arguments.push_back(
          {offset, width, std::string(m_.text(s.modifiers.last - 1)), std::move(component), &s});
      offset += width;
    }
    return {};
  }

  std::string launch(Site& site, uint32_t i, const Call& call, LaunchForm form) {
    const Idiom* idiom = call.direct ? idioms().by_launch(runtime_function(m_, call.callee)) : nullptr;
    if (idiom == nullptr) return problem("another call stands between the two calls", *call.statement);
    const bool documented = form == LaunchForm::Documented;
    if (idiom->form != form) return problem("the two calls belong to different forms", *call.statement);
    if (call.statement->predicated || call.parameters.size() != (documented ? 6 : 2))
      return problem("the launch has an unexpected form", *call.statement);
    site.launch_scope = at(i).scope;
    if (site.launch_scope == &function_.body)
      return problem("the launch stands in no scope of its own", *call.statement);
    site.launch_call = call.statement;
    const CallScope scope = read_call_scope(m_, *site.launch_scope, *call.statement);
    if (!scope.problem.empty()) return scope.problem;
    if (!scope.result.empty() && !is_result_of(scope, 4)) return problem(kUnknownResult, *call.statement);
    const std::string* buffer = scope.actual(call.parameters[documented ? 1 : 0], 0, 8);
    const std::string* stream = scope.actual(call.parameters.back(), 0, 8);
    if (buffer == nullptr || stream == nullptr || *buffer != site.buffer)
      return problem("the launch uses another buffer", *call.statement);
    site.idiom = idiom;
    if (call.callee != idiom->launch) site.wrapper = call.callee;
    site.stream = *stream;
    site.streams = stream_values({m_, function_, flow_, data_}, site.stream, *idiom);
    site.result = scope.result;
    if (!documented) return {};
    std::string wrong = description(site, scope, call.parameters[0], {call.parameters[2], call.parameters[3]},
                                    call.parameters[4]);
    return wrong.empty() ? stored_values_change(site) : wrong;
  }

  // True for a block directly in another one.
  static bool stands_in(const Statement& outer, const Statement& block) {
    return std::any_of(outer.body.begin(), outer.body.end(),
                       [&](const Statement& s) { return &s == &block; });
  }

  // The stores are moved to the launch, so what they store must still be there, under its name.
  [[nodiscard]] std::string stored_values_change(const Site& site) const {
    for (const Argument& argument : site.arguments) {
      const auto store = std::find_if(path_.begin(), path_.end(),
                                      [&](uint32_t i) { return at(i).statement == argument.store; });
      if (!stands_in(*at(*store).scope, *site.launch_scope))
        return problem("an argument store stands in a scope of its own", *argument.store);
      for (auto i = store; i != path_.end(); ++i) {
        const Registers registers = registers_of(m_, *at(*i).statement, data_.names());
        if (std::find(registers.written.begin(), registers.written.end(), argument.source) !=
            registers.written.end()) {
          return problem(fmt::format("{} changes between an argument store and the launch", argument.source),
                         *at(*i).statement);
        }
      }
    }
    return {};
  }

  // The first instruction that writes the buffer's register other than the call's own result.
  [[nodiscard]] const Statement& elsewhere(const Site& site) const {
    const auto& writers = data_.definitions(site.buffer);
    const auto other = std::find_if(writers.begin(), writers.end(),
                                    [&](uint32_t w) { return at(w).scope != site.get_scope; });
    return *at(other == writers.end() ? writers.front() : *other).statement;
  }

  // The buffer may be defined once and read by the null test, the argument stores and the launch only.
  std::string buffer_escapes(const Site& site) {
    if (data_.definitions(site.buffer).size() != 1)
      return problem("the buffer's register is written elsewhere too", elsewhere(site));
    for (uint32_t use : data_.uses(site.buffer)) {
      const FlatInstruction& f = at(use);
      const bool test = m_.is(f.statement->head, "setp");
      const bool fill = std::any_of(site.arguments.begin(), site.arguments.end(),
                                    [&](const Argument& a) { return a.store == f.statement; });
      if (!test && !fill && f.scope != site.launch_scope)
        return problem("the buffer's address is used for something else", *f.statement);
    }
    return {};
  }

  const ptx::Module& m_;
  const ptx::Function& function_;
  const ControlFlow& flow_;
  const DataFlow& data_;
  std::set<const Statement*> completed_;        // first calls whose launch was found behind them
  std::optional<RegisterBits> registers_;       // made when it is first asked
  std::vector<uint32_t> path_;                  // of the site at hand: instructions between its calls
  std::map<std::string_view, bool> null_when_;  // predicate -> value that it has where the buffer is null
};

}  // namespace

std::string form_name(const Site& site) {
  if (site.idiom == nullptr) return "";
  return site.idiom->name + (site.wrapper.empty() ? "" : ", through a local wrapper");
}

LaunchNames launch_names(const ptx::Module& module) {
  LaunchNames names;
  for (const Idiom& idiom : idioms().idioms) {
    names.insert(idiom.get_buffer);
    names.insert(idiom.launch);
  }
  for (const ptx::Function& f : module.functions) {
    const std::string_view function = runtime_function(module, f);
    if (idioms().is_get_buffer(function) || idioms().by_launch(function) != nullptr) names.insert(f.name);
  }
  return names;
}

bool may_launch(const ptx::Module& module, const ptx::Function& function, const LaunchNames& names) {
  for (uint32_t t = function.body.tokens.first; t < function.body.tokens.last; ++t) {
    if (module.tokens[t].kind == ptx::TokenKind::Identifier && names.contains(module.text(t))) return true;
  }
  return false;
}

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
    const std::string_view function_called = runtime_function(module, call->callee);
    query.clears = idioms().is_last_error(function_called);
    if (!query.clears && !idioms().is_peek_last_error(function_called)) continue;
    query.call = f.statement;
    query.scope = f.scope;
    if (f.scope == &function.body || f.statement->predicated) {
      query.problem = "the call stands in no scope of its own";
    } else {
      const CallScope scope = read_call_scope(module, *f.scope, *f.statement);
      query.problem = scope.problem;
      query.result = scope.result;
      const bool plain = scope.result_bytes == 4 && RegisterBits(module, function).of(scope.result) == 32;
      if (query.problem.empty() && !query.result.empty() && !plain)
        query.problem = "the call's result is read in another width";
    }
    out.push_back(std::move(query));
  }
  return out;
}

// If the stream depends on a condition, the site is judged by the strictest of its streams. That loses
// nothing. Each check for the NULL stream is about a pair of launches that may both go there. It holds for
// the launches that do, whichever they are. The laxer streams promise nothing beyond what the check for the
// strictest one covers.
StreamKind stream_kind(const Site& site) {
  if (site.streams.empty()) return StreamKind::Other;
  const auto is_tail = [](const StreamValue& stream) { return stream.kind == StreamClass::TailLaunch; };
  if (std::ranges::all_of(site.streams, is_tail)) return StreamKind::Tail;
  StreamKind strictest = StreamKind::FireAndForget;
  for (const StreamValue& stream : site.streams) {
    StreamKind kind = StreamKind::Other;
    if (stream.kind == StreamClass::Null) kind = StreamKind::Null;
    if (stream.kind == StreamClass::PerThread) kind = StreamKind::PerThread;
    if (stream.kind == StreamClass::FireAndForget) kind = StreamKind::FireAndForget;
    if (stream.kind == StreamClass::Private) kind = StreamKind::Private;
    strictest = std::max(strictest, kind);
  }
  return strictest;
}

}  // namespace klap::analysis
