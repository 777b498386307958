// What is said of a module's device memory where it is to be aggregated (KLAP_AGGREGATE_MALLOC), word for
// word: that it is, and each reason why it is not. Those that it is link with the real linker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assembled.h"
#include "fixture.h"
#include "tests/settings/given.h"

// Its helpers are called as those of build_test.cpp are.
namespace klap::test::device_memory {
namespace {

constexpr char kNot[] = "the module's device memory is not aggregated: ";
constexpr char kDone[] =
    "the module's device memory is aggregated by warp, in the program's own kernels, too: units assembled "
    "anew "
    "for it: ";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("the fixture does not hold: " + from);
  return text.replace(at, from.size(), to);
}

// A parent that takes memory for its child by cudaMalloc.
std::string taking() { return fixture("rewritten-device-malloc.golden"); }

// Another unit, with a kernel that calls `function`, whose one parameter is an address.
std::string freeing(const std::string& function, const std::string& kernel = "freeing") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func " + function +
         "(.param .b64 a);\n.visible .entry " + kernel +
         "(.param .b64 p) {\n\t.reg .b64 %rd1;\n\tld.param.b64 %rd1, [p];\n\t{\n\t.param .b64 a;\n"
         "\tst.param.b64 [a], %rd1;\n\tcall.uni " +
         function + ", (a);\n\t}\n\tret;\n}\n";
}

jit::Unit unit(const std::string& name, const std::string& ptx, bool with_machine_code = true) {
  jit::Unit made = jit::program_from_ptx(ptx, name).units[0];
  if (with_machine_code) made.cubin = assembled(ptx);
  return made;
}

jit::Program program_of(std::vector<jit::Unit> units) {
  jit::Program program;
  program.units = std::move(units);
  return program;
}

jit::Request request(const char* asked = "warp", jit::Granularity granularity = jit::Granularity::Grid) {
  jit::Request made;
  made.sm = 90;
  made.setting = test::given({{"granularity", to_string(granularity)}, {"aggregate_malloc", asked}});
  return made;
}

// The last note of the first remark.
std::string note_of(const std::vector<jit::SiteRemark>& remarks) {
  return remarks.empty() || remarks[0].notes.empty() ? "" : remarks[0].notes.back();
}
std::string explained(const jit::Program& program) { return note_of(explain_module(program, request())); }

struct Built {
  jit::RewrittenModule module;
  std::map<std::string, std::string> stages;
  [[nodiscard]] std::string note() const { return note_of(module.remarks); }
};
Built built(const jit::Program& program, jit::Request how = request()) {
  Built out;
  how.dump = [&](const jit::Stage& stage) { out.stages[stage.file] = stage.bytes; };
  out.module = rewrite_module(program, how);
  return out;
}

// ---- where it is ----

// A unit that takes and frees none.
std::string plain(const std::string& kernel = "plain") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry " + kernel + "() { ret; }\n";
}

TEST(DeviceMemory, IsTheModulesInAllUnitsThatUseIt) {
  const Built out =
      built(program_of({unit("taking", taking()), unit("freeing", freeing("free")), unit("plain", plain())}));
  ASSERT_FALSE(out.module.cubin.empty());
  EXPECT_EQ(kDone + std::string("taking, freeing"), out.note());
  EXPECT_THAT(out.module.remarks[0].notes,
              testing::Contains("the unit is assembled anew: its device memory is aggregated"));
  const std::string& inputs = out.stages.at("link.txt");
  EXPECT_THAT(inputs, testing::HasSubstr("input taking (rewritten): PTX"));
  EXPECT_THAT(inputs, testing::HasSubstr("input freeing: PTX"));
  EXPECT_THAT(inputs, testing::HasSubstr("input plain: machine code"));
  EXPECT_THAT(inputs, testing::HasSubstr("input device memory: PTX"));
}

