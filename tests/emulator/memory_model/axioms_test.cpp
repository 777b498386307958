// Random programs against the axioms of the PTX memory model.
//
// MemoryModel is an operational model: clocks and lists of writes. Here every execution that it allows is
// checked against the axioms as the PTX manual states them ("Memory Consistency Model"), computed as
// relations from what was executed and read, with no code in common.
#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <random>
#include <utility>

#include "litmus.h"

namespace klap::emulator::test {
namespace {

constexpr size_t kMost = 32;  // events
constexpr uint32_t kLocations = 3;

class Relation {
 public:
  bool operator()(size_t a, size_t b) const { return rows_[a][b]; }
  void add(size_t a, size_t b) { rows_[a].set(b); }
  void close() {
    for (size_t k = 0; k < kMost; ++k)
      for (size_t i = 0; i < kMost; ++i)
        if (rows_[i][k]) rows_[i] |= rows_[k];
  }
  [[nodiscard]] Relation then(const Relation& next) const {
    Relation result;
    for (size_t i = 0; i < kMost; ++i)
      for (size_t k = 0; k < kMost; ++k)
        if (rows_[i][k]) result.rows_[i] |= next.rows_[k];
    return result;
  }
  Relation& operator|=(const Relation& other) {
    for (size_t i = 0; i < kMost; ++i) rows_[i] |= other.rows_[i];
    return *this;
  }
  [[nodiscard]] bool is_irreflexive() const {
    for (size_t i = 0; i < kMost; ++i)
      if (rows_[i][i]) return false;
    return true;
  }

 private:
  std::array<std::bitset<kMost>, kMost> rows_;
};

// One execution: its events in the order in which they ran, which is also the coherence order of each
// location and the order of the sequential fences.
class Execution {
 public:
  Execution(const std::vector<Thread>& threads, const std::vector<Event>& events)
      : threads_(threads), events_(events) {
    for (size_t a = 0; a < events.size(); ++a)
      for (size_t b = a + 1; b < events.size(); ++b)
        if (events[a].thread == events[b].thread) program_.add(a, b);
    find_communication();
    find_causality();
  }

  // The name of the axiom that it breaks; null if none.
  [[nodiscard]] const char* broken() const {
    for (size_t a = 0; a < events_.size(); ++a)
      for (size_t b = 0; b < events_.size(); ++b) {
        if (!causality_(a, b)) continue;
        if (coherence_(b, a)) return "coherence";
        if (is_fence(a) && is_fence(b) && sequential_(b, a)) return "fence-sc";
        if (communication_(b, a)) return "causality";
      }
    if (!is_sequential_per_location()) return "sc per location";
    if (!updates_are_atomic()) return "atomicity";
    return nullptr;
  }

 private:
  using Do = Step::Do;
  [[nodiscard]] const Step& step(size_t i) const { return events_[i].step; }
  [[nodiscard]] bool reads(size_t i) const { return step(i).what == Do::Read || step(i).what == Do::Add; }
  [[nodiscard]] bool writes(size_t i) const { return step(i).what == Do::Write || step(i).what == Do::Add; }
  [[nodiscard]] bool is_fence(size_t i) const { return step(i).what == Do::Fence; }
  [[nodiscard]] bool same_place(size_t a, size_t b) const {
    return !is_fence(a) && !is_fence(b) && step(a).location == step(b).location;
  }
  [[nodiscard]] bool is_strong(size_t i) const {
    Semantics s = step(i).kind.semantics;
    return is_fence(i) || step(i).kind.is_atomic || (s != Semantics::Weak && s != Semantics::NonCoherent);
  }
  [[nodiscard]] bool releases(size_t i) const {
    Semantics s = step(i).kind.semantics;
    return writes(i) && (s == Semantics::Release || s == Semantics::AcquireRelease);
  }
  [[nodiscard]] bool acquires(size_t i) const {
    Semantics s = step(i).kind.semantics;
    return reads(i) && (s == Semantics::Acquire || s == Semantics::AcquireRelease);
  }
  [[nodiscard]] bool reaches(size_t from, size_t to) const {
    Scope scope = step(from).kind.semantics == Semantics::Volatile ? Scope::Sys : step(from).kind.scope;
    uint64_t a = threads_[events_[from].thread].block, b = threads_[events_[to].thread].block;
    if (a == b) return true;
    return a == kHostBlock || b == kHostBlock ? scope == Scope::Sys : scope >= Scope::Gpu;
  }
  [[nodiscard]] bool morally_strong(size_t a, size_t b) const {
    if (program_(a, b) || program_(b, a)) return is_strong(a) && is_strong(b);
    return is_strong(a) && is_strong(b) && reaches(a, b) && reaches(b, a);
  }

