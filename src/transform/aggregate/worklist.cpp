#include "transform/aggregate/worklist.h"

#include <fmt/format.h>

#include <utility>

#include "support/error.h"
#include "transform/runtime_calls/last_error.h"
#include "transform/runtime_calls/private_streams.h"
#include "transform/text/parts.h"

namespace klap::transform {
namespace {

using analysis::ErrorQuery;
using ptx::Function;
using ptx::Module;

constexpr char kReserveFunction[] = "__klap_reserve";
constexpr char kPublishFunction[] = "__klap_publish";
constexpr char kPublishNowFunction[] = "__klap_publish_now";

}  // namespace

WorklistSites::WorklistSites(const analysis::FunctionFacts& kernel, std::vector<LaunchTarget> targets,
                             const Module& record, std::string prefix, std::string queue, LineTables& lines)
    : kernel_(kernel),
      targets_(std::move(targets)),
      record_(record),
      prefix_(std::move(prefix)),
      queue_(std::move(queue)),
      lines_(lines) {}

// The registers that tell whether the thread launches by itself at a site, and whether it has done so at any.
std::string WorklistSites::registers() const {
  std::string text = fmt::format("\t.reg .pred {0};\n\tmov.pred {0}, 0;\n", name("own"));
  for (size_t i = 0; i < kernel_.sites.size(); ++i) {
    text += fmt::format("\t.reg .pred {0};\n\t.reg .b64 {1};\n\tmov.pred {0}, 0;\n", name(of_site(i, "own")),
                        name(of_site(i, "arguments")));
  }
  return text;
}

std::string WorklistSites::of_site(size_t site, std::string_view what) const {
  return fmt::format("{}_{}", what, site);
}

std::string WorklistSites::label(std::string_view what) const { return fmt::format("${}{}", prefix_, what); }

// A label with the statement that must stand behind it.
std::string WorklistSites::landing(std::string_view what) const {
  return fmt::format("{0}:\n\t.reg .pred %{1}at_{2};\n\tmov.pred %{1}at_{2}, 0;\n", label(what), prefix_,
                     what);
}

std::vector<std::string> WorklistSites::declarations() const { return last_error_declarations(kernel_); }

// Clears the last error before the first launch of this thread. An error that an earlier launch of this
// thread left behind stays.
std::string WorklistSites::clear_before_first(size_t site) const {
  const std::string cleared = of_site(site, "cleared");
  return fmt::format("\t@{} bra {};\n{}", name("own"), label(cleared),
                     clear_last_error_text(kernel_, prefix_)) +
         landing(cleared);
}

Around WorklistSites::first_call(size_t number, const std::string& body_prefix,
                                 const std::string& before_asking) const {
  const analysis::Site& site = kernel_.sites[number];
  const std::string own = name(of_site(number, "own")), arguments = name(of_site(number, "arguments"));
  const std::string ask = of_site(number, "ask"), asked = of_site(number, "asked");
  InlineCall call;
  call.prefix = prefix_ + "r_";
  call.arguments = {queue_};
  for (const std::string& extent : site.grid) call.arguments.push_back(with_prefix(extent, body_prefix));
  call.results = {{0, arguments}};
  Around out;
  out.before =
      "{\n\t" + inline_function(record_, template_function(record_, kReserveFunction), call, lines_) +
      fmt::format("\n\tsetp.eq.u64 {0}, {1}, 0;\n\t@{0} bra {2};\n\tmov.b64 {3}, {1};\n\tbra {4};\n{5}", own,
                  arguments, label(ask), with_prefix(site.buffer, body_prefix), label(asked), landing(ask)) +
      before_asking + fmt::format("\tmov.pred {}, 1;\n", name("own"));
  out.after = landing(asked) + "\t}\n";
  return out;
}

Around WorklistSites::launch_call(size_t number, const std::string& body_prefix, const char* publish) const {
  const analysis::Site& site = kernel_.sites[number];
  const std::string launch = of_site(number, "launch"), launched = of_site(number, "launched");
  InlineCall call;
  call.prefix = prefix_ + "p_";
  call.arguments = {queue_, name(of_site(number, "arguments")), std::to_string(targets_.at(number).kernel)};
  Around out;
  out.before = fmt::format("{{\n\t@{} bra {};\n\t", name(of_site(number, "own")), label(launch)) +
               inline_function(record_, template_function(record_, publish), call, lines_) + "\n";
  if (!site.result.empty())
    out.before += fmt::format("\tmov.b32 {}, 0;\n", with_prefix(site.result, body_prefix));
  out.before += fmt::format("\tbra {};\n{}", label(launched), landing(launch));
  out.after = landing(launched) + "\t}\n";
  return out;
}

Around WorklistSites::query(const ErrorQuery& query, size_t number, const std::string& body_prefix) const {
  const std::string asked = fmt::format("query{}", number), none = fmt::format("none{}", number);
  Around out;
  out.before = fmt::format("{{\n\t@!{} bra {};\n", name("own"), label(none));
  out.after = fmt::format("\tbra {};\n{}", label(asked), landing(none));
  if (!query.result.empty())
    out.after += fmt::format("\tmov.b32 {}, 0;\n", with_prefix(query.result, body_prefix));
  out.after += landing(asked) + "\t}\n";
  return out;
}

Surroundings WorklistSites::in_parent() const {
  Surroundings out = without_private_streams(kernel_, "");
  for (size_t i = 0; i < kernel_.sites.size(); ++i) {
    out[kernel_.sites[i].get_scope] = first_call(i, "", "");
    out[kernel_.sites[i].launch_scope] = launch_call(i, "", kPublishFunction);
  }
  return out;
}

Surroundings WorklistSites::in_consumer(const std::string& body_prefix) const {
  Surroundings out = without_private_streams(kernel_, body_prefix);
  const bool asks = !kernel_.error_queries.empty();
  for (size_t i = 0; i < kernel_.sites.size(); ++i) {
    out[kernel_.sites[i].get_scope] = first_call(i, body_prefix, asks ? clear_before_first(i) : "");
    out[kernel_.sites[i].launch_scope] = launch_call(i, body_prefix, kPublishNowFunction);
  }
  size_t number = 0;
  for (const ErrorQuery& q : kernel_.error_queries) out[q.scope] = query(q, number++, body_prefix);
  return out;
}

}  // namespace klap::transform
