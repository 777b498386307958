#include "runtime/launch/stream_turns.h"

#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <thread>

#include "runtime/driver.h"

namespace klap::runtime {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLaunchWaits(20), kCallWaits(1000);

// A slot says what its thread is enqueuing. Slots are never freed, since others may look at them at any time;
// a thread that starts takes one that an ended thread has left. A launch looks at other threads' operations,
// and an operation at their launches. Each of the two has a cache line to itself, so that a thread that does
// one of them does not slow down those that look for the other.
struct Slot {
  Slot* next = nullptr;
  std::atomic<bool> is_taken{true};
  // Null: nothing. A legacy stream is its context here, and a per-thread stream its thread's slot
  // (canonical()).
  alignas(64) std::atomic<CUstream> operation{nullptr};
  std::atomic<CUstream> waits{nullptr};  // the thread lets another one's launch finish first
  std::atomic<uint64_t> number{0};       // of the thread's operation
  std::atomic<uint64_t> takes_long{0};   // the number of an operation that launches no longer wait for
  alignas(64) std::atomic<CUstream> launch{nullptr};
  std::atomic<CUstream> legacy{nullptr};    // that the launch's stream waits for, or that it is; null if none
  std::atomic<uint64_t> launches_begun{0};  // a launch that follows another one is not the same
  std::atomic<uint64_t> long_launch{0};     // the one that nobody waits for any longer
};

alignas(64) std::atomic<Slot*> slots{nullptr};
alignas(64) std::atomic<unsigned> waiting{0};   // threads that let a launch finish
alignas(64) std::atomic<unsigned> launches{0};  // that are being enqueued

// How many threads enqueue something in a stream. Streams may share an entry. There may be many slots, so
// they are looked at only where these numbers say that it could be worth it.
struct alignas(64) Numbers {
  std::atomic<unsigned> operations{0}, launches{0};
};
std::array<Numbers, 256> numbers;

// Legacy streams differ by their contexts, which are even.
bool is_legacy(CUstream stream) noexcept {
  return stream != kAllStreams && (reinterpret_cast<uintptr_t>(stream) & 1) != 0;
}

// All legacy streams share an entry.
Numbers& numbers_of(CUstream stream) noexcept {
  if (is_legacy(stream)) stream = CU_STREAM_LEGACY;
  return numbers[reinterpret_cast<uintptr_t>(stream) * 0x9E3779B97F4A7C15u >> 56];
}

// A thread that has just said what it does must see the slots of all that have done so before. So this is in
// one order with what they say.
Slot* first_slot() noexcept { return slots.load(); }

Slot* take_slot() noexcept {
  for (Slot* slot = first_slot(); slot != nullptr; slot = slot->next) {
    bool expected = false;
    if (!slot->is_taken.load() && slot->is_taken.compare_exchange_strong(expected, true)) return slot;
  }
  auto* const slot = new (std::nothrow) Slot;
  if (slot == nullptr) return nullptr;
  slot->next = slots.load(std::memory_order_relaxed);
  while (!slots.compare_exchange_weak(slot->next, slot)) {
  }
  return slot;
}

void leave_operation(Slot& slot) noexcept {
  const CUstream stream = slot.operation.load(std::memory_order_relaxed);
  if (stream == nullptr) return;
  slot.operation.store(nullptr, std::memory_order_release);
  numbers_of(stream).operations.fetch_sub(1, std::memory_order_release);
}

// The thread's slot while its operation stands there.
thread_local Slot* with_operation = nullptr;

// Constructed at the thread's first operation. A thread's other destructors may call the driver after its
// own; then there is no slot. A thread that is cancelled has not ended its operation.
struct OwnSlot {
  Slot* slot = take_slot();
  ~OwnSlot() {
    if (slot == nullptr) return;
    with_operation = nullptr;
    leave_operation(*slot);
    slot->is_taken = false;
    slot = nullptr;
  }
};

Slot* own_slot() noexcept {
  static thread_local OwnSlot own;
  return own.slot;
}

CUstream legacy_stream() noexcept {
  CUcontext context = nullptr;
  if (const Driver* const cuda = driver()) cuda->ctx_get_current(&context);
  return reinterpret_cast<CUstream>(reinterpret_cast<uintptr_t>(context) | 1);
}

CUstream canonical(CUstream stream, Slot* own) noexcept {
  if (stream == nullptr || stream == CU_STREAM_LEGACY) return legacy_stream();
  return stream == CU_STREAM_PER_THREAD ? reinterpret_cast<CUstream>(own) : stream;
}

// Whether what is enqueued in `stream` may come between the operations of a launch in another one. Of
// `stream` neither the context is known, nor whether it is blocking.
bool meets(CUstream stream, CUstream launch, CUstream legacy) {
  if (stream == launch || stream == kAllStreams) return true;
  if (stream == kAllLegacyStreams) return legacy != nullptr;
  return launch == legacy ? !is_legacy(stream) : stream == legacy;
}

bool may_meet_launch(CUstream stream) {
  if (launches.load() == 0) return false;
  return stream == kAllStreams || is_legacy(stream) || numbers_of(stream).launches.load() != 0 ||
         numbers_of(CU_STREAM_LEGACY).launches.load() != 0;
}

bool may_meet_operation(CUstream launch, CUstream legacy) {
  return launch == legacy || numbers_of(launch).operations.load() != 0 ||
         numbers_of(kAllStreams).operations.load() != 0 ||
         (legacy != nullptr && numbers_of(legacy).operations.load() != 0);
}

// False if the launch has taken so long that nobody waits for it any longer.
bool meets_launch_of(const Slot& other, CUstream stream) {
  const CUstream launch = other.launch.load();
  return launch != nullptr && meets(stream, launch, other.legacy.load(std::memory_order_relaxed)) &&
         other.long_launch.load() != other.launches_begun.load();
}

// Null if there is none.
Slot* launch_met(CUstream stream, const Slot* own) {
  for (Slot* slot = first_slot(); slot != nullptr; slot = slot->next) {
    if (slot != own && meets_launch_of(*slot, stream)) return slot;
  }
  return nullptr;
}

// Waiting in small steps, with a limit. Most waits are for a few microseconds. A thread that waits longer
// leaves its processor to the one that it waits for. It is not cancelled meanwhile, since callers throw
// nothing.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds limit) : limit_(limit) {}
  ~Patience() {
    if (steps_ != 0) pthread_setcancelstate(cancel_state_, nullptr);
  }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  // False when it is over.
  bool step() {
    constexpr int kYields = 50;
    if (steps_ == 0) {
      until_ = Clock::now() + limit_;
      pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_);
    }
    if (++steps_ < kYields) {
      sched_yield();
      return true;
    }
    if (Clock::now() >= until_) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    return true;
  }

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point until_;
  int cancel_state_ = PTHREAD_CANCEL_ENABLE;
  int64_t steps_ = 0;
};

