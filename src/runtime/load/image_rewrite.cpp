#include "runtime/load/image_rewrite.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/calling_context.h"
#include "runtime/driver.h"
#include "runtime/links/driver_linker.h"
#include "runtime/links/link_files.h"
#include "runtime/links/program_links.h"
#include "runtime/load/module_cache.h"
#include "runtime/load/stand_ins.h"
#include "runtime/load/tuned_settings.h"
#include "runtime/process.h"
#include "support/error.h"
#include "support/file.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// An image taken apart, as far as is needed to see whether it launches.
struct Contents {
  std::string_view ptx;  // bare; it ends at its NUL or where the file does
  std::vector<container::Fatbin> fatbins;
  std::string_view machine_code;
  std::shared_ptr<const ProgramLink> link;  // whose result that is
};

Contents look_into(const ImageSource& source, container::ImageKind kind) {
  Contents contents;
  if (kind == container::ImageKind::Ptx) {
    const auto* const text = static_cast<const char*>(source.image);
    contents.ptx = {text, strnlen(text, source.readable_bytes)};
  } else if (kind == container::ImageKind::WrapperV2) {
    contents.fatbins = container::prelinked_fatbins(source.image);
  } else if (kind == container::ImageKind::Cubin) {
    const uint64_t bytes = container::machine_code_bytes(source.image);
    if (bytes > source.readable_bytes) return contents;
    contents.machine_code = {static_cast<const char*>(source.image), bytes};
  } else {
    contents.fatbins.push_back(container::parse_fatbin(source.image, source.readable_bytes));
  }
  return contents;
}

enum class LaunchingCode { None, Source, Finished };

// Damaged code is the driver's to refuse.
bool is_finished(std::string_view machine_code) {
  if (machine_code.empty()) return false;
  try {
    if (container::has_device_launch(machine_code, "machine code")) return true;
  } catch (const Error&) {
    return false;
  }
  return holds_stand_in(machine_code);
}

// One of several fatbins that launches is enough. Finished machine code launches, or is in place of code that
// does. It can be rewritten only from the link that it came from.
LaunchingCode find_launching_code(const Contents& contents, container::ImageKind kind, uint32_t sm) {
  if (contents.ptx.find("LaunchDevice") != std::string_view::npos) return LaunchingCode::Source;
  if (is_finished(contents.machine_code)) return LaunchingCode::Finished;
  for (const container::Fatbin& fatbin : contents.fatbins) {
    const container::LaunchMarks marks = container::launch_marks(fatbin, sm);
    if (marks.is_mentioned) return LaunchingCode::Source;
    if (kind == container::ImageKind::Fatbin && marks.is_finished &&
        container::best_ptx(fatbin, sm) == nullptr)
      return LaunchingCode::Finished;
  }
  return LaunchingCode::None;
}

// The link that finished machine code came from; null if it is not known.
std::shared_ptr<const ProgramLink> link_of(std::string_view machine_code) {
  auto link = ProgramLinks::instance().link_of(machine_code);
  return link ? link : LinkFiles::instance().find(machine_code);
}

// The image in the form that the pipeline takes.
jit::Program program_from(const Contents& contents, const ImageSource& source, uint32_t sm) {
  if (contents.link) return program_from(*contents.link, sm);
  if (!contents.fatbins.empty()) return jit::program_from_fatbins(contents.fatbins, sm);
  jit::Program program = jit::program_from_ptx(contents.ptx, "PTX module");
  for (jit::Unit& unit : program.units) unit.options += source.compiler_options;
  return program;
}

// A program may bring a device runtime that is newer than the nvJitLink that klap_jit finds. True if there
// was one; the one of that nvJitLink's toolkit takes its place.
bool drop_device_runtime(jit::Program& program) {
  return std::erase_if(program.units, [](const jit::Unit& unit) { return unit.is_device_runtime; }) != 0;
}

// For a driver that takes no machine code: turns the program into PTX, without the device runtime, which such
// a driver has itself.
void drop_machine_code(jit::Program& program) {
  drop_device_runtime(program);
  for (jit::Unit& unit : program.units) unit.cubin.clear();
  program.built_in_runtime = true;
}

// KLAP_DUMP_DIR/PROCESS-NUMBER/STAGE, so that neither modules nor processes overwrite each other's.
jit::Dump dump_to_folder() {
  if (config().dump_dir.empty()) return {};
  static std::atomic<unsigned> modules{0};
  const auto folder = config().dump_dir / fmt::format("{}-{}", getpid(), modules.fetch_add(1));
  return [folder](const jit::Stage& stage) {
    try {
      make_folder(folder.parent_path());
      make_folder(folder);
      write_file(folder / stage.file, stage.bytes);
    } catch (const Error& error) {
      static std::once_flag once;  // each stage of each module would fail in the same way
      std::call_once(once, [&] { log().warn("KLAP_DUMP_DIR: stages are not written: {}", error.what()); });
    }
  };
}

// One for the process; leaked, since modules may be loaded during exit.
jit::DiskCache* disk_cache() {
  static jit::DiskCache* const cache = make_disk_cache(config()).release();
  return cache;
}

jit::Request request_for(uint32_t sm, const std::shared_ptr<const settings::Config>& asked) {
  jit::Request request;
  request.sm = sm;
  request.setting = [asked](std::string_view key, const std::string& parent, const std::string& child) {
    return asked->setting_for(key, parent, child);
  };
  request.linker = chosen_linker(config().linker);
  request.device_runtime = config().device_runtime;
  request.by_sizes = config().tune != settings::TuneMode::Off;
  request.dump = dump_to_folder();
  request.cache = disk_cache();
  request.configuration = settings::canonical_text(*asked);
  return request;
}

