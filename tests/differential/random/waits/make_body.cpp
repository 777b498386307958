#include "random/waits/make_body.h"

#include <algorithm>
#include <array>

#include "random/waits/make_expression.h"

namespace klap::differential::waits {

namespace {

enum class Phase : uint8_t { None, Write, Read };  // of shared memory

class BodyMaker {
 public:
  BodyMaker(random::Random& random, Program& program, uint32_t number, bool launches, uint32_t& sites)
      : random_(random),
        program_(program),
        kernel_(program.kernels[number]),
        number_(number),
        launches_(launches),
        sites_(sites),
        types_(&kernel_.types),
        leader_(static_cast<uint32_t>(random.chance(50) ? 0 : random.below(kernel_.threads()))) {}

  void make() {
    const uint64_t variables = random_.between(3, 8);
    for (uint64_t i = 0; i < variables; ++i) add_variable();
    phase_ = kernel_.has_shared ? Phase::Write : Phase::None;
    make_list(kernel_.body, launches_ ? random_.between(6, 13) : random_.between(2, 6));
    if (launches_ && !waits_) make_wait(kernel_.body);
    make_end();
  }

 private:
  using List = std::vector<Statement>;

  uint32_t below(uint64_t limit) { return static_cast<uint32_t>(random_.below(limit)); }

  void add_variable() {
    // Words are as many as all others together.
    types_->push_back(random_.chance(45) ? Type::Word : static_cast<Type>(random_.below(kTypes)));
    variables_.push_back(static_cast<uint32_t>(types_->size() - 1));
  }
  // One to which the program assigns; counters of loops are none.
  uint32_t variable() { return variables_[below(variables_.size())]; }

  Expression expression(uint32_t depth = 2) {
    return make_expression(random_, {static_cast<uint32_t>(types_->size()), kernel_.values, !pending_, false},
                           depth);
  }
  Expression uniform() { return make_expression(random_, {0, kernel_.values, false, true}, 1); }

  static Statement statement(Kind kind, uint32_t number = 0, uint32_t limit = 0,
                             std::vector<Expression> values = {}) {
    Statement s;
    s.kind = kind;
    s.number = number;
    s.limit = limit;
    s.values = std::move(values);
    return s;
  }

  void make_list(List& out, uint64_t length) {
    for (uint64_t i = 0; i < length; ++i) make_statement(out);
  }

  void make_statement(List& out) {
    switch (random_.below(20)) {
      case 0:
      case 1:
        return make_branch(out);
      case 2:
        return make_loop(out);
      case 3:
        return make_function(out);
      case 4:
      case 5:
      case 6:
      case 7:
        return make_launch(out);
      case 8:
      case 9:
        return make_wait(out);
      case 10:
      case 11:
        return make_fetch(out);
      case 12:
      case 13:
        return may_meet() ? make_meeting(out) : make_assignment(out);
      case 14:
      case 15:
        return make_shared_access(out);
      case 16:
        return make_local_access(out);
      case 17:
        return make_store(out);
      case 18:
        return random_.chance(30) ? make_return(out) : make_store(out);
      default:
        return make_assignment(out);
    }
  }

  void make_assignment(List& out) { out.push_back(statement(Kind::Assign, variable(), 0, {expression(3)})); }

  void make_store(List& out) {
    if (random_.chance(25))
      return out.push_back(statement(Kind::AddOwn, kFirstSum + below(2), 0, {expression()}));
    if (random_.chance(30))
      return out.push_back(statement(Kind::AddAbove, kFirstSum + below(2), 0, {expression(1), expression()}));
    const uint32_t word = pending_ ? kFirstResult + below(kWords - kFirstResult) : below(kWords);
    out.push_back(statement(Kind::StoreOwn, word, 0, {expression()}));
  }

  // ---- branches, loops, functions ----

  // A part that only some threads come to, or all if `is_for_all`.
  template <class Make>
  void within(bool is_for_all, const Make& make) {
    const bool was_uniform = is_uniform_;
    is_uniform_ = is_uniform_ && is_for_all;
    ++depth_;
    make();
    --depth_;
    is_uniform_ = was_uniform;
  }

  // Goes on in the phase in which it began.
  void return_to(Phase phase, List& out) {
    if (phase_ == phase) return;
    out.push_back(statement(Kind::Barrier));
    phase_ = phase;
  }

