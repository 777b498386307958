// The machine: one loop begins operations and runs turns of the executor until the awaited work is done. The
// rest of the file is the bookkeeping around it.
#include "emulator/machine/machine.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "emulator/decode/decode.h"
#include "emulator/device_runtime/device_heap.h"
#include "emulator/device_runtime/device_runtime.h"
#include "emulator/machine/loaded_before.h"
#include "emulator/streams/grid_tree.h"
#include "emulator/streams/streams.h"
#include "ptx/tree.h"
#include "support/error.h"

namespace klap::emulator {

namespace rt = runtime_error;

namespace {

constexpr uint64_t kPollInstructions = 20000;
constexpr uint32_t kPollSteps = 200000;  // where no instructions run: operations of the host
constexpr int kTimeout = 702;
constexpr uint64_t kResidentGrids =
    128;  // a device's limit; also bounds what the executor has to look through

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// The schedules that promise an order of some kind begin operations as soon as they can.
bool begins_in_order(ScheduleKind kind) {
  return kind != ScheduleKind::Random && kind != ScheduleKind::OneBlock && kind != ScheduleKind::StarveOne;
}

}  // namespace

struct Machine::State final : public ExecutorListener {
  explicit State(const MachineOptions& given);
  ~State() override { executor.clear(); }

  // ---- of the executor ----
  void call(const ThreadCall& thread_call) override { runtime.call(thread_call); }
  void block_finished(Grid&, uint64_t block) override { runtime.block_finished(block); }
  void blocks_finished(Grid& grid) override {
    if (grid.error.empty())
      grids.exited(grid);
    else
      note_failure(grid.error_code == 0 ? rt::kLaunchFailure : grid.error_code, grid.error);
  }

  // The next thing that the schedule chooses; false if there is nothing to do or the machine has failed.
  bool step();
  template <typename Done>
  int run_until(Done done);
  template <typename Done>
  bool poll(Done done);
  void begin_one();
  void note_failure(int code, const std::string& text);
  void stop();
  // After the host has waited for `history`: if that was all there is, nothing of it matters any more.
  void waited_for(const HistoryRef& history);

  [[nodiscard]] uint32_t dynamic_limit(const Function& kernel) const;
  const std::string& unsupported(const Image& image, const Function& kernel);
  RuntimeHost runtime_host();

  const uint64_t id = next_number();  // of no other machine
  MachineOptions options;
  Memory memory;
  MemoryModel order;
  Operations operations;
  GridTree grids;
  Streams streams;
  DeviceHeap heap;
  DeviceLaunchCounts counts;
  Executor executor;
  DeviceRuntime runtime;

