// Code that waits for its children, which the driver's linker refuses: a program links it all the same.
#include <gmock/gmock.h>

#include "run_program.h"

namespace klap::shim_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The fake driver's links have that result, whatever is linked.
Options linking(const std::map<std::string, std::string>& more = {}) {
  Options options;
  options.environment = more;
  options.environment["FAKE_CUDA_LINKER"] = kObjects + "/stand_in.cubin";
  return options;
}

Outcome link_waiting(const Options& options) {
  return run_program("driver_linker", {kObjects + "/waiting.ptx"}, options);
}

TEST(StandIn, IsLinkedInPlaceOfCodeThatWaits) {
  const Outcome run = link_waiting(linking());
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("0", run.said("added")) << run.error;
  EXPECT_EQ("0", run.said("loaded")) << run.error;
  EXPECT_THAT(run.complaints(), IsEmpty());
  // The driver is asked in a link of its own, which ends, and the program's link goes on.
  const auto added = run.called("cuLinkAddData_v2");
  ASSERT_THAT(added, SizeIs(2)) << run.error;
  EXPECT_EQ("225", added[0]["result"]);
  EXPECT_EQ("0", added[1]["result"]);
  EXPECT_NE(added[0]["link"], added[1]["link"]);
  EXPECT_THAT(run.called("cuLinkDestroy"), SizeIs(2));
  // The module is made of the program's code.
  const auto loads = run.called("cuModuleLoadData");
  ASSERT_THAT(loads, SizeIs(1));
  EXPECT_NE(run.said("image"), loads[0]["image"]);
}

TEST(StandIn, IsNotLinkedIfNothingIsToBeRewritten) {
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"KLAP_DISABLE", "1"}, {"KLAP_GRANULARITY", "none"}}) {
    const Outcome run = link_waiting(linking({{name, value}}));
    EXPECT_EQ("225", run.said("added")) << name;
    EXPECT_THAT(run.complaints(), IsEmpty());
  }
}

TEST(StandIn, OtherCodeIsLinkedAsItIs) {
  const Outcome run = run_program("driver_linker", {kObjects + "/launching.ptx"}, linking());
  EXPECT_EQ("0", run.said("added")) << run.error;
  EXPECT_THAT(run.called("cuLinkAddData_v2"), SizeIs(1));
}

// Where nobody knows what it was made from, the load fails as the link would have.
TEST(StandIn, IsNeverLoaded) {
  for (const char* const asynchronous : {"0", "1"}) {
    Options options;
    options.environment = {{"KLAP_ASYNC", asynchronous}};
    const Outcome run = run_program("plain", {"bytes", kObjects + "/stand_in.cubin"}, options);
    EXPECT_EQ("225", run.said("result")) << run.error;
    EXPECT_THAT(run.called("cuModuleLoadData"), IsEmpty());
    ASSERT_THAT(run.complaints(), SizeIs(1)) << run.error;
    EXPECT_THAT(run.complaints()[0], HasSubstr("what it was linked from is not known"));
  }
}

// It fails that way, too, if the code cannot be linked once it is rewritten.
TEST(StandIn, IsNotLoadedInPlaceOfCodeThatCannotBeRewritten) {
  const Outcome run = link_waiting(linking({{"KLAP_NVRTC", "/nowhere/libnvrtc.so"}}));
  EXPECT_EQ("0", run.said("added")) << run.error;
  EXPECT_EQ("225", run.said("loaded")) << run.error;
  EXPECT_THAT(run.called("cuModuleLoadData"), IsEmpty());
  ASSERT_THAT(run.complaints(), SizeIs(1)) << run.error;
  EXPECT_THAT(run.complaints()[0], HasSubstr("refused, as CUDA refuses code that waits for its children"));
}

}  // namespace
}  // namespace klap::shim_test
