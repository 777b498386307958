#include "analysis/views.h"

#include <algorithm>
#include <array>

#include "analysis/values.h"

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

constexpr std::array kViews = {
    View{"cfg", "its control flow graph, as Graphviz", cfg},
    View{"dominance", "its blocks, and which of them dominate which", dominance},
    View{"loops", "its loops", loops},
    View{"reaching", "where the value of each register read comes from", reaching},
    View{"liveness", "how many registers are live where", liveness},
    View{"values", "the value of each register written, in terms of parameters", values},
    View{"uniformity", "its PTX, annotated with how uniform each instruction is", uniformity},
};

}  // namespace

std::span<const View> views() { return kViews; }

const View* find_view(std::string_view name) {
  const auto* const found = std::ranges::find(kViews, name, &View::name);
  return found == kViews.end() ? nullptr : found;
}

}  // namespace klap::analysis