  HistoryRef host_history;  // the history that the host has waited for
  int code = 0;             // sticky
  bool failing = false;     // failed in the present step, and not yet stopped
  std::string text;
  std::vector<std::shared_ptr<const Image>> images;
  std::unordered_map<const Function*, uint32_t> dynamic_limits;
  std::unordered_map<const Function*, std::string> unsupported_texts;
};

Machine::State::State(const MachineOptions& given)
    : options(given),
      memory(options.executor.device.memory_bytes),
      order(options.executor.order,
            [this](const std::string& message) {
              if (options.finding) options.finding(message);
            }),
      operations(begins_in_order(options.executor.schedule), options.executor.seed),
      grids(operations, [this](Grid& grid) { executor.start(grid); }),
      streams(operations),
      heap(memory, order, options.heap_bytes),
      executor(options.executor, memory, order, *this),
      runtime(runtime_host()) {}

RuntimeHost Machine::State::runtime_host() {
  return {
      .memory = memory,
      .order = order,
      .operations = operations,
      .grids = grids,
      .heap = heap,
      .counts = counts,
      .device = options.executor.device,
      .ordered = options.executor.order.any(),
      .read = [this](const ThreadCall& c, uint64_t a, std::span<std::byte> out) { executor.read(c, a, out); },
      .write = [this](const ThreadCall& c, uint64_t a,
                      std::span<const std::byte> bytes) { executor.write(c, a, bytes); },
      .print = options.print,
      .fail = [this](int number, const std::string& why) { note_failure(number, why); },
      .unsupported = [this](const Image& i, const Function& kernel) { return unsupported(i, kernel); },
      .shared_limit = [this](const Function& kernel) { return kernel.shared_bytes + dynamic_limit(kernel); },
      .occupancy =
          [this](const Function& kernel, uint32_t threads, uint32_t shared) {
            return Executor::occupancy(options.executor.device, kernel, threads, shared);
          }};
}

uint32_t Machine::State::dynamic_limit(const Function& kernel) const {
  const auto found = dynamic_limits.find(&kernel);
  if (found != dynamic_limits.end()) return found->second;
  return kDefaultSharedLimit - std::min(kDefaultSharedLimit, kernel.shared_bytes);
}

const std::string& Machine::State::unsupported(const Image& image, const Function& kernel) {
  const auto found = unsupported_texts.find(&kernel);
  if (found != unsupported_texts.end()) return found->second;
  return unsupported_texts[&kernel] = unsupported_in(image, kernel);
}

void Machine::State::note_failure(int number, const std::string& why) {
  if (code != 0) return;
  code = number;
  text = why;
  failing = true;
}

// Ends all running and waiting work.
void Machine::State::stop() {
  failing = false;
  executor.clear();
  operations.clear();
  grids.clear();
  runtime.clear();
}

void Machine::State::begin_one() {
  try {
    operations.begin_one();
  } catch (const Error& error) {
    note_failure(error.code() == ErrorCode::Unsupported ? rt::kNotSupported : rt::kLaunchFailure,
                 error.what());
  }
}

bool Machine::State::step() {
  if (code != 0) return false;
  if (operations.can_begin() && grids.running() < kResidentGrids && operations.choose(4)) {
    begin_one();
  } else if (const Executor::Outcome outcome = executor.turn();
             outcome != Executor::Outcome::Ran && !failing) {
    if (operations.can_begin())
      begin_one();
    else if (outcome == Executor::Outcome::Deadlock)
      note_failure(kTimeout, executor.deadlock_report());
    else
      return false;
  }
  if (failing) stop();
  return code == 0;
}

template <typename Done>
int Machine::State::run_until(Done done) {
  while (code == 0 && !done()) {
    if (!step() && code == 0) {
      note_failure(rt::kUnknown, "internal error: there is work that nothing can begin");
      stop();
    }
  }
  return code;
}

template <typename Done>
bool Machine::State::poll(Done done) {
  const uint64_t enough = executor.steps() + kPollInstructions;
  for (uint32_t n = 0; n < kPollSteps && executor.steps() < enough && code == 0 && !done(); ++n) {
    if (!step()) break;
  }
  return code != 0 || done();
}

void Machine::State::waited_for(const HistoryRef& history) {
  host_history = joined(host_history, history);
  if (operations.unfinished() != 0 || !streams.all_covered()) return;
  order.synchronise_all();
  host_history = nullptr;
  streams.forget();
}

// ---- Machine ----

Machine::Machine(const MachineOptions& options) : state_(std::make_unique<State>(options)) {}
Machine::~Machine() = default;

Memory& Machine::memory() { return state_->memory; }
Executor& Machine::executor() { return state_->executor; }
MemoryModel& Machine::order() { return state_->order; }

namespace {

// All that linking looks at, so that no two lists of units have the same text.
std::string joined(const std::vector<Machine::UnitText>& units) {
  std::string text;
  for (const Machine::UnitText& unit : units) {
    for (const std::string* part : {&unit.name, &unit.ptx}) {
      text += std::to_string(part->size()) + ":";
      text += *part;
    }
  }
  return text;
}

std::shared_ptr<const Image> link(const std::vector<Machine::UnitText>& units, Memory& memory) {
  std::vector<ptx::Module> modules;
  modules.reserve(units.size());
  std::vector<const ptx::Module*> all;
  all.reserve(units.size());
  for (const Machine::UnitText& unit : units)
    all.push_back(&modules.emplace_back(ptx::parse(unit.ptx, unit.name)));
  return link_image(all, memory);
}

}  // namespace

std::shared_ptr<const Image> Machine::load(const std::vector<UnitText>& units) {
  State& s = *state_;
  LoadedBefore& before = LoadedBefore::images();
  std::string text = joined(units);
  std::shared_ptr<const Image> image = before.find(text, s.id, s.memory);
  if (!image) {
    image = link(units, s.memory);
    before.keep(std::move(text), s.id, s.memory, image);
  }
  for (const Variable& variable : image->variables) s.order.initialised(variable.address, variable.bytes);
  s.images.push_back(image);
  return image;
}

void Machine::unload(const std::shared_ptr<const Image>& image) {
  const auto found = std::find(state_->images.begin(), state_->images.end(), image);
  if (found == state_->images.end()) return;
  synchronise_all();  // running grids may use it, and messages name its functions
  for (const Variable& variable : image->variables) {
    const Allocation* piece = state_->memory.find(variable.address, 1);
    if (piece == nullptr) continue;
    state_->order.freed(variable.address, variable.bytes);
    state_->memory.free(piece->address, piece->owner);
  }
  for (const auto& function : image->functions) {
    state_->dynamic_limits.erase(function.get());
    state_->unsupported_texts.erase(function.get());
  }
  state_->images.erase(found);
}

StreamId Machine::create_stream(StreamFlags flags) { return state_->streams.create(flags); }
void Machine::destroy_stream(StreamId stream) { state_->streams.destroy(stream); }

int Machine::launch(StreamId stream, Launch launch, bool dependent) {
  State& s = *state_;
  if (s.code != 0) return s.code;
  if (launch.image == nullptr || launch.kernel == nullptr) return rt::kInvalidValue;
  const uint32_t limit = launch.kernel->shared_bytes + s.dynamic_limit(*launch.kernel);
  if (const int error = launch_error(launch, limit)) return error;
  if (const std::string& why = s.unsupported(*launch.image, *launch.kernel); !why.empty()) {
    s.text = why;
    return rt::kNotSupported;
  }
  ++s.counts.host_launches;
  const auto grid = s.grids.make(std::move(launch), nullptr);
  grid->pending_limit = s.options.pending_launches;
  grid->before_begin = s.host_history;
  const auto primary = dependent ? std::dynamic_pointer_cast<GridOperation>(s.streams.last(stream)) : nullptr;
  if (primary && !primary->is_finished())
    s.streams.enqueue_after(stream, s.grids.make_dependent(*grid, primary), grid);
  else
    s.streams.enqueue(stream, grid);
  return 0;
}

void Machine::enqueue(StreamId stream, std::function<void()> work) {
  if (state_->code != 0) return;
  const auto operation = std::make_shared<HostWork>(std::move(work));
  operation->before_begin = state_->host_history;
  state_->streams.enqueue(stream, operation);
}

EventId Machine::create_event() { return state_->streams.create_event(); }
void Machine::destroy_event(EventId event) { state_->streams.destroy_event(event); }

void Machine::record(EventId event, StreamId stream) {
  if (state_->code == 0) state_->streams.record(event, stream, state_->host_history);
}

void Machine::wait(StreamId stream, EventId event) {
  if (state_->code == 0) state_->streams.wait(stream, event, state_->host_history);
}

bool Machine::is_complete(StreamId stream) {
  State& s = *state_;
  if (!s.poll([&] { return s.streams.is_complete(stream); })) return false;
  if (s.code != 0) return true;
  s.streams.covered(stream);
  s.waited_for(s.streams.history(stream));
  return true;
}

bool Machine::is_event_complete(EventId event) {
  State& s = *state_;
  const OperationRef recorded = s.streams.event(event);
  if (!recorded) return true;
  if (!s.poll([&] { return recorded->is_finished(); })) return false;
  if (s.code == 0) s.waited_for(recorded->before_end);
  return true;
}

int Machine::synchronise(StreamId stream) {
  State& s = *state_;
  if (const int error = s.run_until([&] { return s.streams.is_complete(stream); })) return error;
  s.streams.covered(stream);
  s.waited_for(s.streams.history(stream));
  return 0;
}

int Machine::synchronise_event(EventId event) {
  State& s = *state_;
  const OperationRef recorded = s.streams.event(event);
  if (!recorded) return s.code;
  if (const int error = s.run_until([&] { return recorded->is_finished(); })) return error;
  s.waited_for(recorded->before_end);
  return 0;
}

int Machine::synchronise_all() {
  State& s = *state_;
  if (const int error = s.run_until([&] { return s.operations.unfinished() == 0; })) return error;
  s.streams.forget();
  s.waited_for(nullptr);
  return 0;
}

int Machine::error_code() const { return state_->code; }
const std::string& Machine::error_text() const { return state_->text; }
const DeviceLaunchCounts& Machine::counts() const { return state_->counts; }

void Machine::set_pending_limit(uint32_t launches) { state_->options.pending_launches = launches; }
uint32_t Machine::pending_limit() const { return state_->options.pending_launches; }
void Machine::set_heap_bytes(uint64_t bytes) { state_->heap.resize(bytes); }
uint64_t Machine::heap_bytes() const { return state_->heap.bytes(); }
uint64_t Machine::heap_allocations() const { return state_->heap.allocations(); }
uint64_t Machine::heap_used() const { return state_->heap.used(); }

void Machine::set_dynamic_shared_limit(const Function& kernel, uint32_t bytes) {
  state_->dynamic_limits[&kernel] = bytes;
}

uint32_t Machine::dynamic_shared_limit(const Function& kernel) const { return state_->dynamic_limit(kernel); }

}  // namespace klap::emulator