  void find_communication() {
    size_t count = events_.size();
    for (size_t w = 0; w < count; ++w)
      for (size_t other = w + 1; other < count; ++other)
        if (writes(w) && writes(other) && same_place(w, other)) coherence_.add(w, other);
    Relation chain;
    for (size_t r = 0; r < count; ++r) {
      if (!reads(r)) continue;
      for (size_t w = 0; w < count; ++w) {
        if (w == r || !writes(w) || !same_place(w, r)) continue;
        if (events_[w].written == events_[r].read) {  // each value is written once
          reads_from_.add(w, r);
        } else if (is_older(events_[r].read, w)) {
          from_read_.add(r, w);
        }
      }
    }
    communication_ = coherence_;
    communication_ |= reads_from_;
    communication_ |= from_read_;
    for (size_t w = 0; w < count; ++w)
      for (size_t r = 0; r < count; ++r)
        if (reads_from_(w, r) && morally_strong(w, r)) observation_.add(w, r);
    observation_.close();  // from a write to a read it can only lead over read-modify-writes
  }

  // Whether the value was there before write `w`.
  [[nodiscard]] bool is_older(uint64_t value, size_t w) const {
    if (value == 0) return true;
    for (size_t source = 0; source < w; ++source)
      if (writes(source) && same_place(source, w) && events_[source].written == value) return true;
    return false;
  }

