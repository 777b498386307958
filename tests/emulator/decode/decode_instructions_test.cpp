// One instruction, one line of the listing: what is in the text must be in the decoded form.
#include "decode_fixture.h"

namespace klap::emulator {
namespace {

using testing::ElementsAre;

struct Case {
  const char* ptx;
  const char* expected;
};

void expect_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) EXPECT_THAT(listing(c.ptx), ElementsAre(c.expected)) << c.ptx;
}

TEST(Instructions, Arithmetic) {
  expect_all({
      {"add.s32 %r1, %r2, %r3;", "Alu add.s32 r0 = r1, r2"},
      {"@%p1 add.s32 %r1, %r1, -1;", "@r0 Alu add.s32 r1 = r1, 0xffffffff"},
      {"@!%p1 mad.lo.s32 %r1, %r2, 4, %r3;", "@!r0 Alu mad.lo.s32 r1 = r2, 0x4, r3"},
      {"setp.lt.s32 %p1, %r1, 5;", "Alu setp.lt.s32 r0 = r1, 0x5"},
      {"setp.lt.s32 %p1|%p2, %r1, 5;", "Alu setp.lt.s32 r0, r1 = r2, 0x5"},
      {"setp.lt.and.s32 %p1, %r1, 5, !%p2;", "Alu setp.lt.and.s32 r0 = r1, 0x5, r2 [negated 0x4]"},
      {"and.pred %p1, %p2, !%p3;", "Alu and.pred r0 = r1, r2 [negated 0x2]"},
      {"mov.u32 %r1, %tid.y;", "Alu mov.u32 r0 = %tid.y"},
      {"mov.u64 %rd1, %clock64;", "Alu mov.u64 r0 = %clock64"},
      {"mov.u32 %r1, %lanemask_lt;", "Alu mov.u32 r0 = %lanemask_lt"},
      {"mov.b64 %rd1, {%r1, %r2};", "Alu mov.b64 r0 = r1, r2"},
      {"mov.b64 {%r1, _}, %rd1;", "Alu mov.b64 r0, _ = r1"},
      {"mov.b32 {%h1, %h2}, %r1;", "Alu mov.b32 r0, r1 = r2"},
      {"mov.b128 %q1, {%rd1, %rd2};", "Alu mov.b128 r0 = r2, r3"},
      {"mov.u64 %rd1, sv+8;", "Alu mov.u64 r0 = shared(sv+8)"},
      {"mov.u64 %rd1, lv;", "Alu mov.u64 r0 = local(0)"},
      {"mov.u64 %rd1, lv+4;", "Alu mov.u64 r0 = local(4)"},
      {"mov.b64 %rd1, pb;", "Alu mov.b64 r0 = 0x8"},
      {"add.f32 %f1, %v1.y, %v1.w;", "Alu add.f32 r0 = r2, r4"},
      {"createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;",
       "Alu createpolicy.fractional.L2::evict_last.b64 r0 = 0x0"},
  });
  EXPECT_THAT(listing("mov.v4.f32 %v1, %v2;"),
              ElementsAre("Alu mov.v4.f32 r0 = r4", "Alu mov.v4.f32 r1 = r5", "Alu mov.v4.f32 r2 = r6",
                          "Alu mov.v4.f32 r3 = r7"));
}

