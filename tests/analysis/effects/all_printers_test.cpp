// Every analysis on every golden file's PTX: no error, and answers that fit each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/counts/launch_count.h"
#include "analysis/effects/loop_termination.h"
#include "analysis/effects/waiting.h"
#include "analysis/facts/memory_effects.h"
#include "analysis/facts/stream_ownership.h"
#include "analysis/ranges/block_sum.h"
#include "analysis/synchronisation/barriers.h"
#include "analysis/synchronisation/early_exit.h"
#include "kernel.h"

namespace klap::test {
namespace {

using namespace analysis;

std::vector<std::string> golden_texts() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(KLAP_GOLDEN_DIR)) {
    if (entry.path().extension() != ".golden") continue;
    const std::string text = read_file(entry.path());
    out.push_back(text.substr(text.find("--- ptx\n") + 8));
  }
  return out;
}

TEST(Printers, TakeEveryGoldenFile) {
  size_t functions = 0;
  for (const std::string& text : golden_texts()) {
    const ptx::Module m = ptx::parse(text, "golden");
    const CallGraph graph(m);
    EXPECT_FALSE(print_effects(graph).empty());
    for (const ptx::Function* f : graph.functions()) {
      const FunctionFacts facts(m, *f);
      ++functions;
      const CallClosure closure = call_closure(m, *f);
      EXPECT_EQ(closure.indirect, graph.closure(*f).has(EffectKind::IndirectCall));
      EXPECT_EQ(CallGraph(m, *f).closure(*f).all().size(), graph.closure(*f).all().size());
      EXPECT_FALSE(print_early_exit(facts).empty());
      const bool has_place = std::any_of(facts.sites.begin(), facts.sites.end(),
                                         [](const Site& site) { return site.get_call != nullptr; });
      EXPECT_EQ(print_barriers(facts).empty(), !has_place);
      EXPECT_EQ(print_launch_counts(facts).empty(), facts.sites.empty());
      EXPECT_FALSE(print_range_sum(facts.values()).empty());
      static_cast<void>(print_memory_effects(facts));
      static_cast<void>(print_stream_ownership(facts));
      static_cast<void>(print_loop_termination(m, facts.flow, facts.data));
    }
  }
  EXPECT_GT(functions, 80u);
}

// A loop around a launch is what makes a count unbounded, and nothing else in these files.
TEST(Printers, AgreeAboutLoops) {
  for (const std::string& text : golden_texts()) {
    const ptx::Module m = ptx::parse(text, "golden");
    for (const ptx::Function& f : m.functions) {
      if (!f.is_definition) continue;
      const FunctionFacts facts(m, f);
      for (const StreamLaunches& entry : launches_by_stream(facts)) {
        bool in_loop = false;
        for (const Site* site : entry.sites) {
          if (site->get_call != nullptr)
            in_loop = in_loop || facts.flow.in_loop(facts.flow.index_of(site->get_call));
        }
        if (entry.count.unknown) continue;
        EXPECT_EQ(in_loop, entry.count.most > entry.sites.size()) << f.name;
      }
    }
  }
}

}  // namespace
}  // namespace klap::test