  // (first operation, write) of each release pattern; (read, last operation) of each acquire pattern.
  [[nodiscard]] std::vector<std::pair<size_t, size_t>> release_patterns() const {
    std::vector<std::pair<size_t, size_t>> found;
    for (size_t first = 0; first < events_.size(); ++first) {
      if (releases(first)) found.emplace_back(first, first);
      for (size_t w = first + 1; w < events_.size(); ++w)
        if (program_(first, w) && writes(w) && is_strong(w) &&
            (is_fence(first) || (releases(first) && same_place(first, w))))
          found.emplace_back(first, w);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::pair<size_t, size_t>> acquire_patterns() const {
    std::vector<std::pair<size_t, size_t>> found;
    for (size_t last = 0; last < events_.size(); ++last) {
      if (acquires(last)) found.emplace_back(last, last);
      for (size_t r = 0; r < last; ++r)
        if (program_(r, last) && reads(r) && is_strong(r) &&
            (is_fence(last) || (acquires(last) && same_place(r, last))))
          found.emplace_back(r, last);
    }
    return found;
  }

  void find_causality() {
    Relation base = program_;
    for (auto [first, w] : release_patterns())
      for (auto [r, last] : acquire_patterns())
        if (observation_(w, r) && morally_strong(first, last)) base.add(first, last);
    for (size_t a = 0; a < events_.size(); ++a)
      for (size_t b = a + 1; b < events_.size(); ++b)
        if (is_fence(a) && is_fence(b) && step(a).sequential && step(b).sequential && morally_strong(a, b)) {
          sequential_.add(a, b);
          base.add(a, b);
        }
    base.close();
    causality_ = base;
    causality_ |= observation_.then(base);
  }

  [[nodiscard]] bool is_sequential_per_location() const {
    Relation all;
    for (size_t a = 0; a < events_.size(); ++a)
      for (size_t b = 0; b < events_.size(); ++b)
        if (same_place(a, b) && (program_(a, b) || (communication_(a, b) && morally_strong(a, b))))
          all.add(a, b);
    all.close();
    return all.is_irreflexive();
  }

  [[nodiscard]] bool updates_are_atomic() const {
    for (size_t w = 0; w < events_.size(); ++w)
      for (size_t update = 0; update < events_.size(); ++update)
        for (size_t between = 0; between < events_.size(); ++between)
          if (step(update).what == Do::Add && from_read_(update, between) && coherence_(between, update))
            return false;
    return true;
  }

  const std::vector<Thread>& threads_;
  const std::vector<Event>& events_;
  Relation program_, coherence_, reads_from_, from_read_, communication_, observation_, sequential_,
      causality_;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}
  std::vector<Thread> threads() { return pick(2) ? any_threads() : message(); }
  uint64_t pick(uint64_t below) { return random_() % below; }

 private:
  // Anything.
  std::vector<Thread> any_threads() {
    std::vector<Thread> made(2 + pick(3));
    for (Thread& thread : made) {
      thread.block = block();
      size_t count = 2 + pick(4);
      for (size_t i = 0; i < count; ++i)
        thread.steps.push_back(step(static_cast<uint32_t>(pick(kLocations))));
    }
    return made;
  }
  // Data, then a flag by which one or two others may come to know of it, with anything else in between.
  std::vector<Thread> message() {
    constexpr uint32_t kData = 0, kFlag = 1;
    std::vector<Thread> made(2 + pick(2));
    for (Thread& thread : made) thread.block = block();
    made[0].steps = {write(kData, next_value(), Semantics::Weak)};
    for (Thread& thread : made) {
      if (&thread != made.data()) thread.steps.push_back(step(kFlag));
      for (uint64_t i = pick(3); i; --i) thread.steps.push_back(pick(3) ? any_fence() : step(kFlag));
      if (&thread == made.data()) thread.steps.push_back(step(kFlag));
      if (&thread != made.data()) thread.steps.push_back(read(kData, 0, Semantics::Weak));
    }
    return made;
  }

  uint64_t block() {
    constexpr std::array<uint64_t, 5> kBlocks{1, 1, 2, 3, kHostBlock};
    uint64_t chosen = kBlocks[pick(has_host_ ? 4 : 5)];
    has_host_ |= chosen == kHostBlock;
    return chosen;
  }
  Scope scope() { return pick(3) == 0 ? Scope::Cta : pick(3) == 0 ? Scope::Sys : Scope::Gpu; }
  Step any_fence() { return fence(pick(3) == 0, scope()); }
  uint32_t next_value() { return std::exchange(next_value_, 2 * next_value_); }  // sums differ as well

  Step step(uint32_t location) {
    constexpr std::array<Semantics, 5> kReads{Semantics::Weak, Semantics::Relaxed, Semantics::Relaxed,
                                              Semantics::Acquire, Semantics::Volatile};
    constexpr std::array<Semantics, 5> kWrites{Semantics::Weak, Semantics::Relaxed, Semantics::Relaxed,
                                               Semantics::Release, Semantics::Volatile};
    constexpr std::array<Semantics, 4> kUpdates{Semantics::Relaxed, Semantics::Acquire, Semantics::Release,
                                                Semantics::AcquireRelease};
    switch (pick(8)) {
      case 0:
        return any_fence();
      case 1:
        return add(location, next_value(), 0, kUpdates[pick(4)], scope());
      case 2:
      case 3:
      case 4:
        return write(location, next_value(), kWrites[pick(5)], scope());
      default:
        return read(location, 0, kReads[pick(5)], scope());
    }
  }
  std::mt19937_64 random_;
  uint32_t next_value_ = 1;
  bool has_host_ = false;  // it is one thread
};

std::string text_of(const std::vector<Thread>& threads, const std::vector<Event>& events) {
  std::string text;
  for (const Event& event : events)
    text += "thread " + std::to_string(event.thread) + " of block " +
            std::to_string(static_cast<int64_t>(threads[event.thread].block)) + ": step " +
            std::to_string(static_cast<int>(event.step.what)) + " location " +
            std::to_string(event.step.location) + " semantics " +
            std::to_string(static_cast<int>(event.step.kind.semantics)) + " scope " +
            std::to_string(static_cast<int>(event.step.kind.scope)) + " read " + std::to_string(event.read) +
            " written " + std::to_string(event.written) + (event.step.sequential ? " sc\n" : "\n");
  return text;
}

TEST(Axioms, HoldForRandomPrograms) {
  uint64_t stale = 0;
  for (uint64_t seed = 1; seed <= 20000; ++seed) {
    Generator generator(seed);
    auto threads = generator.threads();
    for (uint64_t schedule = 0; schedule < 4; ++schedule) {
      MemoryModelOptions options{.weak_memory = true, .seed = 4 * seed + schedule, .stale_percent = 70};
      auto outcome = run(threads, options);
      ASSERT_LE(outcome.events.size(), kMost);
      const char* broken = Execution(threads, outcome.events).broken();
      ASSERT_EQ(broken, nullptr) << broken << " seed " << seed << "\n" << text_of(threads, outcome.events);
      std::array<uint64_t, kLocations> now{};
      for (const Event& event : outcome.events) {
        stale += event.step.what == Step::Do::Read && event.read != now[event.step.location];
        if (event.written) now[event.step.location] = event.written;
      }
    }
  }
  EXPECT_GT(stale, 20000u);  // otherwise it shows little
}

TEST(Axioms, AreBrokenWhereTheyShouldBe) {
  Event data{0, write(0, 1, Semantics::Weak), 0, 1}, flag{0, write(1, 2, Semantics::Release), 0, 2};
  Event sees{1, read(1, 0, Semantics::Acquire), 2, 0}, misses{1, read(0, 1, Semantics::Weak), 0, 0};
  std::vector<Thread> threads{{1, {}}, {2, {}}};
  std::vector<Event> events{data, flag, sees, misses};
  EXPECT_STREQ(Execution(threads, events).broken(), "causality");
  events[2].step.kind.semantics = Semantics::Relaxed;
  EXPECT_EQ(Execution(threads, events).broken(), nullptr);
  Event first{1, read(1, 0), 2, 0}, second{1, read(1, 0), 0, 0};
  std::vector<Event> back{flag, first, second};
  EXPECT_STREQ(Execution(threads, back).broken(), "causality");
  Event one{0, add(0, 1, 0), 0, 1}, two{1, add(0, 2, 0), 0, 2};
  std::vector<Event> both{one, two};
  EXPECT_STREQ(Execution(threads, both).broken(), "sc per location");
  both[0].step.kind.scope = Scope::Cta;
  EXPECT_STREQ(Execution(threads, both).broken(), "atomicity");
}

}  // namespace
}  // namespace klap::emulator::test
