// Images that are rewritten while the program runs its own kernels: which launches find variants, and what
// has been set on the program's kernels before.
#include "runtime/parents/later_images.h"

#include "runtime/parents/handles.h"
#include "tests/runtime/launch/fake_driver.h"

namespace klap::runtime {
namespace {

class LaterImagesTest : public FakeDriverTest {
 protected:
  LaterImagesTest() {
    own_.module = load_module();
    unsigned long long id = 0;
    EXPECT_EQ(CUDA_SUCCESS, driver()->ctx_get_id(nullptr, &id));
    own_.context_id = id;
    later_ = LaterImages::instance().begin(own_);
  }
  ~LaterImagesTest() override { forget_module(own_.module); }

  static CUmodule load_module() {
    static const std::string cubin = read_file(KLAP_LAUNCH_CUBIN);
    CUmodule module = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, driver()->module_load_data(&module, cubin.data()));
    return module;
  }
  CUfunction get_function(const char* name) {
    CUfunction function = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, driver()->module_get_function(&function, own_.module, name));
    learn_function(own_.module, name, function);
    return function;
  }
  // The second image is there.
  bool change() {
    LoadedImage image;
    image.module = own_.module;
    image.context_id = own_.context_id;
    image.second_module = load_module();
    image.variants = variants();
    return LaterImages::instance().change(later_, image);
  }
  bool redirected(CUfunction function) { return redirect_launch(launch_of(function)).has_value(); }
  // The values that were set on kernels of that name. The program's own are not set here.
  [[nodiscard]] std::vector<std::string> set_on(const std::string& name) const {
    std::vector<std::string> values;
    for (const Call& call : calls("cuFuncSetAttribute")) {
      if (call["kernel"] == name) values.push_back(call["value"]);
    }
    return values;
  }

  OwnImage own_;
  std::shared_ptr<LaterImage> later_;
};

constexpr auto kShared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;

TEST_F(LaterImagesTest, LaunchesAreRedirectedOnceTheSecondImageIsThere) {
  const CUfunction parent = get_function("parent");
  EXPECT_FALSE(redirected(parent));
  ASSERT_TRUE(change());
  EXPECT_TRUE(redirected(parent));
  EXPECT_TRUE(redirected(get_function("several"))) << "learnt behind it";
}

TEST_F(LaterImagesTest, SettingsAreThoseOfTheProgramsKernels) {
  const CUfunction parent = get_function("parent"), child = get_function("child");
  mirror_attribute(parent, kShared, 1024);
  mirror_attribute(child, kShared, 2048);
  ASSERT_TRUE(change());
  EXPECT_EQ(std::vector<std::string>{"1024"}, set_on("__klap_parent"));
  EXPECT_EQ(std::vector<std::string>{"1024"}, set_on("parent")) << "it may launch what finds no room";
  EXPECT_EQ(std::vector<std::string>{"2048"}, set_on("child"));
  forget_calls();
  mirror_attribute(child, kShared, 4096);
  EXPECT_EQ(std::vector<std::string>{"4096"}, set_on("child")) << "set later";
}

TEST_F(LaterImagesTest, NothingChangesOnceTheProgramHasUnloadedItsImage) {
  const CUfunction parent = get_function("parent");
  forget_module(own_.module);
  EXPECT_FALSE(LaterImages::any());
  EXPECT_FALSE(change());
  EXPECT_FALSE(redirected(parent));
}

TEST_F(LaterImagesTest, TheSecondImageIsUnloadedWithTheFirst) {
  ASSERT_TRUE(change());
  forget_calls();
  forget_module(own_.module);
  EXPECT_EQ(1u, calls("cuModuleUnload").size());
  EXPECT_FALSE(LaterImages::any());
}

TEST_F(LaterImagesTest, AContextTakesItsImagesWithIt) {
  get_function("parent");
  LaterImages::instance().end_context(own_.context_id);
  EXPECT_FALSE(LaterImages::any());
  EXPECT_FALSE(change());
}

TEST_F(LaterImagesTest, AnImageThatStaysAsItIsIsForgotten) {
  const CUfunction parent = get_function("parent");
  LaterImages::instance().leave(later_);
  EXPECT_FALSE(LaterImages::any());
  EXPECT_FALSE(redirected(parent));
}

// The driver has given the handle out again.
TEST_F(LaterImagesTest, AHandleIsThatOfTheLastImageItWasLearntOf) {
  const CUfunction parent = get_function("parent");
  learn_function(load_module(), "other", parent);
  ASSERT_TRUE(change());
  EXPECT_FALSE(redirected(parent));
}

}  // namespace
}  // namespace klap::runtime
