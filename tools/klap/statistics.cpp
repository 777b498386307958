#include "klap/statistics.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/facts/rejection.h"
#include "support/demangle.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {

namespace {

using Document = nlohmann::json;

constexpr int kFormat = 1;

// A member of an object; null if there is none. So a version with fewer members is read, too.
const Document& member(const Document& object, const char* key) {
  static const Document none;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

uint64_t number(const Document& value) { return value.is_number_unsigned() ? value.get<uint64_t>() : 0; }
double real(const Document& value) { return value.is_number() ? value.get<double>() : 0; }
std::string text(const Document& value) { return value.is_string() ? value.get<std::string>() : ""; }

std::string first_line(const std::string& lines) { return lines.substr(0, lines.find('\n')); }

void add_optional(std::optional<uint64_t>& sum, const Document& value) {
  if (value.is_number_unsigned()) sum = sum.value_or(0) + value.get<uint64_t>();
}

SiteRecord site_record(const Document& site) {
  SiteRecord out;
  out.child = text(member(site, "child_demangled"));
  out.is_rewritten = text(member(site, "verdict")) == "rewritten";
  if (out.is_rewritten)
    out.how = fmt::format("{} by {}", text(member(site, "granularity")), text(member(site, "launcher")));
  out.reason = text(member(site, "reason"));
  out.detail = text(member(site, "detail"));
  return out;
}

class Adder {
 public:
  Adder(Statistics& sum, const Document& process) : sum_(sum), process_(process) {}

  void add() {
    ++sum_.processes;
    sum_.passed_through += number(member(process_, "modules_passed_through"));
    for (const Document& module : member(process_, "modules")) add_module(module);
    add_launches();
    add_times();
    add_sizes();
    add_optional(sum_.children, member(process_, "children_aggregated"));
    add_optional(sum_.native_children, member(process_, "children_launched_natively"));
    add_optional(sum_.chain_links, member(process_, "links_promoted"));
  }

 private:
  KernelRecord& kernel(const std::string& mangled) {
    KernelRecord& record = sum_.kernels[mangled];
    if (record.name.empty()) record.name = demangle(mangled);
    return record;
  }

  void add_module(const Document& module) {
    constexpr std::string_view kFailed = "failed: ";
    const uint64_t loads = number(member(module, "loads"));
    sum_.modules += loads;
    const std::string how = text(member(module, "how"));
    if (how.starts_with(kFailed)) sum_.failed[first_line(how.substr(kFailed.size()))] += loads;
    if (text(member(module, "cache")) != "hit" && how == "rewritten") sum_.compiled += loads;
    for (const auto& time : member(module, "compile_ms").items()) sum_.compile_ms += real(time.value());
    for (const Document& site : member(module, "sites")) {
      const std::string place = fmt::format("{}:{}:{}", text(member(site, "unit")),
                                            number(member(site, "line")), text(member(site, "child")));
      kernel(text(member(site, "parent"))).sites.insert_or_assign(place, site_record(site));
    }
  }

  void add_launches() {
    const Document& launches = member(process_, "launches");
    for (const auto& one : member(launches, "redirected").items())
      kernel(one.key()).rewritten += number(one.value());
    for (const auto& one : member(launches, "left").items())
      for (const auto& reason : one.value().items())
        kernel(one.key()).left[reason.key()] += number(reason.value());
    for (const auto& parent : member(process_, "parents").items())
      kernel(parent.key()).engine = text(member(parent.value(), "engine"));
  }

  void add_times() {
    const Document& times = member(process_, "gpu_ms");
    for (const auto& launches : member(times, "launches").items()) {
      KernelRecord& record = kernel(launches.key());
      record.timed += number(launches.value());
      record.parent_ms += real(member(member(times, "parents"), launches.key().c_str()));
      record.children_ms += real(member(member(times, "consumers"), launches.key().c_str()));
    }
  }

  void add_sizes() {
    for (const Document& sizes : member(process_, "child_sizes")) {
      std::optional<uint64_t>& children = kernel(text(member(sizes, "parent"))).children;
      for (const Document& bin : member(sizes, "sizes")) add_optional(children, member(bin, "children"));
    }
  }

  Statistics& sum_;
  const Document& process_;
};

}  // namespace

void Statistics::add(const Document& process) {
  const Document& format = member(process, "format");
  if (!format.is_number_integer()) throw Error(ErrorCode::Unsupported, "no statistics of klap_jit");
  if (format != kFormat)
    throw Error(ErrorCode::Unsupported, "statistics of another version of klap_jit")
        .fix("use the klap that belongs to the library");
  Adder(*this, process).add();
}

uint64_t Statistics::rewritten() const {
  uint64_t sum = 0;
  for (const auto& [mangled, kernel] : kernels) sum += kernel.rewritten;
  return sum;
}

size_t Statistics::kernels_rewritten() const {
  return static_cast<size_t>(
      std::ranges::count_if(kernels, [](const auto& one) { return one.second.rewritten != 0; }));
}

Counts Statistics::left_launches() const {
  Counts out;
  for (const auto& [mangled, kernel] : kernels)
    for (const auto& [reason, launches] : kernel.left) out[reason] += launches;
  return out;
}

Counts Statistics::left_sites() const {
  const std::string idle = to_string(analysis::Reason::NeverCalled);
  Counts out;
  for (const auto& [mangled, kernel] : kernels)
    for (const auto& [place, site] : kernel.sites)
      if (!site.is_rewritten && site.reason != idle) ++out[site.reason];
  return out;
}

std::vector<Document> read_statistics(const std::string& file) {
  const Document document = Document::parse(read_file(file), nullptr, false);
  std::vector<Document> processes;
  if (document.is_array()) {
    processes.assign(document.begin(), document.end());
  } else {
    processes.push_back(document);
  }
  try {
    for (const Document& process : processes) Statistics().add(process);
  } catch (Error& error) {
    error.at(file);
    throw;
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCode::Unsupported, "damaged statistics").at(file);
  }
  if (processes.empty()) throw Error(ErrorCode::Unsupported, "statistics of no process").at(file);
  return processes;
}

}  // namespace klap::tool