// Nothing but the helpers calls the device's own, in originals and variants alike.
TEST(DeviceMemory, IsNowhereTheDevicesOwn) {
  const Built out = built(program_of({unit("taking", taking()), unit("freeing", freeing("free"))}));
  const std::string& text = out.stages.at("unit0.klap.ptx");
  EXPECT_EQ(0u, count(text, "\t__cudaCDP2Malloc, "));
  EXPECT_EQ(2u, count(text, "\t__cudaCDP2Malloc$klap_")) << "of the parent and of its variant";
  for (const char* function : {"__cudaCDP2Malloc$klap_", "free$klap_"})
    EXPECT_NE(std::string::npos, out.module.cubin.find(function)) << function;
}

TEST(DeviceMemory, IsLinkedForEveryTarget) {
  for (const uint32_t sm : {80, 90, 100}) {
    jit::Request how = request();
    how.sm = sm;
    EXPECT_EQ(kDone + std::string("taking"), built(program_of({unit("taking", taking(), false)}), how).note())
        << sm;
    how = request("chunks");
    how.sm = sm;
    EXPECT_EQ(replaced(kDone + std::string("taking"), "by warp", "in chunks"),
              built(program_of({unit("taking", taking(), false)}), how).note())
        << sm;
  }
}

// The slots are variables of the unit that has the functions, and of no other one.
TEST(DeviceMemory, HasSlotsWhereItIsCutFromChunks) {
  // No other test has this program, so it is not in the cache of this process.
  const jit::Program program =
      program_of({unit("taking", taking()), unit("other", freeing("free", "other"))});
  EXPECT_THAT(built(program).stages.at("memory.klap.ptx"), testing::Not(testing::HasSubstr("chunk_slots")));
  const Built out = built(program, request("chunks"));
  EXPECT_THAT(out.stages.at("memory.klap.ptx"), testing::ContainsRegex("\n.global [^\n]*chunk_slots"));
  EXPECT_THAT(out.stages.at("unit0.klap.ptx"), testing::Not(testing::HasSubstr("chunk_slots")));
}

TEST(DeviceMemory, StaysWhereNobodyAsks) {
  const jit::Program program = program_of({unit("taking", taking())});
  for (const char* asked : {"off", "warp", "chunks"}) {
    const bool is_asked = asked != std::string("off");
    const Built out = built(program, request(asked));
    EXPECT_EQ(is_asked, out.stages.contains("memory.klap.ptx")) << asked;
    EXPECT_EQ(is_asked, out.note().starts_with("the module's device memory")) << asked;
  }
  const jit::Program without = program_of({unit("unit", fixture("cdp2"))});
  EXPECT_THAT(explained(without), testing::Not(testing::HasSubstr("device memory")));
}

// ---- where it is not ----

TEST(DeviceMemory, StaysWhereAUnitHasNoPtx) {
  jit::Unit silent = unit("silent", plain());
  silent.ptx.clear();
  EXPECT_EQ(kNot + std::string("silent: it carries no PTX"),
            explained(program_of({unit("taking", taking(), false), silent})));
}

TEST(DeviceMemory, StaysWhereMachineCodeCallsWhatThePtxDoesNot) {
  for (const char* const function : {"malloc", "free", "__cudaCDP2Malloc", "__cudaCDP2Free"}) {
    jit::Unit other = unit("other", freeing(function));
    other.ptx = plain("freeing");
    EXPECT_EQ(kNot + ("other: its machine code calls " + std::string(function) + ", its PTX does not"),
              explained(program_of({unit("taking", taking(), false), other})));
  }
}

TEST(DeviceMemory, StaysWhereAUnitCannotBeRead) {
  EXPECT_THAT(explained(program_of(
                  {unit("taking", taking(), false), unit("broken", freeing("free") + "\x02", false)})),
              testing::StartsWith(kNot + std::string("broken: its PTX cannot be read: broken:")));
}