TEST(Instructions, Loads) {
  expect_all({
      {"ld.u32 %r1, [%rd1];", "Load ld.u32 r0 = r1 [generic+0 weak 1xu32 to 32]"},
      {"ld.global.s8 %rd1, [%rd1+-4];", "Load ld.global.s8 r0 = r0 [global-4 weak 1xs8 to 64]"},
      {"ld.global.nc.L1::evict_last.L2::128B.v2.u32 {%r1, _}, [%rd1+16];",
       "Load ld.global.nc.L1::evict_last.L2::128B.v2.u32 r0, _ = r1 [global+16 nc 2xu32 to 32]"},
      {"ld.volatile.shared.u8 %h1, [sv+3];",
       "Load ld.volatile.shared.u8 r0 = shared(sv+0) [shared+3 volatile.sys 1xu8 to 16]"},
      {"ld.relaxed.gpu.v2.u32 {%r1, %r2}, [%rd1];",
       "Load ld.relaxed.gpu.v2.u32 r0, r1 = r2 [generic+0 relaxed.gpu 2xu32 to 32]"},
      {"ld.acquire.cta.global.b64 %rd1, [%rd2];",
       "Load ld.acquire.cta.global.b64 r0 = r1 [global+0 acquire.cta 1xb64 to 64]"},
      {"ld.mmio.relaxed.sys.global.b32 %r1, [%rd2];",
       "Load ld.mmio.relaxed.sys.global.b32 r0 = r1 [global+0 relaxed.sys 1xb32 to 32]"},
      {"ld.weak.global.ca.f64 %fd1, [%rd2].unified;",
       "Load ld.weak.global.ca.f64 r0 = r1 [global+0 weak 1xf64 to 64]"},
      {"ld.global.L2::cache_hint.f32 %f1, [%rd2], %rd3;",
       "Load ld.global.L2::cache_hint.f32 r0 = r1 [global+0 weak 1xf32 to 32]"},
      {"ld.global.b128 %q1, [%rd2];", "Load ld.global.b128 r0 = r2 [global+0 weak 1xb128 to 128]"},
      {"ld.global.v4.f32 %v1, [%rd2];",
       "Load ld.global.v4.f32 r0, r1, r2, r3 = r4 [global+0 weak 4xf32 to 32]"},
      {"ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd2];",
       "Load ld.global.v8.b32 r0, r1, r2, r3, r4, r5, r6, r7 = r8 [global+0 weak 8xb32 to 32]"},
      {"ldu.global.u32 %r1, [%rd2];", "Load ldu.global.u32 r0 = r1 [global+0 nc 1xu32 to 32]"},
      {"ld.param.u64 %rd1, [pa];", "Load ld.param.u64 r0 = 0x0 [param+0 weak 1xu64 to 64]"},
      {"ld.param.u8 %h1, [pb+2];", "Load ld.param.u8 r0 = 0x8 [param+2 weak 1xu8 to 16]"},
      {"ld.param.u32 %r1, [%rd1+4];", "Load ld.param.u32 r0 = r1 [param+4 weak 1xu32 to 32]"},
      {"ld.param::entry.u32 %r1, [pb];", "Load ld.param::entry.u32 r0 = 0x8 [param+0 weak 1xu32 to 32]"},
      {"ld.local.u32 %r1, [lv+8];", "Load ld.local.u32 r0 = local(0) [local+8 weak 1xu32 to 32]"},
      {"ld.u32 %r1, [sv+8];", "Load ld.u32 r0 = shared(sv+0) [shared+8 weak 1xu32 to 32]"},
      {"ld.shared::cluster.u32 %r1, [%r2];",
       "Load ld.shared::cluster.u32 r0 = r1 [shared+0 weak 1xu32 to 32]"},
      {"ld.const.u32 %r1, [64];", "Load ld.const.u32 r0 = 0x40 [const+0 weak 1xu32 to 32]"},
  });
}

TEST(Instructions, Stores) {
  expect_all({
      {"st.global.u32 [%rd1+4], %r1;", "Store st.global.u32 r0, r1 [global+4 weak 1xu32]"},
      {"st.shared.v2.f32 [sv], {%f1, 0f3f800000};",
       "Store st.shared.v2.f32 shared(sv+0), r0, 0x3f800000 [shared+0 weak 2xf32]"},
      {"st.release.gpu.b64 [%rd1], %rd2;", "Store st.release.gpu.b64 r0, r1 [generic+0 release.gpu 1xb64]"},
      {"st.volatile.global.u8 [%rd1], 258;",
       "Store st.volatile.global.u8 r0, 0x2 [global+0 volatile.sys 1xu8]"},
      {"st.global.wt.v4.f32 [%rd1], %v1;",
       "Store st.global.wt.v4.f32 r0, r1, r2, r3, r4 [global+0 weak 4xf32]"},
      {"@%p1 st.local.b128 [lv], %q1;", "@r0 Store st.local.b128 local(0), r1 [local+0 weak 1xb128]"},
      {"st.relaxed.cluster.shared::cluster.s16 [%r1], %h1;",
       "Store st.relaxed.cluster.shared::cluster.s16 r0, r1 [shared+0 relaxed.cluster 1xs16]"},
  });
}

TEST(Instructions, Atomics) {
  expect_all({
      {"atom.global.add.u32 %r1, [%rd1], 1;",
       "Atomic atom.global.add.u32 r0 = r1, 0x1 [global+0 relaxed.gpu add 1xu32]"},
      {"atom.acq_rel.sys.global.cas.b64 %rd1, [%rd2+8], %rd3, 5;",
       "Atomic atom.acq_rel.sys.global.cas.b64 r0 = r1, r2, 0x5 [global+8 acq_rel.sys cas 1xb64]"},
      {"atom.shared.min.s32 _, [sv], %r1;",
       "Atomic atom.shared.min.s32 _ = shared(sv+0), r0 [shared+0 relaxed.gpu min 1xs32]"},
      {"atom.add.noftz.f16x2 %r1, [%rd1], %r2;",
       "Atomic atom.add.noftz.f16x2 r0 = r1, r2 [generic+0 relaxed.gpu add 1xhalf pair32]"},
      {"atom.global.v4.f32.add %v1, [%rd1], {%f1, %f2, %f3, %f4};",
       "Atomic atom.global.v4.f32.add r0, r1, r2, r3 = r4, r5, r6, r7, r8 [global+0 relaxed.gpu add 4xf32]"},
      {"atom.cas.b128 %q1, [%rd1], %q2, %q3;",
       "Atomic atom.cas.b128 r0 = r2, r3, r5 [generic+0 relaxed.gpu cas 1xb128]"},
      {"red.release.cta.global.or.b32 [%rd1], %r1;",
       "Reduction red.release.cta.global.or.b32 r0, r1 [global+0 release.cta or 1xb32]"},
      {"red.global.add.v2.f32 [%rd1], {%f1, %f2};",
       "Reduction red.global.add.v2.f32 r0, r1, r2 [global+0 relaxed.gpu add 2xf32]"},
  });
}