  void make_branch(List& out) {
    if (depth_ >= kDeepest) return make_assignment(out);
    const bool is_for_all = is_uniform_ && random_.chance(30);
    if (is_uniform_ && !is_for_all && launches_ && random_.chance(15)) return make_apart(out);
    Statement s = statement(Kind::If, 0, 0, {is_for_all ? uniform() : condition()});
    const Phase phase = phase_;
    const bool was_pending = pending_;
    within(is_for_all, [&] {
      make_list(s.body, random_.between(1, 4));
      return_to(phase, s.body);
      const bool is_pending = pending_;
      pending_ = was_pending;
      if (random_.chance(40)) make_list(s.other, random_.between(1, 3));
      return_to(phase, s.other);
      pending_ = pending_ || is_pending;
    });
    out.push_back(std::move(s));
  }

  Expression condition() {
    if (random_.chance(loops_ > 0 ? 99 : 60)) {
      const auto modulus = static_cast<uint32_t>(random_.between(2, 9));
      return is_thread(modulus, below(modulus));
    }
    return expression();
  }

  // Threads that meet though they are in different places.
  void make_apart(List& out) {
    Statement s = statement(Kind::If, 0, 0, {condition()});
    const Phase phase = phase_;
    const bool was_pending = pending_;
    bool is_pending = false;
    within(false, [&] {
      phase_ = Phase::None;
      for (List* const side : {&s.body, &s.other}) {
        pending_ = was_pending;
        make_list(*side, random_.between(0, 2));
        side->push_back(statement(Kind::Barrier, 0, static_cast<uint32_t>(BarrierForm::NotAligned)));
        make_list(*side, random_.between(0, 2));
        is_pending = is_pending || pending_;
      }
      pending_ = is_pending;
    });
    phase_ = phase;
    out.push_back(std::move(s));
  }

  // Few bounds depend on memory, and few conditions in loops. Such a loop with a launch may be one that goes
  // on until there is room for it, for all that an analysis of the program can tell.
  Expression make_bound(uint32_t limit, bool is_for_all) {
    if (random_.chance(45)) return constant(limit);
    if (random_.chance(3)) return is_for_all ? uniform() : expression();
    const Op op = random_.chance(30) ? Op::Depth : is_for_all ? Op::Ctaid : Op::Linear;
    return binary(Op::Add, leaf(op), constant(below(4)));
  }

  void make_loop(List& out) {
    if (depth_ >= kDeepest || loops_ >= kMostLoops) return make_assignment(out);
    const bool is_for_all = is_uniform_ && random_.chance(50);
    const auto limit = static_cast<uint32_t>(random_.between(1, 3));
    types_->push_back(Type::Word);
    const auto counter = static_cast<uint32_t>(types_->size() - 1);
    const Expression bound = make_bound(limit, is_for_all);
    Statement s = statement(Kind::Loop, counter, limit, {bound});
    const Phase phase = phase_;
    const bool was_pending = pending_, may_end_pending = random_.chance(50);
    const size_t fetchable = fetchable_.size();
    pending_ = pending_ || may_end_pending;
    ++loops_;
    within(is_for_all, [&] {
      make_list(s.body, random_.between(1, 4));
      if (pending_ && !was_pending && !may_end_pending) make_wait(s.body);
      return_to(phase, s.body);
    });
    --loops_;
    pending_ = pending_ || was_pending;
    fetchable_.resize(fetchable);
    out.push_back(std::move(s));
  }

  void make_function(List& out) {
    if (functions_ >= kMostFunctions || depth_ >= kDeepest) return make_assignment(out);
    Statement s = statement(Kind::Function, variable(), 0, {expression()});
    const Phase phase = phase_;
    std::vector<Type>* const types = types_;
    std::vector<uint32_t> variables;
    std::vector<uint32_t> fetchable;
    std::swap(variables, variables_);
    std::swap(fetchable, fetchable_);
    phase_ = Phase::None;
    types_ = &s.types;
    const uint64_t count = random_.between(1, 4);
    for (uint64_t i = 0; i < count; ++i) add_variable();
    ++functions_;
    within(true, [&] { make_list(s.body, random_.between(1, 5)); });
    --functions_;
    s.result = expression();
    types_ = types;
    phase_ = phase;
    std::swap(variables, variables_);
    std::swap(fetchable, fetchable_);
    out.push_back(std::move(s));
  }

  // Threads other than the block's leader end, or all of them. No function can end a thread of its kernel.
  void make_return(List& out) {
    if (functions_ > 0 || depth_ > 1 || !launches_) return make_store(out);
    const auto modulus = static_cast<uint32_t>(random_.between(2, 5));
    const uint32_t rest = (leader_ + 1 + below(modulus - 1)) % modulus;
    const bool is_for_all = is_uniform_ && random_.chance(15);
    Statement s = statement(Kind::If, 0, 0, {is_for_all ? uniform() : is_thread(modulus, rest)});
    s.body.push_back(statement(Kind::Return));
    out.push_back(std::move(s));
  }

