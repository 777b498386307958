#include "random/print_turns.h"

namespace klap::differential::random {

namespace {

// How the word is read and written by those who take turns.
struct WordForm {
  const char* read;    // {0} = the word at {1}
  const char* behind;  // after a read that found its number
  const char* before;  // before the write
  const char* write;   // [{1}] = {0}
};

WordForm word_form(Relation relation) {
  switch (relation) {
    case Relation::SharedAtomic:
      return {"atom.shared.or.b32 \t{0}, [{1}], 0;", "membar.cta;", "membar.cta;",
              "atom.shared.exch.b32 \t{2}, [{1}], {0};"};
    case Relation::SharedVolatile:
      return {"ld.volatile.shared.u32 \t{0}, [{1}];", "membar.cta;", "membar.cta;",
              "st.volatile.shared.u32 \t[{1}], {0};"};
    case Relation::SharedSwap:
      return {"atom.shared.cas.b32 \t{0}, [{1}], -1, -1;", "fence.acq_rel.cta;", "fence.acq_rel.cta;",
              "atom.shared.exch.b32 \t{2}, [{1}], {0};"};
    case Relation::GlobalAcquire:
      return {"ld.acquire.gpu.global.u32 \t{0}, [{1}];", "", "", "st.release.gpu.global.u32 \t[{1}], {0};"};
    case Relation::GlobalVolatile:
      return {"ld.volatile.global.u32 \t{0}, [{1}];", "membar.gl;", "membar.gl;",
              "st.volatile.global.u32 \t[{1}], {0};"};
    case Relation::GlobalAtomic:
      return {"atom.global.add.u32 \t{0}, [{1}], 0;", "membar.gl;", "membar.gl;",
              "red.global.add.u32 \t[{1}], 1;"};
    default:  // Lock
      return {"atom.shared.cas.b32 \t{0}, [{1}], 0, 1;", "membar.cta;", "membar.cta;",
              "atom.shared.exch.b32 \t{2}, [{1}], {0};"};
  }
}

class TurnsPrinter {
 public:
  TurnsPrinter(Code& code, const TurnsForm& form, const TurnsPlace& place)
      : code_(code), form_(form), place_(place) {}

  void print() {
    if (is_by_word(form_.relation)) return by_word();
    if (form_.relation == Relation::Vote) return by_vote();
    const std::string self = is_by_warp(form_.relation) ? lane() : place_.thread;
    const std::string end = code_.new_label();
    if (form_.relation == Relation::SomeLanes) {
      const std::string outside = code_.new_register('p');
      code_.emit("setp.ge.u32 \t{}, {}, {};", outside, self, count());
      code_.emit("@{} bra \t{};", outside, end);
    }
    if (form_.is_unrolled) {
      unrolled(self);
    } else {
      loop(self);
    }
    code_.place(end);
  }

 private:
  std::string lane() {
    const std::string into = code_.new_register('r');
    code_.emit("mov.u32 \t{}, %laneid;", into);
    return into;
  }
  // How many take a turn: of a warp, which is whole, or of the block.
  std::string count() {
    if (is_by_warp(form_.relation)) return std::to_string(std::min(form_.count, 32U));
    const std::string into = code_.new_register('r');
    code_.emit("min.u32 \t{}, {}, {};", into, place_.threads, form_.count);
    return into;
  }
  // The number of the turn of thread or lane `self`; more than there are for those that have none.
  std::string turn_of(const std::string& self, const std::string& count) {
    if (!form_.is_reversed || form_.relation == Relation::Lock) return self;
    const std::string less = code_.new_register('r'), into = code_.new_register('r');
    code_.emit("add.s32 \t{}, {}, -1;", less, in_register(count));
    code_.emit("sub.s32 \t{}, {}, {};", into, less, self);
    return into;
  }
  std::string in_register(const std::string& operand) {
    if (operand.starts_with('%')) return operand;
    const std::string into = code_.new_register('r');
    code_.emit("mov.u32 \t{}, {};", into, operand);
    return into;
  }

  void body_if_equal(const std::string& a, const std::string& b) {
    const std::string p = code_.new_register('p'), end = code_.new_label();
    code_.emit("setp.ne.s32 \t{}, {}, {};", p, a, b);
    code_.emit("@{} bra \t{};", p, end);
    place_.body();
    code_.place(end);
  }

  void meet(const std::string& self) {
    if (form_.relation == Relation::Barrier) return code_.emit("bar.sync \t0;");
    if (form_.relation == Relation::SomeLanes)
      return code_.emit("bar.warp.sync \t{};",
                        static_cast<int32_t>((uint64_t{1} << std::min(form_.count, 32U)) - 1));
    if (form_.relation == Relation::WarpBarrier) return code_.emit("bar.warp.sync \t-1;");
    const std::string got = code_.new_register('r'), p = code_.new_register('p');
    code_.emit("shfl.sync.idx.b32 \t{}|{}, {}, 0, 31, -1;", got, p, self);
  }

  void unrolled(const std::string& self) {
    const std::string turns = count(), turn = turn_of(self, turns);
    for (uint32_t i = 0; i < form_.count; ++i) {
      body_if_equal(turn, std::to_string(i));
      meet(self);
    }
  }

  void loop(const std::string& self) {
    const std::string turns = count(), turn = turn_of(self, turns);
    const std::string head = code_.new_label(), i = code_.new_register('r'), more = code_.new_register('p');
    code_.emit("mov.u32 \t{}, 0;", i);
    code_.place(head);
    body_if_equal(turn, i);
    meet(self);
    code_.emit("add.s32 \t{}, {}, 1;", i, i);
    code_.emit("setp.lt.u32 \t{}, {}, {};", more, i, turns);
    code_.emit("@{} bra \t{};", more, head);
  }

