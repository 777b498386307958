#include "transform/feed.h"

#include <fmt/format.h>

#include <utility>

#include "analysis/wrappers.h"
#include "support/error.h"
#include "transform/own_streams.h"

namespace klap::transform {
namespace {

using analysis::ErrorQuery;
using ptx::Function;
using ptx::Module;

constexpr char kReserveFunction[] = "__klap_reserve";
constexpr char kPublishFunction[] = "__klap_publish";
constexpr char kPublishNowFunction[] = "__klap_publish_now";

const Function& template_function(const Module& module, const char* name) {
  const Function* f = module.find_function(name);
  if (f == nullptr || !f->is_definition)
    throw Error(ErrorCode::Internal, fmt::format("the compiled template does not define {}", name));
  return *f;
}

}  // namespace

FeedingSite::FeedingSite(const analysis::FunctionFacts& kernel, const analysis::Site& site,
                         const Module& record, std::string prefix, std::string queue, LineTables& lines)
    : kernel_(kernel),
      site_(site),
      record_(record),
      prefix_(std::move(prefix)),
      queue_(std::move(queue)),
      lines_(lines) {}

std::string FeedingSite::registers() const {
  return fmt::format("\t.reg .pred %{0}own;\n\t.reg .b64 %{0}arguments;\n\tmov.pred %{0}own, 0;\n", prefix_);
}

std::string FeedingSite::label(std::string_view what) const { return fmt::format("${}{}", prefix_, what); }

// A label with the statement that must stand behind it.
std::string FeedingSite::landing(std::string_view what) const {
  return fmt::format("{0}:\n\t.reg .pred %{1}{2};\n\tmov.pred %{1}{2}, 0;\n", label(what), prefix_, what);
}

// cudaGetLastError by the name that the kernel's own queries use.
std::string FeedingSite::clearing_function() const {
  const Module& m = kernel_.module;
  const ErrorQuery& query = kernel_.error_queries.front();
  const auto call = analysis::parse_call(m, *query.call, kernel_.data.names());
  std::string function(analysis::runtime_function(m, call->callee));
  const std::string peek = "PeekAtLastError", get = "GetLastError";
  if (const size_t at = function.find(peek); at != std::string::npos) function.replace(at, peek.size(), get);
  return function;
}

std::vector<std::string> FeedingSite::declarations() const {
  if (kernel_.error_queries.empty() || kernel_.module.find_function(clearing_function()) != nullptr)
    return {};
  return {fmt::format(".extern .func (.param .b32 result) {}\n()\n;\n", clearing_function())};
}

Around FeedingSite::first_call(const std::string& body_prefix) const {
  InlineCall call;
  call.prefix = prefix_ + "r_";
  call.arguments = {queue_};
  for (const std::string& extent : site_.grid) call.arguments.push_back(with_prefix(extent, body_prefix));
  call.results = {{0, name("arguments")}};
  Around out;
  out.before =
      "{\n\t" + inline_function(record_, template_function(record_, kReserveFunction), call, lines_) +
      fmt::format("\n\tsetp.eq.u64 {0}, {1}, 0;\n\t@{0} bra {2};\n\tmov.b64 {3}, {1};\n\tbra {4};\n{5}",
                  name("own"), name("arguments"), label("ask"), with_prefix(site_.buffer, body_prefix),
                  label("asked"), landing("ask"));
  out.after = landing("asked") + "\t}\n";
  return out;
}

Around FeedingSite::launch_call(const std::string& body_prefix, const char* publish) const {
  InlineCall call;
  call.prefix = prefix_ + "p_";
  call.arguments = {queue_, name("arguments")};
  Around out;
  out.before = fmt::format("{{\n\t@{} bra {};\n\t", name("own"), label("launch")) +
               inline_function(record_, template_function(record_, publish), call, lines_) + "\n";
  if (!site_.result.empty())
    out.before += fmt::format("\tmov.b32 {}, 0;\n", with_prefix(site_.result, body_prefix));
  out.before += fmt::format("\tbra {};\n{}", label("launched"), landing("launch"));
  out.after = landing("launched") + "\t}\n";
  return out;
}

Around FeedingSite::query(const ErrorQuery& query, size_t number, const std::string& body_prefix) const {
  const std::string asked = fmt::format("query{}", number), none = fmt::format("none{}", number);
  Around out;
  out.before = fmt::format("{{\n\t@!{} bra {};\n", name("own"), label(none));
  out.after = fmt::format("\tbra {};\n{}", label(asked), landing(none));
  if (!query.result.empty())
    out.after += fmt::format("\tmov.b32 {}, 0;\n", with_prefix(query.result, body_prefix));
  out.after += landing(asked) + "\t}\n";
  return out;
}

Surroundings FeedingSite::in_parent() const {
  Surroundings out = {{site_.get_scope, first_call("")},
                      {site_.launch_scope, launch_call("", kPublishFunction)}};
  out.merge(without_own_streams(kernel_, ""));
  return out;
}

Surroundings FeedingSite::in_consumer(const std::string& body_prefix) const {
  Surroundings out = {{site_.get_scope, first_call(body_prefix)},
                      {site_.launch_scope, launch_call(body_prefix, kPublishNowFunction)}};
  out.merge(without_own_streams(kernel_, body_prefix));
  size_t number = 0;
  for (const ErrorQuery& q : kernel_.error_queries) out[q.scope] = query(q, number++, body_prefix);
  if (number != 0) {
    out[site_.get_scope].before += fmt::format(
        "\t{{\n\t.param .b32 {0}result;\n\tcall ({0}result), {1}, ();\n\t}}\n", prefix_, clearing_function());
  }
  return out;
}

}  // namespace klap::transform
