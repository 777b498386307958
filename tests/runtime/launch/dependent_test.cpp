// Consumers that are launched before their parent is complete: only those that wait for it, only where
// nothing speaks against it, and where the driver refuses in the ordinary way.
#include "fake_driver.h"

namespace klap::runtime {
namespace {

using Names = std::vector<std::string>;

constexpr char kDependent[] = "6=1;";  // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

class DependentTest : public FakeDriverTest {
 protected:
  DependentTest() { load({}); }
  ~DependentTest() override {
    for (const CUlibrary library : {waiting_}) {
      Registry::instance().remove_library(library);
      driver()->library_unload(library);
    }
  }

  // The same module once more, with consumers that wait for what is ahead of them.
  void load(const std::set<std::string>& no_dependent_launch) {
    const std::string cubin = read_file(KLAP_LAUNCH_CUBIN);
    if (waiting_) Registry::instance().remove_library(waiting_);
    ASSERT_EQ(CUDA_SUCCESS,
              driver()->library_load_data(&waiting_, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    LoadedImage image;
    image.library = waiting_;
    image.variants = variants();
    for (jit::Variant& variant : image.variants)
      variant.consumers_await = variant.launcher == jit::Launcher::Host;
    image.no_dependent_launch = no_dependent_launch;
    Registry::instance().add(image);
  }

  // Launches a parent of that module, and gives the attributes of each consumer's launch. Where they are
  // launched for the first time there is a launch in advance.
  std::vector<std::string> consumers_of(const char* parent, std::span<const CUlaunchAttribute> given = {}) {
    Launch launch = launch_of(kernel(waiting_, parent));
    launch.attributes = given;
    forget_calls();
    EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch));
    std::vector<std::string> attributes;
    for (const Call& call : calls()) {
      const bool launches = call.name().starts_with("cuLaunchKernel") && call["result"] == "0";
      if (launches && call["kernel"].ends_with("consumer")) attributes.push_back(call["attributes"]);
    }
    return attributes;
  }

  CUlibrary waiting_ = nullptr;
};

TEST_F(DependentTest, TheConsumerIsTriedInAdvanceAndThenADependent) {
  // On the empty queue, first in the ordinary way: what it then depends on is a consumer.
  EXPECT_EQ((Names{"", kDependent, kDependent}), consumers_of("parent"));
  EXPECT_EQ((Names{kDependent}), consumers_of("parent"));
  const auto launches = calls("cuLaunchKernel");
  ASSERT_EQ(1u, launches.size()) << "the parent is no dependent";
  EXPECT_EQ("__klap_parent", launches[0]["kernel"]);
}

TEST_F(DependentTest, EachOfSeveralDependsOnTheOneBefore) {
  EXPECT_EQ((Names{"", "", kDependent, kDependent, kDependent, kDependent}), consumers_of("several"));
}

TEST_F(DependentTest, ThePriorityIsKept) {
  CUlaunchAttribute priority{};
  priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  priority.value.priority = -3;
  consumers_of("parent");
  EXPECT_EQ((Names{"8=-3;6=1;"}), consumers_of("parent", std::span(&priority, 1)));
}

TEST_F(DependentTest, WhatDoesNotWaitIsNone) {
  Launch launch = launch_of(parent_);
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch));
  EXPECT_TRUE(calls("cuLaunchKernelEx").empty());
}

TEST_F(DependentTest, NoneWhereTheSettingsSaySo) {
  load({"parent"});
  EXPECT_EQ((Names{"", ""}), consumers_of("parent"));
  EXPECT_EQ((Names{"", kDependent, kDependent}), consumers_of("other"));
}

TEST_F(DependentTest, ARefusalInAdvanceIsForGood) {
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernelEx=801", 1);  // CUDA_ERROR_NOT_SUPPORTED
  EXPECT_EQ((Names{"", ""}), consumers_of("parent"));
  unsetenv("FAKE_CUDA_FAIL");
  EXPECT_EQ((Names{""}), consumers_of("parent"));
}

TEST_F(DependentTest, ALaterRefusalLosesNothing) {
  consumers_of("several");
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernelEx=801", 1);
  EXPECT_EQ((Names{"", ""}), consumers_of("several"));
  unsetenv("FAKE_CUDA_FAIL");
  EXPECT_EQ((Names{kDependent, kDependent}), consumers_of("several"));
}

}  // namespace
}  // namespace klap::runtime