TEST(Instructions, Fences) {
  expect_all({
      {"membar.gl;", "Fence membar.gl [acq_rel gpu sc]"},
      {"membar.cta;", "Fence membar.cta [acq_rel cta sc]"},
      {"membar.sys;", "Fence membar.sys [acq_rel sys sc]"},
      {"fence.acq_rel.gpu;", "Fence fence.acq_rel.gpu [acq_rel gpu]"},
      {"fence.sc.sys;", "Fence fence.sc.sys [acq_rel sys sc]"},
      {"fence.cta;", "Fence fence.cta [acq_rel cta]"},
      {"fence.acquire.gpu;", "Fence fence.acquire.gpu [acquire gpu]"},
      {"fence.proxy.alias;", "Nothing fence.proxy.alias"},
      {"prefetch.global.L2 [%rd1];", "Prefetch prefetch.global.L2"},
  });
}

TEST(Instructions, Addresses) {
  expect_all({
      {"cvta.to.global.u64 %rd1, %rd2;", "FromGeneric cvta.to.global.u64 r0 = r1 [global]"},
      {"cvta.shared.u64 %rd1, sv+4;", "ToGeneric cvta.shared.u64 r0 = shared(sv+4) [shared]"},
      {"cvta.local.u64 %rd1, lv;", "ToGeneric cvta.local.u64 r0 = local(0) [local]"},
      {"cvta.param.u64 %rd1, %rd2;", "ToGeneric cvta.param.u64 r0 = r1 [param]"},
      {"isspacep.shared %p1, %rd1;", "IsSpace isspacep.shared r0 = r1 [shared]"},
      {"mapa.u64 %rd1, %rd2, %r1;", "MapShared mapa.u64 r0 = r1, r2 [generic]"},
      {"mapa.shared::cluster.u32 %r1, %r2, 0;", "MapShared mapa.shared::cluster.u32 r0 = r1, 0x0 [shared]"},
  });
}

TEST(Instructions, Barriers) {
  expect_all({
      {"bar.sync 0;", "Barrier bar.sync 0x0 [aligned]"},
      {"bar.sync %r1, 64;", "Barrier bar.sync r0, 0x40 [aligned count]"},
      {"barrier.sync 1;", "Barrier barrier.sync 0x1 [unaligned]"},
      {"barrier.cta.sync.aligned 1;", "Barrier barrier.cta.sync.aligned 0x1 [aligned]"},
      {"bar.arrive 1, 64;", "Barrier bar.arrive 0x1, 0x40 [aligned arrive count]"},
      {"bar.red.or.pred %p1, 0, %p2;", "Barrier bar.red.or.pred r0 = 0x0, r1 [aligned or]"},
      {"bar.red.popc.u32 %r1, 0, 64, !%p2;",
       "Barrier bar.red.popc.u32 r0 = 0x0, 0x40, r1 [aligned count popc negated]"},
      {"bar.warp.sync -1;", "WarpBarrier bar.warp.sync 0xffffffff"},
  });
}

TEST(Instructions, Warps) {
  expect_all({
      {"shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1;",
       "Shuffle shfl.sync.up.b32 r0, r1 = r2, 0x1, 0x0, 0xffffffff [sync b32]"},
      {"shfl.idx.b32 %r1, %r2, %r3, 31;", "Shuffle shfl.idx.b32 r0, _ = r1, r2, 0x1f [no sync b32]"},
      {"vote.sync.any.pred %p1, !%p2, -1;", "Vote vote.sync.any.pred r0 = r1, 0xffffffff [sync negated b32]"},
      {"vote.sync.ballot.b32 %r1, 1, %r2;", "Vote vote.sync.ballot.b32 r0 = 0x1, r1 [sync b32]"},
      {"match.any.sync.b64 %r1, %rd1, -1;", "Match match.any.sync.b64 r0, _ = r1, 0xffffffff [sync b64]"},
      {"match.all.sync.b32 %r1|%p1, %r2, %r3;", "Match match.all.sync.b32 r0, r1 = r2, r3 [sync b32]"},
      {"redux.sync.min.s32 %r1, %r2, -1;", "Redux redux.sync.min.s32 r0 = r1, 0xffffffff [sync s32]"},
      {"activemask.b32 %r1;", "ActiveMask activemask.b32 r0"},
      {"elect.sync _|%p1, -1;", "Elect elect.sync _, r0 = 0xffffffff"},
  });
}