TEST(DeviceMemory, StaysWhereAUnitsPtxIsForAnotherTarget) {
  EXPECT_EQ(kNot + std::string("newer: its PTX is for sm_100"),
            explained(program_of({unit("taking", taking(), false),
                                  unit("newer", replaced(freeing("free"), "sm_80", "sm_100"), false)})));
}

TEST(DeviceMemory, StaysInDebugBuilds) {
  EXPECT_EQ(
      kNot + std::string("debug: it was compiled for debugging"),
      explained(program_of({unit("taking", taking(), false),
                            unit("debug", replaced(freeing("free"), "sm_80", "sm_80, debug"), false)})));
}

TEST(DeviceMemory, StaysWhereUnitsCannotBeAssembledTogether) {
  jit::Unit other = unit("other", plain());
  other.options = "-O1";
  EXPECT_EQ(kNot + std::string("taking and other were built with different options"),
            explained(program_of({unit("taking", taking(), false), other})));
}

TEST(DeviceMemory, StaysWhereTheDeviceRuntimeIsLeftOut) {
  jit::Request how = request();
  how.device_runtime = false;
  EXPECT_EQ(kNot + std::string("the module is linked without the device runtime"),
            note_of(explain_module(program_of({unit("taking", taking(), false)}), how)));
}

TEST(DeviceMemory, StaysWhereOtherFunctionsTakeIt) {
  for (const char* const function : {"__cuda_syscall_aligned_malloc", "cudaMalloc", "cudaFree"}) {
    EXPECT_EQ(
        kNot + ("other: it calls " + std::string(function)),
        explained(program_of({unit("taking", taking(), false), unit("other", freeing(function), false)})));
  }
}

TEST(DeviceMemory, StaysWhereANameMeansSomethingElse) {
  const std::string own = replaced(freeing("free"), ".extern .func free(.param .b64 a);",
                                   ".visible .func free(.param .b64 a) { ret; }");
  const std::string variable = replaced(plain(), ".visible", ".global .u64 malloc;\n.visible");
  EXPECT_EQ(kNot + std::string("own: free is its own there"),
            explained(program_of({unit("taking", taking(), false), unit("own", own, false)})));
  EXPECT_EQ(kNot + std::string("own: malloc is its own there"),
            explained(program_of({unit("taking", taking(), false), unit("own", variable, false)})));
}

TEST(DeviceMemory, StaysWhereNoLaunchIsRewritten) {
  const jit::Program program = program_of({unit("taking", taking())});
  const std::string expected = kNot + std::string("no launch of the module is rewritten");
  const jit::Request none = request("warp", jit::Granularity::None);
  EXPECT_EQ(expected, note_of(explain_module(program, none)));
  EXPECT_EQ(expected, built(program, none).note());
}

// The unit's machine code is good, its PTX is not accepted: all else is rewritten as without the setting.
TEST(DeviceMemory, StaysWhereTheModuleDoesNotBuildWithIt) {
  jit::Unit bad = unit("bad", freeing("free"));
  bad.ptx = replaced(bad.ptx, "\tret;", "\tfrobnicate.b32 %rd1;\n\tret;");
  const Built out = built(program_of({unit("taking", taking()), bad}));
  ASSERT_FALSE(out.module.cubin.empty());
  EXPECT_TRUE(out.module.remarks[0].rewritten);
  EXPECT_THAT(out.note(), testing::StartsWith(kNot + std::string("the module does not build with it: ")));
  EXPECT_THAT(out.note(), testing::HasSubstr("frobnicate"));
  EXPECT_THAT(out.module.remarks[0].notes,
              testing::Not(testing::Contains(testing::HasSubstr("assembled anew"))));
  EXPECT_THAT(out.stages.at("link.txt"), testing::HasSubstr("input bad: machine code"));
  EXPECT_EQ(std::string::npos, out.module.cubin.find("free$klap_"));
}

}  // namespace
}  // namespace klap::test::device_memory
