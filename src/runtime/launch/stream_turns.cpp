#include "runtime/launch/stream_turns.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <thread>

namespace klap::runtime {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLaunchWaits(20), kCallWaits(1000);

// A slot says what its thread is enqueuing. Slots are never freed, since others may look at them at any time;
// a thread that starts takes one that an ended thread has left.
struct alignas(64) Slot {
  std::atomic<bool> is_taken{true};
  // Null: nothing. The legacy stream is CU_STREAM_LEGACY here, and a per-thread stream is its thread's slot.
  std::atomic<CUstream> operation{nullptr}, launch{nullptr};
  std::atomic<CUstream> waits{nullptr};     // an operation lets a launch finish first
  std::atomic<bool> is_blocking{false};     // the launch's stream
  std::atomic<uint64_t> launches_begun{0};  // a launch that follows another one is not the same
  std::atomic<uint64_t> number{0};          // of the thread's operation
  std::atomic<uint64_t> takes_long{0};      // the number of an operation that launches no longer wait for
  Slot* next = nullptr;
};

std::atomic<Slot*> slots{nullptr};
std::atomic<unsigned> launches{0};  // that are being enqueued

// Launches in the legacy stream exclude those in blocking streams. They come first, or many threads with
// streams of their own could keep them waiting.
pthread_rwlock_t legacy_order = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

Slot* take_slot() noexcept {
  for (Slot* slot = slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    bool expected = false;
    if (slot->is_taken.compare_exchange_strong(expected, true)) return slot;
  }
  auto* const slot = new (std::nothrow) Slot;
  if (slot == nullptr) return nullptr;
  slot->next = slots.load(std::memory_order_relaxed);
  while (!slots.compare_exchange_weak(slot->next, slot)) {
  }
  return slot;
}

// Constructed at the thread's first operation. A thread's other destructors may call the driver after its
// own; then there is no slot.
struct OwnSlot {
  Slot* slot = take_slot();
  ~OwnSlot() {
    if (slot == nullptr) return;
    slot->operation = nullptr;
    slot->is_taken = false;
    slot = nullptr;
  }
};

Slot* own_slot() noexcept {
  static thread_local OwnSlot own;
  return own.slot;
}

// The thread's slot while its operation stands there.
thread_local Slot* with_operation = nullptr;

CUstream canonical(CUstream stream, Slot* own) {
  if (stream == nullptr) return CU_STREAM_LEGACY;
  return stream == CU_STREAM_PER_THREAD ? reinterpret_cast<CUstream>(own) : stream;
}

// Whether what is enqueued in `stream` may come between the operations of a launch in another one. Of
// `stream` it is not known whether it is blocking.
bool meets(CUstream stream, CUstream launch, bool is_blocking) {
  if (stream == launch || stream == kAllStreams || launch == CU_STREAM_LEGACY) return true;
  return stream == CU_STREAM_LEGACY && is_blocking;
}

bool meets_launch_of(const Slot& other, CUstream stream) {
  const CUstream launch = other.launch.load();
  return launch != nullptr && meets(stream, launch, other.is_blocking.load(std::memory_order_relaxed));
}

bool meets_launch(CUstream stream, const Slot* own) {
  for (const Slot* slot = slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    if (slot != own && meets_launch_of(*slot, stream)) return true;
  }
  return false;
}

// Waiting in small steps, with a limit. Most waits are for a few microseconds. A thread that waits longer
// leaves its processor to the one that it waits for.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds limit) : limit_(limit) {}
  // False when it is over.
  bool step() {
    constexpr int kYields = 50;
    if (steps_ == 0) until_ = Clock::now() + limit_;
    if (++steps_ < kYields) {
      sched_yield();
      return true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    return Clock::now() < until_;
  }

 private:
  std::chrono::milliseconds limit_;
  Clock::time_point until_;
  int steps_ = 0;
};

// Waits until the other thread's operation has returned, or has taken so long that it must be enqueued, or
// must be waiting for the GPU.
void await_operation(Slot& other, CUstream launch, bool is_blocking) {
  const auto is_under_way = [&] {
    const CUstream stream = other.operation.load();
    return stream != nullptr && meets(stream, launch, is_blocking);
  };
  if (!is_under_way()) return;
  const uint64_t number = other.number.load();
  if (other.takes_long.load() == number) return;
  Patience patience(kLaunchWaits);
  while (is_under_way() && other.number.load() == number) {
    if (!patience.step()) {
      other.takes_long = number;
      return;
    }
  }
}

// Lets operations go first that wait already. So launches that follow each other closely do not keep them.
void await_waiting(CUstream launch, bool is_blocking) {
  Patience patience(kLaunchWaits);
  for (const Slot* slot = slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    const auto waits = [&] {
      const CUstream stream = slot->waits.load();
      return stream != nullptr && meets(stream, launch, is_blocking);
    };
    while (waits()) {
      if (!patience.step()) return;
    }
  }
}

}  // namespace

// A launch and an operation each say what they do before they look at the other, in one order for all
// threads. So at least one of them sees the other. An operation that does so takes its word back and waits.
void begin_operation(CUstream stream) noexcept {
  Slot* const own = own_slot();
  if (own == nullptr) return;
  stream = canonical(stream, own);
  with_operation = own;
  own->number.store(own->number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  own->operation.store(stream);
  if (launches.load() == 0 || !meets_launch(stream, own)) return;
  Patience patience(kCallWaits);
  bool may_wait = true;
  own->waits.store(stream);
  do {
    own->operation.store(nullptr);
    while (may_wait && meets_launch(stream, own)) may_wait = patience.step();
    own->operation.store(stream);
  } while (may_wait && meets_launch(stream, own));
  own->waits.store(nullptr);
}

void end_operation() noexcept {
  if (with_operation == nullptr) return;
  with_operation->operation.store(nullptr, std::memory_order_release);
  with_operation = nullptr;
}

// Other launches may follow in no time, so only those are waited for that are half enqueued now.
void before_wait(CUstream stream) noexcept {
  if (launches.load() == 0) return;
  Slot* const own = own_slot();
  if (own == nullptr) return;
  stream = canonical(stream, own);
  Patience patience(kCallWaits);
  for (const Slot* slot = slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    const uint64_t begun = slot->launches_begun.load();
    while (slot != own && meets_launch_of(*slot, stream) && slot->launches_begun.load() == begun) {
      if (!patience.step()) return;
    }
  }
}

WholeLaunch::WholeLaunch(CUstream stream, bool is_blocking) noexcept {
  Slot* const own = own_slot();
  if (own == nullptr) return;
  stream = canonical(stream, own);
  if (stream == CU_STREAM_LEGACY) {
    pthread_rwlock_wrlock(&legacy_order);
    lock_ = Lock::Alone;
  } else if (is_blocking) {
    pthread_rwlock_rdlock(&legacy_order);
    lock_ = Lock::Shared;
  }
  await_waiting(stream, is_blocking);
  own->is_blocking.store(is_blocking, std::memory_order_relaxed);
  own->launches_begun.store(own->launches_begun.load(std::memory_order_relaxed) + 1);
  own->launch.store(stream);
  launches.fetch_add(1);
  is_entered_ = true;
  for (Slot* slot = slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    if (slot != own) await_operation(*slot, stream, is_blocking);
  }
}

WholeLaunch::~WholeLaunch() {
  if (is_entered_) {
    own_slot()->launch.store(nullptr, std::memory_order_release);
    launches.fetch_sub(1);
  }
  if (lock_ != Lock::None) pthread_rwlock_unlock(&legacy_order);
}

}  // namespace klap::runtime