TEST(Instructions, TheRest) {
  expect_all({
      {"nanosleep.u32 20;", "NanoSleep nanosleep.u32 0x14"},
      {"griddepcontrol.wait;", "DependencyWait griddepcontrol.wait"},
      {"griddepcontrol.launch_dependents;", "DependencyLaunch griddepcontrol.launch_dependents"},
      {"stacksave.u64 %rd1;", "StackSave stacksave.u64 r0"},
      {"stackrestore.u64 %rd1;", "StackRestore stackrestore.u64 r0"},
      {"alloca.u64 %rd1, %rd2, 16;", "Alloca alloca.u64 r0 = r1, 0x10"},
      {"alloca.u64 %rd1, %rd2;", "Alloca alloca.u64 r0 = r1, 0x8"},
      {"tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5}];",
       "Texture tex.1d.v4.s32.s32 r0, r1, r2, r3 = r4, r5"},
      {"tex.2d.v4.f32.f32 {%f1, _, _, _}, [%rd1, {%f2, %f3}];",
       "Texture tex.2d.v4.f32.f32 r0, _, _, _ = r1, r2, r3"},
      {"brkpt;", "Nothing brkpt"},
      {"@%p1 trap;", "@r0 Trap trap"},
      {"cp.async.commit_group;", "Nothing cp.async.commit_group"},
      {"cp.async.wait_group 0;", "Nothing cp.async.wait_group"},
  });
}

TEST(Instructions, TexturesSayTheirTypes) {
  const Linked linked({kernel("tex.2d.v4.u32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%f1, %f2}];")});
  const TextureDetail& t = linked.function("k").code[0].texture;
  EXPECT_EQ(t.dimensions, 2);
  EXPECT_TRUE(t.float_coordinates);
  EXPECT_EQ(t.result, NumberType::Unsigned);
}

TEST(Instructions, AsynchronousCopiesAreDoneAtOnce) {
  EXPECT_THAT(listing("cp.async.ca.shared.global [%r1], [%rd1+8], 4;"),
              ElementsAre("Load cp.async.ca.shared.global r2 = r1 [global+8 weak 1xb32 to 32]",
                          "Store cp.async.ca.shared.global r0, r2 [shared+0 weak 1xb32]"));
  // What is not copied is zero.
  EXPECT_THAT(listing("cp.async.ca.shared.global [%r1], [%rd1], 8, 5;"),
              ElementsAre("Store cp.async.ca.shared.global r0, 0x0 [shared+0 weak 1xb64]",
                          "Load cp.async.ca.shared.global r2 = r1 [global+0 weak 1xb32 to 32]",
                          "Store cp.async.ca.shared.global r0, r2 [shared+0 weak 1xb32]",
                          "Load cp.async.ca.shared.global r4 = r1 [global+4 weak 1xb8 to 8]",
                          "Store cp.async.ca.shared.global r0, r4 [shared+4 weak 1xb8]"));
}

TEST(Instructions, AsynchronousCopiesOfSomeBytesAskForEach) {
  const std::vector<std::string> lines = listing("cp.async.ca.shared.global [%r1], [%rd1], 4, %r2;");
  ASSERT_EQ(lines.size(), 1u + 2 * 4);
  EXPECT_EQ(lines[0], "Store cp.async.ca.shared.global r0, 0x0 [shared+0 weak 1xb32]");
  EXPECT_EQ(lines[3], "Load cp.async.ca.shared.global r5 = r1, r2 [global+1 weak 1xb8 to 8 above 1]");
  EXPECT_EQ(lines[4], "Store cp.async.ca.shared.global r0, r5, r2 [shared+1 weak 1xb8 above 1]");
}

TEST(Instructions, ASymbolKnowsItsSpaceAndAddress) {
  const Linked linked({kernel("ld.u32 %r1, [gv+4]; mov.u64 %rd1, gv; red.global.inc.u32 [gv+4], 0xf;")});
  const Function& f = linked.function("k");
  const uint64_t address = linked.variable("gv").address;
  for (const size_t i : {0u, 1u, 2u}) {
    EXPECT_EQ(f.constants[size_t{f.code[i].sources[0].index} * kLanes], address);
  }
  EXPECT_EQ(f.code[0].memory.space, Space::Global);
  EXPECT_EQ(f.code[0].memory.offset, 4);
  EXPECT_EQ(f.code[2].memory.atomic, AtomicOp::Inc);
}

}  // namespace
}  // namespace klap::emulator
