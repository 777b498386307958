#include "analysis/facts/runtime_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/launches/idioms.h"
#include "ptx/dialect.h"

namespace klap::analysis {

namespace {

Rejection reject(Reason reason, std::string detail) { return {reason, std::move(detail)}; }

}  // namespace

using ptx::Function;
using ptx::Module;

std::string runtime_call_text(std::string_view function, const std::string& place) {
  return fmt::format("{}, {}", idioms().describe(function), place);
}

std::string unknown_callee_text(const Module& m, const Effect& call) {
  return fmt::format("{} is defined in another unit ({})", call.what, m.place(call.token));
}

Rejection check_runtime_call(std::string_view function, const std::string& subject,
                             const std::string& place) {
  const std::string text = subject + runtime_call_text(function, place);
  if (!idioms().is_kind(function, "wait")) return reject(Reason::RuntimeCall, text);
  return reject(
      Reason::ParentWaits,
      text + ": only version 1 of dynamic parallelism can, and ptxas refuses it for sm_90 and later");
}

}  // namespace klap::analysis
