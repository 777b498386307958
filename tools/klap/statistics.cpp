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
constexpr const char* kWriteThem = "klap run --report FILE ./app writes them";

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

// The library says it in a note, and of the executor, which keeps every order, in the detail.
SiteOrder order_of(const SiteRecord& site) {
  constexpr std::pair<std::string_view, SiteOrder> kBeginnings[] = {{"order proven", SiteOrder::Proven},
                                                                    {"order tolerated", SiteOrder::Tolerated},
                                                                    {"order kept", SiteOrder::Kept},
                                                                    {"order relaxed", SiteOrder::Relaxed}};
  for (const std::string& note : site.notes)
    for (const auto& [beginning, order] : kBeginnings)
      if (note.starts_with(beginning)) return order;
  return site.detail.find("executed in the order of its stream") != std::string::npos ? SiteOrder::Kept
                                                                                      : SiteOrder::Free;
}

// The place in the source, or in the PTX where that does not say it.
std::string place_of(const Document& site) {
  const Document& source = member(site, "source");
  if (source.is_object())
    return fmt::format("{}:{}", text(member(source, "file")), number(member(source, "line")));
  return fmt::format("{}, line {}", text(member(site, "unit")), number(member(site, "line")));
}

SiteRecord site_record(const Document& site) {
  SiteRecord out;
  for (const Document& note : member(site, "notes")) out.notes.push_back(text(note));
  out.place = place_of(site);
  out.child = text(member(site, "child_demangled"));
  out.is_rewritten = text(member(site, "verdict")) == "rewritten";
  if (out.is_rewritten)
    out.how = fmt::format("{} by {}", text(member(site, "granularity")), text(member(site, "launcher")));
  out.reason = text(member(site, "reason"));
  out.detail = text(member(site, "detail"));
  out.order = order_of(out);
  return out;
}

TimedLaunch timed_launch(const Document& launch) {
  return {.kernel = text(member(launch, "parent")),
          .context = number(member(launch, "context")),
          .begin_ms = real(member(launch, "begin_ms")),
          .parent_ms = real(member(launch, "parent_ms")),
          .children_ms = real(member(launch, "children_ms")),
          .is_slice = member(launch, "is_slice") == true};
}

std::optional<int> exit_code(const Document& run) {
  const Document& code = member(run, "exit_code");
  return code.is_number_integer() ? std::optional(code.get<int>()) : std::nullopt;
}

RunRecord run_record(const Document& run) {
  RunRecord out;
  for (const Document& word : member(run, "command")) out.command.push_back(text(word));
  out.seconds = real(member(run, "seconds"));
  out.is_native = member(run, "is_native") == true;
  out.exit_code = exit_code(run);
  const Document& native = member(run, "native");
  const Document& seconds = member(native, "seconds");
  if (seconds.is_number()) out.native_seconds = real(seconds);
  out.native_exit_code = exit_code(native);
  return out;
}

class Adder {
 public:
  Adder(Statistics& sum, const Document& process, const std::string& label) : sum_(sum), process_(process) {
    own_.label = label;
  }

  void add() {
    ++sum_.processes;
    sum_.passed_through += number(member(process_, "modules_passed_through"));
    for (const Document& module : member(process_, "modules")) add_module(module);
    add_launches();
    add_parents();
    add_times();
    add_sizes();
    add_counters();
    add_memory();
    add_run();
    add_process();
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
    for (const auto& time : member(module, "compile_ms").items()) {
      sum_.compile_ms += real(time.value());
      sum_.compile_steps_ms[time.key()] += real(time.value());
    }
    // The program's own code is not loaded in its place.
    sum_.load_ms += real(member(module, "load_ms")) - real(member(module, "driver_ms"));
    for (const Document& site : member(module, "sites")) {
      const std::string place = fmt::format("{}:{}:{}", text(member(site, "unit")),
                                            number(member(site, "line")), text(member(site, "child")));
      kernel(text(member(site, "parent"))).sites.insert_or_assign(place, site_record(site));
    }
  }

