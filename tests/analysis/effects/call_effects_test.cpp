// The effects of instructions, bodies and call closures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/effects/effects.h"
#include "kernel.h"

namespace klap::test {
namespace {

using namespace analysis;
using testing::HasSubstr;
using testing::Not;

// "kind: what" for each effect of a body.
std::vector<std::string> effects_of(const std::string& body) {
  const Kernel k = kernel(body);
  const Effects effects = own_effects(k.module, k.facts->function);
  std::vector<std::string> out;
  for (const Effect& effect : effects.all())
    out.push_back(std::string(to_string(effect.kind)) + ": " + effect.what);
  return out;
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Effects, OfInstructions) {
  const std::pair<std::string, std::vector<std::string>> cases[] = {
      {"add.s32 %r1, %r2, 1;", {}},
      {"bar.sync 0;", {"block barrier: bar.sync 0"}},
      {"bar.sync 1, 64;", {"barrier with a count: bar.sync 1, 64"}},
      {"bar.arrive 1, 64;", {"barrier with a count: bar.arrive 1, 64"}},
      {"bar.red.popc.u32 %r1, 0, %p1;", {"block barrier: bar.red.popc.u32 %r1, 0, %p1"}},
      {"bar.red.popc.u32 %r1, 0, 64, %p1;", {"barrier with a count: bar.red.popc.u32 %r1, 0, 64, %p1"}},
      {"bar.warp.sync -1;", {"warp operation: bar.warp.sync"}},
      {"barrier.cluster.arrive.aligned;", {"cluster barrier: barrier.cluster.arrive.aligned"}},
      {"shfl.sync.down.b32 %r1, %r2, 1, 31, -1;", {"warp operation: shfl.sync.down.b32"}},
      {"activemask.b32 %r1;", {"warp operation: activemask.b32"}},
      {"atom.global.add.u32 %r1, [%rd1], 1;", {"atomic: add.u32 global gpu"}},
      {"atom.relaxed.sys.exch.b32 %r1, [%rd1], 1;", {"atomic: relaxed.exch.b32 generic sys"}},
      {"red.global.cta.max.s32 [%rd1], 1;",
       {"reduction: max.s32 global cta", "block scope: red.global.cta.max.s32"}},
      {"membar.cta;", {"fence: membar.cta", "block scope: membar.cta"}},
      {"ld.relaxed.cta.global.u32 %r1, [%rd1];",
       {"block scope: ld.relaxed.cta.global.u32", "strong load: ld.relaxed.cta.global.u32"}},
      {"atom.shared.cas.b32 %r1, [%r2], 0, 1;",
       {"atomic: cas.b32 shared gpu", "shared memory access: atom.shared.cas.b32"}},
      {"ld.volatile.global.u32 %r1, [%rd1];", {"strong load: ld.volatile.global.u32"}},
      {"st.release.gpu.u32 [%rd1], 1;", {"strong store: st.release.gpu.u32"}},
      {"membar.gl;", {"fence: membar.gl"}},
      {"nanosleep.u32 100;", {"sleep: nanosleep.u32"}},
      {"trap;", {"trap: trap"}},
      {"exit;", {"exit: exit"}},
      {"tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}];",
       {"texture or surface: tex.2d.v4.f32.f32"}},
      {"cp.async.ca.shared.global [%r1], [%rd1], 16;",
       {"asynchronous copy: cp.async.ca.shared.global", "shared memory access: cp.async.ca.shared.global"}},
      {"mbarrier.init.shared::cta.b64 [%rd1], 32;",
       {"mbarrier: mbarrier.init.shared::cta.b64", "shared memory access: mbarrier.init.shared::cta.b64"}},
      {"mapa.shared::cluster.u32 %r1, %r2, 1;",
       {"cluster access: mapa.shared::cluster.u32", "shared memory access: mapa.shared::cluster.u32"}},
      {"griddepcontrol.wait;", {"grid dependency: griddepcontrol.wait"}},
      {"alloca.u64 %rd1, 16;", {"stack allocation: alloca.u64"}},
      {"mov.u32 %r1, %tid.x;", {"position register: %tid"}},
      {"mov.u32 %r1, %lanemask_lt;", {"lane register: %lanemask_lt"}},
      {"mov.u64 %rd1, %clock64;", {"clock register: %clock64"}},
      {"mov.u32 %r1, %smid;", {"processor register: %smid"}},
      {"mov.u32 %r1, %warpid;", {"special register: %warpid"}},
      {".shared .align 4 .u32 cell; st.shared.u32 [cell], 1;",
       {"static shared memory: cell", "shared memory access: st.shared.u32"}},
      {".local .align 8 .b8 depot[8];", {"local memory: depot"}},
  };
  for (const auto& [body, expected] : cases) EXPECT_EQ(expected, effects_of(body + " ret;")) << body;
}

// Whatever is on no list must not look harmless.
TEST(Effects, NameInstructionsThatAreOnNoList) {
  EXPECT_THAT(effects_of("frobnicate.u32 %r1, %r2; ret;"),
              ElementsAre("unlisted instruction: frobnicate.u32"));
  EXPECT_THAT(effects_of("multimem.red.global.add.u32 [%rd1], 1; ret;"),
              ElementsAre("unlisted instruction: multimem.red.global.add.u32"));
}

TEST(Effects, OfDynamicSharedMemory) {
  const std::string text =
      ".version 9.0\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 dyn[];\n"
      ".shared .align 4 .u32 fixed;\n.global .u32 plain;\n"
      ".entry k() { .reg .b32 %r<3>; .reg .b64 %rd<2>; mov.u32 %r1, dyn; mov.u32 %r2, fixed;\n"
      "mov.u64 %rd1, plain; ret; }";
  const Kernel k(text, "k");
  const Effects effects = own_effects(k.module, k.facts->function);
  ASSERT_EQ(2u, effects.all().size());
  EXPECT_EQ("dyn", effects.find(EffectKind::DynamicShared)->what);
  EXPECT_EQ("fixed", effects.find(EffectKind::StaticShared)->what);
}

const char* const kCalls = R"(.version 9.0
.target sm_90
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func (.param .b64 r) malloc(.param .b64 a);
.extern .func elsewhere();
.extern .func (.param .b32 r) cudaMalloc(.param .b64 a, .param .b64 b);
.extern .func (.param .b32 r) __cudaCDP2StreamDestroy(.param .b64 a);
.func leaf() { bar.sync 0; ret; }
.func printing() { .param .b32 r; .param .b64 a; .param .b64 b; call (r), vprintf, (a, b); ret; }
.func allocating() { .param .b32 r; .param .b64 a; .param .b64 b; call (r), malloc, (a);
                     call (r), cudaMalloc, (a, b); call (r), __cudaCDP2StreamDestroy, (a); ret; }
.func ping() { call pong; ret; }
.func pong() { call ping; call leaf; ret; }
.func pointer() { .reg .b64 %f<2>; t: .callprototype _ (); call %f1, t; ret; }
.entry clean() { .reg .b32 %r<2>; add.s32 %r1, %r1, 1; ret; }
.entry k() { call printing; call allocating; ret; }
.entry deep() { call ping; ret; }
.entry blind() { call elsewhere; call pointer; ret; }
)";

TEST(CallGraph, JoinsTheEffectsOfCallees) {
  const ptx::Module m = ptx::parse(kCalls, "t");
  const CallGraph graph(m);
  const auto closure = [&](const char* name) { return graph.closure(*m.find_function(name)); };
  EXPECT_THAT(closure("clean").all(), IsEmpty());
  const Effects k = closure("k");
  EXPECT_EQ("vprintf", k.find(EffectKind::Printing)->what);
  EXPECT_EQ("printing", k.find(EffectKind::Printing)->function->name);
  EXPECT_EQ("malloc", k.find(EffectKind::Allocation)->what);
  EXPECT_EQ("cudaMalloc", k.find(EffectKind::DeviceRuntime)->what);
  EXPECT_FALSE(k.has(EffectKind::UnknownCall));
  EXPECT_FALSE(k.has(EffectKind::BlockBarrier));
  EXPECT_TRUE(closure("deep").has(EffectKind::BlockBarrier));
  EXPECT_TRUE(closure("pong").has(EffectKind::BlockBarrier));
  EXPECT_THAT(graph.own(*m.find_function("ping")).all(), IsEmpty());
}

TEST(CallGraph, FindsRecursion) {
  const ptx::Module m = ptx::parse(kCalls, "t");
  const CallGraph graph(m);
  EXPECT_TRUE(graph.is_recursive(*m.find_function("ping")));
  EXPECT_TRUE(graph.is_recursive(*m.find_function("pong")));
  EXPECT_FALSE(graph.is_recursive(*m.find_function("deep"))) << "calls a cycle but is not on it";
  EXPECT_FALSE(graph.is_recursive(*m.find_function("leaf")));
}

TEST(CallGraph, SaysWhatItCannotSee) {
  const ptx::Module m = ptx::parse(kCalls, "t");
  const CallGraph graph(m, *m.find_function("blind"));
  const Effects& effects = graph.closure(*m.find_function("blind"));
  EXPECT_EQ("elsewhere", effects.find(EffectKind::UnknownCall)->what);
  EXPECT_EQ("%f1", effects.find(EffectKind::IndirectCall)->what);
  EXPECT_FALSE(graph.contains(*m.find_function("k")));
  EXPECT_THROW(static_cast<void>(graph.own(*m.find_function("k"))), Error);
}

TEST(CallGraph, PrintsPlaces) {
  const ptx::Module m = ptx::parse(kCalls, "t");
  const std::string text = print_effects(CallGraph(m));
  EXPECT_THAT(text, HasSubstr("kernel clean\nkernel k\n  calls printing\n  calls allocating\n"));
  EXPECT_THAT(
      text,
      HasSubstr("function ping (recursive)\n  calls pong\n  block barrier: bar.sync 0 (line 9 of leaf)"));
}

}  // namespace
}  // namespace klap::test