// All other kinds are passed on after reading their first bytes.
bool may_launch(container::ImageKind kind) {
  return kind == container::ImageKind::WrapperV2 || kind == container::ImageKind::Fatbin ||
         kind == container::ImageKind::Ptx || kind == container::ImageKind::Cubin;
}

// Machine code that launches, and was linked elsewhere.
constexpr char kOnlyMachineCode[] =
    "the code launches kernels from the device, but it is finished machine code without PTX: it stays as it "
    "is";

void say_once(const char* load_path, const char* what) {
  static std::atomic<bool> is_said{false};
  const auto level = is_said.exchange(true) ? spdlog::level::info : spdlog::level::warn;
  log().log(level, "{}: {}", load_path, what);
}

// A program is found in an image if something of it can be rewritten. Nothing of it is decompressed yet but
// what tells so.
struct Found {
  Contents contents;
  uint32_t sm = 0;
};

std::optional<Found> find_program(const ImageSource& source, ModuleRecord& record) {
  const container::ImageKind kind = container::classify(source.image);
  if (!may_launch(kind)) return std::nullopt;
  const uint32_t sm = target_capability(source.every_device);
  Contents contents = look_into(source, kind);
  const LaunchingCode code = find_launching_code(contents, kind, sm);
  if (code == LaunchingCode::None) return std::nullopt;

  record.how = "nothing to rewrite";
  if (!contents.machine_code.empty()) contents.link = link_of(contents.machine_code);
  if (code == LaunchingCode::Finished && !contents.link) {
    if (holds_stand_in(contents.machine_code))
      throw Error(ErrorCode::Unsupported, "what it was linked from is not known");
    say_once(source.load_path, kOnlyMachineCode);
    return std::nullopt;
  }
  if (sm == 0) {
    throw Error(ErrorCode::Unsupported, source.every_device ? "the devices differ in compute capability"
                                                            : "there is no current device");
  }
  return Found{std::move(contents), sm};
}

TakenProgram take(const Found& found, const ImageSource& source) {
  return {source.load_path, program_from(found.contents, source, found.sm), source.every_device, found.sm,
          found.contents.link != nullptr};
}

}  // namespace

bool is_stand_in(const ImageSource& source) {
  if (container::classify(source.image) != container::ImageKind::Cubin) return false;
  return holds_stand_in(look_into(source, container::ImageKind::Cubin).machine_code);
}

std::optional<TakenProgram> take_program(const ImageSource& source, ModuleRecord& record) {
  const std::optional<Found> found = find_program(source, record);
  if (!found) return std::nullopt;
  std::optional<TakenProgram> taken;
  in_own_thread([&] { taken = take(*found, source); });
  return taken;
}

std::shared_ptr<const jit::RewrittenModule> rewrite_program(TakenProgram taken, ModuleRecord& record,
                                                            bool only_cached) {
  std::shared_ptr<const jit::RewrittenModule> rewritten;
  in_own_thread([&] {
    jit::Program& program = taken.program;
    if (!takes_machine_code()) drop_machine_code(program);
    const TunedSettings tuned = tuned_settings(program, taken.every_device);
    record.tuned_file = tuned.file;
    record.is_tuned = tuned.is_found;
    const auto rewrite = [&]() -> std::optional<jit::RewrittenModule> {
      const jit::Request request = request_for(taken.sm, tuned.config);
      return only_cached ? jit::find_rewritten(program, request) : jit::rewrite_module(program, request);
    };
    std::optional<jit::RewrittenModule> made;
    try {
      made = rewrite();
    } catch (const Error& error) {
      if (!taken.is_linked || error.code() != ErrorCode::Link || !drop_device_runtime(program)) throw;
      log().info("{}: linked with klap_jit's own device runtime: {}", taken.load_path, error.what());
      made = rewrite();
    }
    if (made) rewritten = std::make_shared<const jit::RewrittenModule>(std::move(*made));
  });
  if (!rewritten) return nullptr;
  record.remarks = rewritten->remarks;
  record.timings = rewritten->timings;
  record.cache = jit::to_string(rewritten->cache);
  if (only_cached) return rewritten;
  return rewritten->cubin.empty() ? nullptr : rewritten;
}

std::shared_ptr<const jit::RewrittenModule> rewrite_image(const ImageSource& source, ModuleRecord& record) {
  const std::optional<Found> found = find_program(source, record);
  if (!found) return nullptr;
  std::shared_ptr<const jit::RewrittenModule> rewritten;
  // One thread does both, since each costs some tenths of a millisecond.
  in_own_thread([&] { rewritten = rewrite_program(take(*found, source), record); });
  return rewritten;
}

std::string ptxas_options(std::span<const CUjit_option> options, void* const* values) {
  std::string text;
  for (size_t i = 0; i < options.size(); ++i) {
    const auto value = static_cast<unsigned>(reinterpret_cast<uintptr_t>(values[i]));
    switch (options[i]) {
      case CU_JIT_MAX_REGISTERS:
        text += fmt::format(" -maxrregcount={}", value);
        break;
      case CU_JIT_OPTIMIZATION_LEVEL:
        text += fmt::format(" -O{}", value);
        break;
      case CU_JIT_GENERATE_DEBUG_INFO:
        text += value ? " -g" : "";
        break;
      case CU_JIT_GENERATE_LINE_INFO:
        text += value ? " -lineinfo" : "";
        break;
      default:
        break;  // logs, timings and caching are the driver's business
    }
  }
  return text;
}

}  // namespace klap::runtime
