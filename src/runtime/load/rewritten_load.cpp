#include "runtime/load/rewritten_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>

#include "jit/plan/describe.h"
#include "runtime/driver.h"
#include "runtime/links/driver_linker.h"
#include "runtime/process.h"
#include "support/boundary.h"
#include "support/error.h"
#include "support/log.h"

namespace klap::runtime {

namespace {

// The text is that of klap-ptx explain. Its facts are for those who look for details.
void log_remark(const jit::SiteRemark& remark) {
  if (!log().should_log(spdlog::level::info)) return;
  const bool has_facts = log().should_log(spdlog::level::debug);
  std::istringstream lines(
      jit::describe(remark, remark.unit, has_facts ? jit::Verbosity::Facts : jit::Verbosity::Brief));
  for (std::string line; std::getline(lines, line);) log().info("  {}", line);
}

void log_module(const ModuleRecord& record) {
  const auto rewritten = std::count_if(record.remarks.begin(), record.remarks.end(),
                                       [](const jit::SiteRemark& remark) { return remark.rewritten; });
  log().info("{}: {}, {} of {} launch sites, {:.1f} ms, cache: {}", record.load_path, record.how, rewritten,
             record.remarks.size(), record.load_ms, record.cache);
  if (record.is_tuned)
    log().info("  its settings are tuned: {}", (config().cache_dir / record.tuned_file).string());
  for (const jit::SiteRemark& remark : record.remarks) log_remark(remark);
}

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Why nothing was rewritten, as far as the remarks say.
std::string reason_to_leave(const ModuleRecord& record) {
  for (const jit::SiteRemark& remark : record.remarks)
    if (!remark.notes.empty()) return remark.notes.back();
  return "nothing of it can be rewritten";
}

}  // namespace

std::optional<CUresult> rewrite_and_load(const Rewrite& rewrite, ModuleRecord& record,
                                         const LoadCubin& load) {
  const auto rewritten = rewrite(record);
  if (!rewritten) return std::nullopt;
  // This is done before the load, since nothing may fail behind it: the program would be given a second copy.
  ModuleRecord loaded = record;
  loaded.how = "rewritten";
  for (const jit::Variant& variant : rewritten->variants) loaded.variants.push_back(variant.parent);
  const auto start = Clock::now();
  const CUresult result = load(rewritten);
  loaded.driver_ms = milliseconds_since(start);
  if (result != CUDA_SUCCESS) {
    throw Error(ErrorCode::Driver,
                fmt::format("the driver refused the rewritten image ({})", error_name(result)));
  }
  record = std::move(loaded);
  return result;
}

const char* reason_of(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? "out of memory" : error.what();
}

std::optional<CUresult> attempt(const Rewrite& rewrite, ModuleRecord& record, const LoadCubin& load) {
  try {
    return rewrite_and_load(rewrite, record, load);
  } catch (const std::exception& error) {
    const char* const why = reason_of(error);
    report_failure(record.load_path.c_str(), "loaded unchanged", why);
    try_or_report(record.load_path.c_str(), "is not in the statistics",
                  [&] { record.how = std::string("failed: ") + why; });
    return std::nullopt;
  }
}

CUresult load_or_refuse(const Rewrite& rewrite, ModuleRecord& record, const LoadCubin& load) {
  std::string why;
  try {
    if (const auto result = rewrite_and_load(rewrite, record, load)) return *result;
    why = reason_to_leave(record);
  } catch (const std::exception& error) {
    why = reason_of(error);
  }
  report_failure(record.load_path.c_str(), "refused, as CUDA refuses code that waits for its children",
                 why.c_str());
  record.how = "failed: " + why;
  return CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC;
}

bool driver_is_complete() {
  if (!driver()->missing) return true;
  static std::once_flag once;
  std::call_once(once, [] { log().warn("this driver has no {}: nothing is rewritten", driver()->missing); });
  return false;
}

void report_module(ModuleRecord record, Clock::time_point start) {
  if (record.how.empty()) return Stats::instance().module_passed_through();
  const std::string load_path = record.load_path;
  record.load_ms = milliseconds_since(start);
  try_or_report(load_path.c_str(), "is not logged", [&] { log_module(record); });
  try_or_report(load_path.c_str(), "is not in the statistics",
                [&] { Stats::instance().module_seen(std::move(record)); });
}

}  // namespace klap::runtime