  // Lanes vote for who is left; the first (or last) of them takes its turn.
  void by_vote() {
    const std::string self = lane(), left = code_.new_register('p'), mask = code_.new_register('r');
    const std::string chosen = code_.new_register('r'), none = code_.new_register('p');
    const std::string head = code_.new_label(), end = code_.new_label(), wait = code_.new_label();
    code_.emit("setp.lt.u32 \t{}, {}, {};", left, self, std::min(form_.count, 32U));
    code_.place(head);
    code_.emit("vote.sync.ballot.b32 \t{}, {}, -1;", mask, left);
    code_.emit("setp.eq.s32 \t{}, {}, 0;", none, mask);
    code_.emit("@{} bra \t{};", none, end);
    if (!form_.is_reversed) {
      const std::string lowest = code_.new_register('r'), negative = code_.new_register('r');
      code_.emit("neg.s32 \t{}, {};", negative, mask);
      code_.emit("and.b32  \t{}, {}, {};", lowest, mask, negative);
      mask_to_lane(lowest, chosen);
    } else {
      mask_to_lane(mask, chosen);
    }
    const std::string p = code_.new_register('p');
    code_.emit("setp.ne.s32 \t{}, {}, {};", p, self, chosen);
    code_.emit("@{} bra \t{};", p, wait);
    place_.body();
    code_.emit("setp.ne.s32 \t{}, {}, {};", left, self, self);
    code_.place(wait);
    code_.emit("bra.uni \t{};", head);
    code_.place(end);
  }

  // The number of the highest bit.
  void mask_to_lane(const std::string& mask, const std::string& into) {
    const std::string zeros = code_.new_register('r'), last = code_.new_register('r');
    code_.emit("clz.b32 \t{}, {};", zeros, mask);
    code_.emit("mov.u32 \t{}, 31;", last);
    code_.emit("sub.s32 \t{}, {}, {};", into, last, zeros);
  }

  // Each thread asks for its number again and again, and takes its turn within the loop: lanes of a warp get
  // on even where they only do so together.
  void by_word() {
    const WordForm form = word_form(form_.relation);
    const bool is_lock = form_.relation == Relation::Lock;
    const std::string turns = count(), turn = turn_of(place_.thread, turns);
    const std::string head = code_.new_label(), not_yet = code_.new_label(), end = code_.new_label();
    const std::string found = code_.new_register('r'), done = code_.new_register('r');
    const std::string next = code_.new_register('r');
    const std::string outside = code_.new_register('p'), other = code_.new_register('p'),
                      again = code_.new_register('p');
    prepare_word();
    code_.emit("setp.ge.u32 \t{}, {}, {};", outside, turn, turns);
    code_.emit("@{} bra \t{};", outside, end);
    code_.emit("mov.u32 \t{}, 0;", done);
    code_.place(head);
    code_.emit("{}", fmt::format(fmt::runtime(form.read), found, place_.word));
    code_.emit("setp.ne.s32 \t{}, {}, {};", other, found, is_lock ? "0" : turn);
    code_.emit("@{} bra \t{};", other, not_yet);
    if (*form.behind != 0) code_.emit("{}", form.behind);
    place_.body();
    if (*form.before != 0) code_.emit("{}", form.before);
    if (is_lock) {
      code_.emit("mov.u32 \t{}, 0;", next);
    } else {
      code_.emit("add.s32 \t{}, {}, 1;", next, turn);
    }
    code_.emit("{}", fmt::format(fmt::runtime(form.write), next, place_.word, code_.new_register('r')));
    code_.emit("mov.u32 \t{}, 1;", done);
    code_.place(not_yet);
    code_.emit("setp.eq.s32 \t{}, {}, 0;", again, done);
    code_.emit("@{} bra \t{};", again, head);
    code_.place(end);
    code_.emit("bar.sync \t0;");
  }

  // 0, before anybody asks.
  void prepare_word() {
    const std::string other = code_.new_register('p'), end = code_.new_label();
    code_.emit("setp.ne.s32 \t{}, {}, 0;", other, place_.thread);
    code_.emit("@{} bra \t{};", other, end);
    const char* space = is_by_global_word(form_.relation) ? "global" : "shared";
    code_.emit("st.{}.u32 \t[{}], 0;", space, place_.word);
    code_.place(end);
    code_.emit("bar.sync \t0;");
  }

  Code& code_;
  const TurnsForm& form_;
  const TurnsPlace& place_;
};

}  // namespace

void print_turns(Code& code, const TurnsForm& form, const TurnsPlace& place) {
  TurnsPrinter(code, form, place).print();
}

void print_barrier(Code& code, uint32_t form) {
  switch (form % kBarrierForms) {
    case 0:
      return code.emit("bar.sync \t0;");
    case 1:
      return code.emit("barrier.sync \t0;");
    case 2: {
      const std::string never = code.new_register('p'), any = code.new_register('p'),
                        zero = code.new_register('r');
      code.emit("mov.u32 \t{}, 0;", zero);
      code.emit("setp.ne.s32 \t{}, {}, 0;", never, zero);
      return code.emit("bar.red.or.pred \t{}, 0, {};", any, never);
    }
    default:
      return code.emit("bar.sync \t1;");
  }
}

}  // namespace klap::differential::random
