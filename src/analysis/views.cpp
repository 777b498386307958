#include "analysis/views.h"

#include <algorithm>
#include <array>

#include "analysis/counts/launch_count.h"
#include "analysis/effects/loop_termination.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/memory_effects.h"
#include "analysis/facts/stream_ownership.h"
#include "analysis/promotion/promotion.h"
#include "analysis/ranges/block_sum.h"
#include "analysis/ranges/range_loop.h"
#include "analysis/synchronisation/barriers.h"
#include "analysis/synchronisation/early_exit.h"
#include "analysis/values/moldable.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

using ptx::Function;
using ptx::Module;

std::string cfg(const Module& m, const Function& f) { return print_flow_dot(ControlFlow(m, f)); }

std::string dominance(const Module& m, const Function& f) {
  const ControlFlow flow(m, f);
  return print_flow(flow) + print_dominance(flow, Dominance(flow));
}

std::string loops(const Module& m, const Function& f) {
  const ControlFlow flow(m, f);
  return print_loops(flow, Loops(flow));
}

std::string reaching(const Module& m, const Function& f) {
  const ControlFlow flow(m, f);
  const Values v(flow);
  return print_reaching(flow, v.registers, v.reaching);
}

std::string liveness(const Module& m, const Function& f) {
  const ControlFlow flow(m, f);
  const Values v(flow);
  return print_liveness(flow, v.registers, v.liveness);
}

std::string values(const Module& m, const Function& f) {
  const ControlFlow flow(m, f);
  const Values v(flow);
  return print_values(flow, v.registers, v.symbolic);
}

std::string uniformity(const Module& m, const Function& f) {
  const ControlFlow flow(m, f);
  const Values v(flow);
  return print_uniformity(flow, v.registers, v.uniformity);
}

std::string moldability(const Module& m, const Function& f) {
  const ControlFlow flow(m, f);
  const Values v(flow);
  return to_string(moldable(flow, v.registers, v.reaching, v.symbolic)) + "\n";
}

std::string range_sum(const Module& m, const Function& f) {
  const ControlFlow flow(m, f);
  const Values v(flow);
  return print_range_sum(v);
}

std::string termination(const Module& m, const Function& f) {
  const FunctionFacts facts(m, f);
  return print_loop_termination(m, facts.flow, facts.data);
}

std::string effects(const Module& m, const Function& f) { return print_effects(CallGraph(m, f)); }

template <auto kPrint>
std::string of_facts(const Module& m, const Function& f) {
  return kPrint(FunctionFacts(m, f));
}

constexpr std::array kViews = {
    View{"cfg", "its control flow graph, as Graphviz", cfg},
    View{"dominance", "its blocks, and which of them dominate which", dominance},
    View{"loops", "its loops", loops},
    View{"reaching", "where the value of each register read comes from", reaching},
    View{"liveness", "how many registers are live where", liveness},
    View{"values", "the value of each register written, in terms of parameters", values},
    View{"uniformity", "its PTX, annotated with how uniform each instruction is", uniformity},
    View{"effects", "what it and the functions that it calls do to the world", effects},
    View{"memory", "what it reads and writes, by address space", of_facts<print_memory_effects>},
    View{"barriers", "its barriers, and whether one may stand between two launches",
         of_facts<print_barriers>},
    View{"exits", "whether lanes may reach a barrier or warp operation after others exited",
         of_facts<print_early_exit>},
    View{"launches", "how often one thread launches at each site", of_facts<print_launch_counts>},
    View{"streams", "the streams that it creates, and whose they are", of_facts<print_stream_ownership>},
    View{"chain", "whether its launches of itself can become a resident chain, and how",
         of_facts<print_promotion>},
    View{"progress", "its loops, and whether each ends by itself or may wait for others", termination},
    View{"moldable", "whether it uses its indices only as one linear index", moldability},
    View{"ranges", "whether one block of it adds up a range of elements, and what blocks of each size add",
         range_sum},
};

}  // namespace

std::span<const View> views() { return kViews; }

const View* find_view(std::string_view name) {
  const auto* const found = std::ranges::find(kViews, name, &View::name);
  return found == kViews.end() ? nullptr : found;
}

}  // namespace klap::analysis