  // ---- launches, waits, meetings ----

  Statement make_site(bool of_block) {
    Statement s = statement(Kind::Launch);
    s.site.id = sites_++;
    s.site.of_block = of_block;
    const auto later = static_cast<uint32_t>(program_.kernels.size() - 1 - number_);
    const bool is_self = later == 0 || (kernel_.is_recursive && random_.chance(60));
    s.site.kernel = is_self ? number_ : number_ + 1 + below(later);
    const Kernel& child = program_.kernels[s.site.kernel];
    s.site.grid_low = 1 + below(child.grid[0]);
    s.site.grid_spread = 1 + below(child.grid[0] - s.site.grid_low + 1);
    s.site.grid_of = expression();
    s.site.depth = !is_self && child.is_recursive ? 1 + below(2) : 0;
    for (uint32_t i = 0; i < child.values; ++i) s.site.arguments.push_back(expression());
    return s;
  }
  [[nodiscard]] bool may_launch() const {
    return launches_ && (kernel_.is_recursive || number_ + 1 < program_.kernels.size());
  }

  void make_launch(List& out) {
    if (!may_launch()) return make_store(out);
    Statement s = make_site(false);
    fetchable_.push_back(s.site.id);
    const bool was_pending = pending_;
    pending_ = true;
    // In large blocks only some threads launch.
    const uint32_t modulus = std::max(kernel_.threads() / 4, 1U);
    const bool waits = random_.chance(35);
    if (depth_ > 0 || modulus == 1 || random_.chance(10)) {
      out.push_back(std::move(s));
      if (waits) make_wait(out);
      return;
    }
    Statement branch = statement(Kind::If, 0, 0, {is_thread(modulus, below(modulus))});
    branch.body.push_back(std::move(s));
    if (waits) branch.body.push_back(statement(Kind::Wait, kNoVariable));
    out.push_back(std::move(branch));
    pending_ = was_pending || !waits;
  }

  void make_wait(List& out) {
    // A kernel that launches nothing waits for nothing. Its functions' waits would be taken for ones that
    // matter.
    if (!launches_ && functions_ > 0) return make_assignment(out);
    waits_ = true;
    if (random_.chance(5)) out.push_back(statement(Kind::LastError, variable()));
    out.push_back(statement(Kind::Wait, random_.chance(20) ? variable() : kNoVariable));
    pending_ = false;
  }

  void make_fetch(List& out) {
    if (fetchable_.empty()) return make_store(out);
    if (pending_) make_wait(out);
    Statement s =
        statement(Kind::Fetch, variable(), kFirstResult + below(kWords - kFirstResult), {expression(1)});
    s.site.id = fetchable_[below(fetchable_.size())];
    out.push_back(std::move(s));
  }

  // Functions that only meet are not taken apart where they are inlined, so there are few of them.
  bool may_meet() { return is_uniform_ && (functions_ == 0 || random_.chance(15)); }

  void make_meeting(List& out) {
    switch (random_.below(4)) {
      case 0:
        return launches_ ? make_wait_of_leader(out) : make_barrier(out);
      case 1:
        return may_launch() ? make_launch_of_leader(out) : make_barrier(out);
      default:
        return make_barrier(out);
    }
  }

  // Kernels that never wait are run by consumers, which take plain barriers of whole warps alone.
  void make_barrier(List& out) {
    if (!launches_ && kernel_.threads() % 32 != 0) return make_assignment(out);
    const uint32_t form = launches_ ? below(kBarrierForms) : 0;
    const bool has_result = form >= static_cast<uint32_t>(BarrierForm::Count);
    Statement s = statement(Kind::Barrier, 0, form);
    if (has_result) {
      s.number = variable();
      s.values = {random_.chance(50) ? condition() : expression()};
    }
    out.push_back(std::move(s));
    if (phase_ == Phase::None || random_.chance(30)) return;
    phase_ = phase_ == Phase::Write ? Phase::Read : Phase::Write;
    if (phase_ == Phase::Read || random_.chance(50)) return;
    out.push_back(statement(Kind::ClearTotal));
    out.push_back(statement(Kind::Barrier));
  }

  Statement for_leader() {
    return statement(Kind::If, 0, 0, {binary(Op::Equal, leaf(Op::Thread), constant(leader_))});
  }