  void add_launches() {
    const Document& launches = member(process_, "launches");
    for (const auto& one : member(launches, "redirected").items()) {
      kernel(one.key()).rewritten += number(one.value());
      own_.rewritten += number(one.value());
    }
    for (const auto& one : member(launches, "left").items()) {
      for (const auto& reason : one.value().items()) {
        kernel(one.key()).left[reason.key()] += number(reason.value());
        own_.left += number(reason.value());
      }
    }
    for (const auto& one : member(launches, "fused").items()) kernel(one.key()).fused += number(one.value());
    sum_.knows_order = sum_.knows_order || member(launches, "ordered").is_object();
    for (const auto& one : member(launches, "ordered").items())
      kernel(one.key()).ordered += number(one.value());
    for (const auto& one : member(launches, "sliced").items()) {
      kernel(one.key()).sliced += number(member(one.value(), "launches"));
      kernel(one.key()).slices += number(member(one.value(), "slices"));
    }
  }

  void add_parents() {
    for (const auto& parent : member(process_, "parents").items()) {
      KernelRecord& record = kernel(parent.key());
      record.engine = text(member(parent.value(), "engine"));
      for (const Document& guard : member(parent.value(), "guard"))
        record.guard.push_back({.launches = number(member(guard, "launches")),
                                .children = number(member(guard, "children")),
                                .choice = text(member(guard, "choice")),
                                .variant_ms = real(member(guard, "variant_ms")),
                                .original_ms = real(member(guard, "original_ms"))});
    }
    for (const auto& forms : member(process_, "forms").items()) {
      kernel(forms.key()).flat += number(member(forms.value(), "flat"));
      kernel(forms.key()).in_blocks += number(member(forms.value(), "in_blocks"));
    }
  }

  void add_times() {
    const Document& times = member(process_, "gpu_ms");
    for (const auto& launches : member(times, "launches").items()) {
      KernelRecord& record = kernel(launches.key());
      const double parent_ms = real(member(member(times, "parents"), launches.key().c_str()));
      const double children_ms = real(member(member(times, "consumers"), launches.key().c_str()));
      record.timed += number(launches.value());
      record.parent_ms += parent_ms;
      record.children_ms += children_ms;
      own_.parent_ms += parent_ms;
      own_.children_ms += children_ms;
    }
    const Document& timeline = member(process_, "timeline");
    for (const Document& launch : member(timeline, "first")) own_.first.push_back(timed_launch(launch));
    for (const Document& launch : member(timeline, "slowest")) own_.slowest.push_back(timed_launch(launch));
  }

  void add_sizes() {
    sum_.has_sizes = sum_.has_sizes || member(process_, "child_sizes").is_array();
    for (const Document& sizes : member(process_, "child_sizes")) {
      KernelRecord& parent = kernel(text(member(sizes, "parent")));
      SizeHistogram& histogram =
          histogram_of(parent, demangle(text(member(sizes, "child"))), text(member(sizes, "counted")));
      for (const Document& bin : member(sizes, "sizes")) {
        const Document& up_to = member(bin, "up_to");
        add_optional(parent.children, member(bin, "children"));
        histogram.bins[up_to.is_number_unsigned() ? up_to.get<uint64_t>() : SizeHistogram::kLargest] +=
            number(member(bin, "children"));
      }
    }
  }

  static SizeHistogram& histogram_of(KernelRecord& parent, const std::string& child,
                                     const std::string& counted) {
    const auto found = std::ranges::find_if(
        parent.sizes, [&](const SizeHistogram& one) { return one.child == child && one.counted == counted; });
    if (found != parent.sizes.end()) return *found;
    return parent.sizes.emplace_back(SizeHistogram{child, counted, {}});
  }