// Waits until the other thread's operation has returned, or has taken so long that it must be enqueued, or
// must be waiting for the GPU.
void await_operation(Slot& other, CUstream launch, CUstream legacy, Patience& patience) {
  const auto is_under_way = [&] {
    const CUstream stream = other.operation.load();
    return stream != nullptr && meets(stream, launch, legacy);
  };
  if (!is_under_way()) return;
  const uint64_t number = other.number.load();
  if (other.takes_long.load() == number) return;
  while (is_under_way() && other.number.load() == number) {
    if (!patience.step()) {
      other.takes_long = number;
      return;
    }
  }
}

// Lets those go first that wait already. So launches that follow each other closely do not keep them.
void await_waiting(CUstream launch, CUstream legacy) {
  if (waiting.load(std::memory_order_relaxed) == 0) return;
  Patience patience(kLaunchWaits);
  for (const Slot* slot = first_slot(); slot != nullptr; slot = slot->next) {
    const auto waits = [&] {
      const CUstream stream = slot->waits.load();
      return stream != nullptr && meets(stream, launch, legacy);
    };
    while (waits()) {
      if (!patience.step()) return;
    }
  }
}

// Waits for the launch that the other thread has begun, but not for its next one. False if it takes too long.
bool await_launch(Slot& other, CUstream stream, Patience& patience) {
  const uint64_t begun = other.launches_begun.load();
  while (meets_launch_of(other, stream) && other.launches_begun.load() == begun) {
    if (patience.step()) continue;
    other.long_launch = begun;
    return false;
  }
  return true;
}

