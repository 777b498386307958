// Legality as an allow-list: which launch sites may be aggregated over the whole grid and deferred to a
// consumer.
//
// A site is rewritten only when everything the parent and the child do is known to keep its meaning. What is
// not on the lists is left alone, with a reason by name; nothing is rewritten for want of a reason not to.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/effects.h"
#include "analysis/granularity.h"
#include "analysis/reasons.h"
#include "analysis/sites.h"

namespace klap::analysis {

struct Objection {
  Reason reason{};
  std::string detail;  // one sentence with the deciding facts
};

struct Values;

// The streams that a kernel creates and that stay its threads' own (own_streams.h).
struct OwnStreams {
  // All calls that create or destroy a stream, where every one of them can be done without; else none.
  std::vector<StreamCall> calls;
  // Why not, where the kernel has such calls.
  std::string problem;
};

// Everything the checks and the rewriter need to know about one kernel's body.
struct FunctionFacts {
  FunctionFacts(const ptx::Module& m, const ptx::Function& f)
      : module(m),
        function(f),
        flow(m, f),
        data(m, f, flow),
        sites(find_sites(m, f, flow, data)),
        error_queries(find_error_queries(m, f, flow, data)) {
    find_own_streams();
  }
  const ptx::Module& module;
  const ptx::Function& function;
  ControlFlow flow;
  DataFlow data;
  std::vector<Site> sites;
  std::vector<ErrorQuery> error_queries;
  OwnStreams own_streams;

  // The value analyses, made when they are first asked for.
  [[nodiscard]] const Values& values() const;
  // The function and what it calls; likewise.
  [[nodiscard]] const CallGraph& calls() const;

 private:
  void find_own_streams();

  mutable std::shared_ptr<const Values> values_;
  mutable std::shared_ptr<const CallGraph> calls_;
};

// The strictest order that a launch of the site may be promised: Null, then PerThread, then Own (a stream
// that the thread created and keeps to itself), then FireAndForget; Tail where it is always that one, behind
// all that the grid does otherwise; Other if the stream can be anything else.
enum class StreamKind { FireAndForget, Own, PerThread, Null, Tail, Other };
StreamKind stream_kind(const Site& site);

// The constant block of a site, x y z; nothing if a dimension is not constant.
std::optional<std::array<uint32_t, 3>> constant_block(const Site& site, const FunctionFacts& parent);

// The dynamic shared memory that the launch gives each block of the child; nothing if it is not constant.
std::optional<uint32_t> constant_shared_bytes(const Site& site, const FunctionFacts& parent);

// The most threads that a block of the kernel may have by its launch bounds; where it must have one size,
// where that is said.
uint64_t most_threads_allowed(const ptx::Module& module, const ptx::Function& kernel);
std::optional<std::string> required_block(const ptx::Module& module, const ptx::Function& kernel);

// The first objection to rewriting anything in a unit, the parent's or the child's. Debug builds are left
// unless someone asks for them: their users want to see the code that they wrote.
std::optional<Objection> object_to_unit(const ptx::Module& module, bool debug_allowed);

// Where a kernel may wait for other blocks, or for what it launches: one sentence with the place. Nothing
// where it does not.
std::optional<std::string> waits_for_others(const FunctionFacts& kernel);

// The first objection to aggregating `site` that way on the parent's side.
std::optional<Objection> object_to_parent(const FunctionFacts& parent, const Site& site, const Way& way = {});

// The first objection on the child's side. `child_module` defines `child`; `parent` and `site` are the
// launch.
std::optional<Objection> object_to_child(const ptx::Module& child_module, const ptx::Function& child,
                                         const FunctionFacts& parent, const Site& site, const Way& way = {});
// The same where more is known of the child's block than the launch says.
std::optional<Objection> object_to_child(const ptx::Module& child_module, const ptx::Function& child,
                                         const FunctionFacts& parent, const Site& site, const Way& way,
                                         const std::optional<std::array<uint32_t, 3>>& block);

// Kernel parameters may take 4,096 bytes, or 32,764 from PTX 8.1 on.
uint32_t parameter_limit(const ptx::Module& module);

// Where a register of `facts` comes from.
std::vector<Origin> origins_of(const FunctionFacts& facts, std::string_view operand);

}  // namespace klap::analysis