  // The statistics have means over launches. A metric may be missing in some launches, but not in their
  // number, so the mean over several processes is as exact as that.
  void add_counters() {
    const Document& counters = member(process_, "counters");
    for (const auto& means : member(counters, "means").items()) {
      const uint64_t launches = number(member(member(counters, "launches"), means.key().c_str()));
      for (const auto& metric : means.value().items()) {
        CounterSum& sum = kernel(means.key()).counters[metric.key()];
        sum.sum += real(metric.value()) * static_cast<double>(launches);
        sum.launches += launches;
      }
    }
    for (const Document& problem : member(counters, "problems"))
      sum_.counter_problems.push_back(text(problem));
  }

  void add_memory() {
    for (const Document& device : member(process_, "devices")) sum_.devices.insert(text(device));
    const Document& queues = member(member(process_, "queues"), "most_bytes");
    if (queues.is_number_unsigned())
      sum_.queue_bytes = std::max(sum_.queue_bytes.value_or(0), number(queues));
    const Document& frames = member(process_, "frames");
    if (!frames.is_object()) return;
    if (!sum_.frames) sum_.frames.emplace();
    sum_.frames->taken += number(member(frames, "bytes_taken"));
    sum_.frames->returned += number(member(frames, "bytes_returned"));
    sum_.frames->refused += number(member(frames, "refused"));
  }

  // All processes of a run have the same, and ranks have their own at the same time.
  void add_run() {
    const Document& run = member(process_, "run");
    if (!run.is_object()) return;
    const RunRecord record = run_record(run);
    if (!sum_.run || sum_.run->seconds < record.seconds) sum_.run = record;
  }

  void add_process() {
    own_.id = number(member(process_, "process"));
    add_optional(own_.children, member(process_, "children_aggregated"));
    sum_.all_processes.push_back(std::move(own_));
  }

  Statistics& sum_;
  const Document& process_;
  ProcessRecord own_;
};

}  // namespace

void Statistics::add(const Document& process, const std::string& label) {
  const Document& format = member(process, "format");
  if (!format.is_number_integer())
    throw Error(ErrorCode::Unsupported, "no statistics of klap_jit").fix(kWriteThem);
  if (format != kFormat)
    throw Error(ErrorCode::Unsupported, "statistics of another version of klap_jit")
        .fix("use the klap that belongs to the library");
  Adder(*this, process, label).add();
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

uint64_t Statistics::timed() const {
  uint64_t sum = 0;
  for (const auto& [mangled, kernel] : kernels) sum += kernel.timed;
  return sum;
}

double Statistics::timed_ms() const {
  double sum = 0;
  for (const auto& [mangled, kernel] : kernels) sum += kernel.timed_ms();
  return sum;
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

namespace {

Document read_document(const std::string& file) {
  const std::string text = read_file(file);
  if (text.empty()) throw Error(ErrorCode::Unsupported, "the file is empty").at(file).fix(kWriteThem);
  try {
    return Document::parse(text);
  } catch (const Document::parse_error& error) {
    const std::string_view before = std::string_view(text).substr(0, error.byte > 0 ? error.byte - 1 : 0);
    const size_t line = before.rfind('\n') + 1;
    throw Error(ErrorCode::Unsupported, error.byte > text.size()
                                            ? "no statistics of klap_jit: the file ends too early"
                                            : "no statistics of klap_jit: this is no JSON")
        .at(file, 1 + static_cast<int>(std::ranges::count(before, '\n')),
            static_cast<int>(before.size() - line) + 1)
        .fix(kWriteThem);
  }
}

}  // namespace

std::vector<Document> read_statistics(const std::string& file) {
  const Document document = read_document(file);
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
    throw Error(ErrorCode::Unsupported, "damaged statistics").at(file).fix(kWriteThem);
  }
  if (processes.empty()) throw Error(ErrorCode::Unsupported, "statistics of no process").at(file);
  return processes;
}

uint64_t KernelRecord::launches_in_order() const {
  const bool is_always = std::ranges::any_of(sites, [](const auto& site) {
    return site.second.is_rewritten && site.second.order == SiteOrder::Kept;
  });
  return is_always ? rewritten : ordered;
}

}  // namespace klap::tool