  // One thread waits for the children of all.
  void make_wait_of_leader(List& out) {
    out.push_back(statement(Kind::Barrier));
    Statement s = for_leader();
    s.body.push_back(statement(Kind::Wait, kNoVariable));
    if (random_.chance(30)) within(false, [&] { make_list(s.other, 1); });
    out.push_back(std::move(s));
    out.push_back(statement(Kind::Barrier));
    // The others may have launched something again.
    pending_ = !out[out.size() - 2].other.empty();
  }

  // One thread launches a child that reads and changes words of all, and waits for it.
  void make_launch_of_leader(List& out) {
    if (!pending_) out.push_back(statement(Kind::StoreOwn, below(kFirstSum), 0, {expression()}));
    out.push_back(statement(Kind::Barrier));
    pending_ = true;
    Statement s = for_leader();
    s.body.push_back(make_site(true));
    const uint32_t id = s.body.front().site.id;
    within(false, [&] {
      if (random_.chance(40)) make_list(s.body, 1);
      pending_ = true;
      if (random_.chance(40)) make_busy(s.other);
    });
    s.body.push_back(statement(Kind::Wait, kNoVariable));
    pending_ = !s.other.empty();
    out.push_back(std::move(s));
    out.push_back(statement(Kind::Barrier));
    fetchable_.push_back(id);
  }

  // Other threads are busy meanwhile. Their waits may come before the leader's launch, and so tell them
  // nothing.
  void make_busy(List& out) {
    if (may_launch() && random_.chance(50)) make_launch(out);
    pending_ = true;
    if (random_.chance(50)) out.push_back(statement(Kind::Wait, kNoVariable));
    make_store(out);
  }

  // ---- memory ----

  void make_shared_access(List& out) {
    switch (phase_) {
      case Phase::None:
        return make_assignment(out);
      case Phase::Write:
        return out.push_back(
            statement(random_.chance(60) ? Kind::StoreShared : Kind::AddTotal, 0, 0, {expression()}));
      case Phase::Read:
        if (random_.chance(30)) return out.push_back(statement(Kind::LoadTotal, variable()));
        return out.push_back(statement(Kind::LoadShared, variable(), below(kernel_.threads())));
    }
  }

  void make_local_access(List& out) {
    if (kernel_.local_elements == 0 || functions_ > 0) return make_assignment(out);
    if (random_.chance(50)) return out.push_back(statement(Kind::LoadLocal, variable(), 0, {expression(1)}));
    out.push_back(statement(Kind::StoreLocal, 0, 0, {expression(1), expression()}));
  }

  // All that is left of a thread goes to its results.
  void make_end() {
    if (pending_ && random_.chance(60)) make_wait(kernel_.body);
    const auto keep = [&](const Expression& value) {
      const uint32_t word = kFirstResult + below(kWords - kFirstResult);
      const Expression before = {Op::Multiply, 0, {leaf(Op::Own, word), constant(3)}};
      kernel_.body.push_back(statement(Kind::StoreOwn, word, 0, {binary(Op::Add, before, value)}));
    };
    for (uint32_t v = 0; v < types_->size(); ++v) keep(leaf(Op::Local, v));
    for (uint32_t word = kFirstSum; word < kFirstResult && !pending_; ++word) keep(leaf(Op::Own, word));
    if (kernel_.local_elements != 0) {
      kernel_.body.push_back(statement(Kind::LoadLocal, 0, 0, {expression(1)}));
      keep(leaf(Op::Local, 0));
    }
    const Expression result = binary(Op::Add, leaf(Op::Own, kFirstResult + below(4)),
                                     binary(Op::Add, leaf(Op::Linear), constant(1)));
    kernel_.body.push_back(statement(Kind::AddAbove, kFirstSum + below(2), 0, {expression(1), result}));
  }

  static constexpr uint32_t kDeepest = 3, kMostLoops = 2, kMostFunctions = 2;

  random::Random& random_;
  Program& program_;
  Kernel& kernel_;
  const uint32_t number_;
  const bool launches_;
  uint32_t& sites_;
  std::vector<Type>* types_;
  std::vector<uint32_t> variables_;  // to which is assigned
  std::vector<uint32_t> fetchable_;  // sites whose children's words may be read behind a wait
  const uint32_t leader_;            // a thread that no statement ends before the others
  bool waits_ = false;               // the kernel has a wait
  bool pending_ = false;             // children of the thread may run
  bool is_uniform_ = true;           // all threads that have not ended come here together
  Phase phase_ = Phase::None;
  uint32_t depth_ = 0, loops_ = 0, functions_ = 0;
};

}  // namespace

void make_body(random::Random& random, Program& program, uint32_t number, bool launches, uint32_t& sites) {
  BodyMaker(random, program, number, launches, sites).make();
}

}  // namespace klap::differential::waits
