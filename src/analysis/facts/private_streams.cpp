#include "analysis/facts/private_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "analysis/facts/stream_ownership.h"
#include "analysis/launches/wrappers.h"

namespace klap::analysis {
namespace {

using ptx::Statement;

constexpr uint64_t kNonBlocking = 1;  // cudaStreamNonBlocking: any other flag is refused on the device

bool is_created(const StreamValue& value) {
  return value.kind == StreamClass::Created || value.kind == StreamClass::Array;
}

class Finder {
 public:
  Finder(const FlowFacts& kernel, std::vector<Site>& sites) : k_(kernel), sites_(sites) {}

  PrivateStreams run() {
    for (const FlatInstruction& f : k_.flow.instructions()) {
      const auto call = parse_call(k_.module, *f.statement, k_.data.names());
      if (call && call->direct) look_at(f, *call);
    }
    if (out_.calls.empty() && out_.problem.empty()) return {};
    if (is_known_) out_.all = out_.calls;
    if (out_.problem.empty()) out_.problem = ownership();
    if (!out_.problem.empty()) {
      out_.calls.clear();
      return std::move(out_);
    }
    for (Site& site : sites_) {
      for (StreamValue& value : site.streams) {
        if (is_created(value) || is_own_after_all(site, value)) value.kind = StreamClass::Private;
      }
    }
    return std::move(out_);
  }

 private:
  void look_at(const FlatInstruction& f, const Call& call) {
    const std::string_view function = runtime_function(k_.module, call.callee);
    const bool creates = idioms().is_kind(function, "stream-create");
    if ((!creates && !idioms().is_kind(function, "stream-destroy")) || !is_known_) return;
    StreamCall found{f.statement, f.scope, creates, {}, {}};
    const std::string wrong = take_apart(found, call);
    if (!wrong.empty()) {
      is_known_ = false;
      out_.problem = fmt::format("{} ({})", wrong, k_.module.place(f.statement->head));
    } else {
      out_.calls.push_back(std::move(found));
    }
  }

  std::string take_apart(StreamCall& out, const Call& call) const {
    if (out.scope == &k_.function.body || out.call->predicated || call.parameters.empty())
      return "a call for a stream has an unknown form";
    const CallScope scope = read_call_scope(k_.module, *out.scope, *out.call);
    const std::string* operand = scope.actual(call.parameters[0], 0);
    if (!scope.problem.empty() || operand == nullptr || !k_.data.names().is_register(*operand))
      return "a call for a stream has an unknown form";
    out.operand = *operand;
    out.result = scope.result;
    if (!out.creates) return {};
    const std::string* flags = call.parameters.size() == 2 ? scope.actual(call.parameters[1], 0) : nullptr;
    const bool non_blocking = flags != nullptr && k_.data.constant(*flags) == kNonBlocking;
    return non_blocking ? "" : "the stream is not created as a non-blocking one";
  }

  // True for a handle read from memory where only handles of the thread's own streams are shown to be stored.
  [[nodiscard]] bool is_own_after_all(const Site& site, const StreamValue& value) const {
    return value.kind == StreamClass::Loaded && owns_stream(k_, site.stream).answer == Answer::Yes;
  }

  // The reason why the threads may not keep all of the streams to themselves; empty if they do.
  std::string ownership() const {
    std::vector<std::string> addresses;
    for (const StreamCall& call : out_.calls) {
      if (call.creates) addresses.push_back(call.operand);
    }
    if (const Finding all = owns_all_streams(k_, addresses); all.answer != Answer::Yes)
      return "a stream is not private: " + all.detail;
    std::vector<std::string> handles;
    for (const StreamCall& call : out_.calls) {
      if (!call.creates) handles.push_back(call.operand);
    }
    for (const Site& site : sites_) {
      if (std::ranges::any_of(site.streams, is_created)) handles.push_back(site.stream);
    }
    for (const std::string& handle : handles) {
      if (const Finding one = owns_stream(k_, handle); one.answer != Answer::Yes)
        return "a stream may not be the thread's private one: " + one.detail;
    }
    return lifetimes();
  }

  // The first use of a stream that may come after the stream's end; empty if there is none.
  std::string lifetimes() const {
    std::vector<StreamUse> ends, launches;
    for (const StreamCall& call : out_.calls) {
      if (!call.creates) ends.push_back({call.operand, k_.flow.index_of(call.call)});
    }
    for (const Site& site : sites_) {
      const bool may_end = std::ranges::any_of(site.streams, [](const StreamValue& value) {
        return is_created(value) || value.kind == StreamClass::Loaded;
      });
      if (may_end && site.launch_call != nullptr)
        launches.push_back({site.stream, k_.flow.index_of(site.launch_call)});
    }
    const auto late = used_after_end(k_, ends, launches);
    if (!late) return {};
    return fmt::format("a stream may have been destroyed before ({})",
                       k_.module.place(k_.flow.instructions()[late->instruction].statement->head));
  }

  const FlowFacts& k_;
  std::vector<Site>& sites_;
  bool is_known_ = true;  // the forms of all calls
  PrivateStreams out_;
};

}  // namespace

PrivateStreams find_private_streams(const FlowFacts& kernel, std::vector<Site>& sites) {
  return Finder(kernel, sites).run();
}

}  // namespace klap::analysis
