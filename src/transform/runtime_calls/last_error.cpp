#include "transform/runtime_calls/last_error.h"

#include <fmt/format.h>

#include "analysis/launches/wrappers.h"

namespace klap::transform {
namespace {

// cudaGetLastError by the name that the kernel's own queries use.
std::string clearing_function(const analysis::FunctionFacts& kernel) {
  const ptx::Module& m = kernel.module;
  const analysis::ErrorQuery& query = kernel.error_queries.front();
  const auto call = analysis::parse_call(m, *query.call, kernel.data.names());
  std::string function(analysis::runtime_function(m, call->callee));
  const std::string peek = "PeekAtLastError", get = "GetLastError";
  if (const size_t at = function.find(peek); at != std::string::npos) function.replace(at, peek.size(), get);
  return function;
}

}  // namespace

std::string clear_last_error_text(const analysis::FunctionFacts& kernel, const std::string& prefix) {
  return fmt::format("\t{{\n\t.param .b32 {0}result;\n\tcall ({0}result), {1}, ();\n\t}}\n", prefix,
                     clearing_function(kernel));
}

std::string take_last_error_text(const analysis::FunctionFacts& kernel, const std::string& prefix,
                                 const std::string& error) {
  return fmt::format(
      "\t{{\n\t.param .b32 {0}result;\n\t.reg .b32 %{0}taken;\n\t.reg .pred %{0}is_error;\n"
      "\tcall ({0}result), {1}, ();\n\tld.param.b32 %{0}taken, [{0}result];\n"
      "\tsetp.ne.u32 %{0}is_error, %{0}taken, 0;\n\t@%{0}is_error mov.b32 {2}, %{0}taken;\n\t}}\n",
      prefix, clearing_function(kernel), error);
}

std::vector<std::string> last_error_declarations(const analysis::FunctionFacts& kernel) {
  if (kernel.error_queries.empty() || kernel.module.find_function(clearing_function(kernel)) != nullptr)
    return {};
  return {fmt::format(".extern .func (.param .b32 result) {}\n()\n;\n", clearing_function(kernel))};
}

}  // namespace klap::transform