// `said`, a word of the own slot, says that something is enqueued in `stream`. If other threads' launches
// meet that, it is taken back until they have finished.
void let_launches_finish(CUstream stream, Slot* own, std::atomic<CUstream>& said) {
  if (launch_met(stream, own) == nullptr) return;
  Patience patience(kCallWaits);
  own->waits.store(stream);
  waiting.fetch_add(1);
  bool may_wait = true;
  do {
    said.store(nullptr);
    while (Slot* const other = may_wait ? launch_met(stream, own) : nullptr) {
      may_wait = patience.step();
      if (!may_wait) other->long_launch = other->launches_begun.load();
    }
    said.store(stream);
  } while (may_wait && launch_met(stream, own) != nullptr);
  own->waits.store(nullptr);
  waiting.fetch_sub(1);
}

// Launches in the legacy stream exclude those in blocking streams. They come first, or many threads with
// streams of their own could keep them waiting. Launches in one stream exclude each other elsewhere.
void let_other_launches_finish(CUstream stream, Slot* own, CUstream legacy) {
  if (stream != legacy) {
    if (legacy != nullptr && numbers_of(legacy).launches.load() != 0)
      let_launches_finish(stream, own, own->launch);
    return;
  }
  if (launches.load() == 1) return;  // the own one
  Patience patience(kCallWaits);
  for (Slot* slot = first_slot(); slot != nullptr; slot = slot->next) {
    if (slot != own && !is_legacy(slot->launch.load())) await_launch(*slot, stream, patience);
  }
}

}  // namespace

// A launch and an operation each say what they do before they look at the other, in one order for all
// threads. So at least one of them sees the other. The numbers are changed in between. An operation that does
// so takes its word back and waits.
void begin_operation(CUstream stream) noexcept {
  Slot* const own = own_slot();
  if (own == nullptr) return;
  stream = canonical(stream, own);
  with_operation = own;
  leave_operation(*own);  // one that did not return, but was left by an exception or a signal handler
  own->number.store(own->number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  own->operation.store(stream);
  numbers_of(stream).operations.fetch_add(1);
  if (may_meet_launch(stream)) let_launches_finish(stream, own, own->operation);
}

void end_operation() noexcept {
  if (with_operation == nullptr) return;
  leave_operation(*with_operation);
  with_operation = nullptr;
}

// Other launches may follow in no time, so only those are waited for that are half enqueued now.
void before_wait(CUstream stream) noexcept {
  if (launches.load() == 0) return;
  Slot* const own = own_slot();
  if (own == nullptr) return;
  stream = canonical(stream, own);
  if (!may_meet_launch(stream)) return;
  Patience patience(kCallWaits);
  for (Slot* slot = first_slot(); slot != nullptr; slot = slot->next) {
    if (slot != own && !await_launch(*slot, stream, patience)) return;
  }
}

// Operations that are under way when the launch says what it does are all waited for at once. So the ones
// that are left after kLaunchWaits have all taken that long.
WholeLaunch::WholeLaunch(CUstream stream, bool is_blocking) noexcept {
  Slot* const own = own_slot();
  if (own == nullptr) return;
  stream = canonical(stream, own);
  const CUstream legacy = is_legacy(stream) ? stream : is_blocking ? legacy_stream() : nullptr;
  await_waiting(stream, legacy);
  own->legacy.store(legacy, std::memory_order_relaxed);
  own->launches_begun.store(own->launches_begun.load(std::memory_order_relaxed) + 1);
  own->launch.store(stream);
  launches.fetch_add(1);
  numbers_of(stream).launches.fetch_add(1);
  is_entered_ = true;
  let_other_launches_finish(stream, own, legacy);
  if (!may_meet_operation(stream, legacy)) return;
  Patience patience(kLaunchWaits);
  for (Slot* slot = first_slot(); slot != nullptr; slot = slot->next) {
    if (slot != own) await_operation(*slot, stream, legacy, patience);
  }
}

WholeLaunch::~WholeLaunch() {
  if (!is_entered_) return;
  Slot* const own = own_slot();
  const CUstream stream = own->launch.load(std::memory_order_relaxed);
  own->launch.store(nullptr, std::memory_order_release);
  numbers_of(stream).launches.fetch_sub(1, std::memory_order_release);
  launches.fetch_sub(1);
}

}  // namespace klap::runtime
