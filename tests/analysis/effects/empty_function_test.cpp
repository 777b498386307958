// Every analysis takes functions without instructions, without a way out, and with code that nothing leads
// to. Compilers write them for code that is never to run, as behind __builtin_unreachable().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/effects/called_waiting.h"
#include "analysis/effects/divergence.h"
#include "analysis/effects/waiting.h"
#include "analysis/graph/dominance.h"
#include "analysis/graph/shared_flow.h"
#include "analysis/inline/copy_loops.h"
#include "analysis/inline/parameter_reads.h"
#include "analysis/legality/allocation.h"
#include "analysis/legality/cooperation.h"
#include "analysis/legality/slicing.h"
#include "analysis/legality/sync_scope.h"
#include "analysis/optimise/early_start.h"
#include "analysis/optimise/straight_loops.h"
#include "analysis/optimise/stride_loop.h"
#include "analysis/synchronisation/exits.h"
#include "analysis/synchronisation/single_thread.h"
#include "analysis/values/guard.h"
#include "analysis/values/invariant_trip_count.h"
#include "analysis/values/values.h"
#include "analysis/views.h"
#include "kernel.h"

namespace klap::test {
namespace {

using namespace analysis;

struct Form {
  const char* name;
  std::string body;
};

std::vector<Form> forms() {
  return {
      {"nothing", ""},
      {"declarations", ".reg .pred %p<3>; .reg .b32 %r<3>; .local .align 4 .b8 depot[8];"},
      {"one label", "L:"},
      {"a label in a block", "{ L: }"},
      {"an empty block", "{ }"},
      {"a line only", ".loc 1 1 1"},
      {"no way out", ".reg .b32 %r<3>; mov.u32 %r1, %tid.x;"},
      {"a call at the end", "call never_back;"},
      {"a trap", "trap;"},
      {"an unreachable loop",
       ".reg .pred %p<3>; .reg .b32 %r<3>; ret; L: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 9; @%p1 bra L; "
       "ret;"},
      {"an endless loop", "L: bra L;"},
      {"a branch to the end", ".reg .pred %p<3>; @%p1 bra L; ret; L:"},
      {"a branch over nothing", "bra L; L:"},
      {"an unreachable barrier", "bra.uni L; bar.sync 0; L: ret;"},
  };
}

std::string text_of(const std::string& body, const std::string& kind) {
  return ".version 9.0\n.target sm_90\n.address_size 64\n.file 1 \"a.cu\"\n"
         ".extern .func never_back .noreturn;\n" +
         kind + " {\n" + body + "\n}\n";
}

void run_on_values(const FunctionFacts& facts) {
  const Values& v = facts.values();
  for (const auto& in : {moldable, moldable_in_one_row})
    static_cast<void>(find_stride_loop(v, in(facts.flow, v.registers, v.reaching, v.symbolic)));
  const Dominance dominance(facts.flow);
  for (uint32_t b = 0; b < facts.flow.blocks().size(); ++b) static_cast<void>(dominance.deciding_branches(b));
}

void run_all(const ptx::Module& m, const ptx::Function& f) {
  for (const View& view : views()) {
    SCOPED_TRACE(view.name);
    EXPECT_NO_THROW(static_cast<void>(view.text(m, f)));
  }
  const FunctionFacts facts(m, f);
  const CallGraph& graph = facts.calls();
  EXPECT_TRUE(facts.sites.empty());
  EXPECT_EQ(std::nullopt, waiting_by_calls(graph, f));
  EXPECT_EQ(std::nullopt, Waiting(m, facts.flow, facts.data).find());
  EXPECT_EQ(std::nullopt, check_exits(facts));
  EXPECT_EQ(std::nullopt, check_frees(facts));
  static_cast<void>(find_exits(facts, true));
  static_cast<void>(check_slices(facts));
  static_cast<void>(find_copy_loops(m, f));
  static_cast<void>(find_straight_loops(m, f));
  static_cast<void>(parameter_reads(m, f));
  static_cast<void>(sync_scope(m, f));
  static_cast<void>(reuse_scope(m, f));
  static_cast<void>(early_exits(m, f, {32, 1, 1}));
  static_cast<void>(shared_room(m, f));
  static_cast<void>(tells_threads_apart(facts));
  static_cast<void>(BlockDivergence(m, f, facts.flow, facts.data));
  EXPECT_EQ(std::nullopt, way_on_from_entry(facts.flow));
  static_cast<void>(may_start_early(m, f));
  static_cast<void>(may_be_overtaken(m, f));
  static_cast<void>(SharedFlow(m, facts.flow));
  static_cast<void>(InvariantTripCount(m, facts.flow, facts.data));
  run_on_values(facts);
}

TEST(EmptyFunctions, AreTakenByEveryAnalysis) {
  for (const Form& form : forms()) {
    for (const std::string kind : {".visible .entry k(.param .u64 p, .param .u32 n)", ".visible .entry k()",
                                   ".func k(.param .b64 p)", ".func (.param .b32 result) k(.param .b64 p)"}) {
      SCOPED_TRACE(std::string(form.name) + ": " + kind);
      const ptx::Module m = ptx::parse(text_of(form.body, kind), "test");
      run_all(m, *m.find_function("k"));
    }
  }
}

}  // namespace
}  // namespace klap::test
