// Handles: how a rewritten parent is recognised, and how handles of dead objects are not mistaken for it.
#include "runtime/parents/handles.h"

#include <thread>

#include "tests/runtime/launch/fake_driver.h"

namespace klap::runtime {
namespace {

class HandlesTest : public FakeDriverTest {
 protected:
  ~HandlesTest() override {
    for (const CUmodule module : modules_) Registry::instance().remove_module(module);
  }
  bool redirected(CUfunction function) { return redirect_launch(launch_of(function)).has_value(); }

  CUmodule load_module() {
    static const std::string cubin = read_file(KLAP_LAUNCH_CUBIN);
    CUmodule module = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, driver()->module_load_data(&module, cubin.data()));
    return module;
  }
  CUmodule load_rewritten_module() {
    LoadedImage image;
    image.module = load_module();
    unsigned long long id = 0;
    EXPECT_EQ(CUDA_SUCCESS, driver()->ctx_get_id(nullptr, &id));
    image.context_id = id;
    image.variants = variants();
    Registry::instance().add(image);
    modules_.push_back(image.module);
    return image.module;
  }
  CUfunction get_function(CUmodule module, const char* name) {
    CUfunction function = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, driver()->module_get_function(&function, module, name));
    learn_function(module, name, function);
    return function;
  }
  void destroy_context() { fake<PFN_cuCtxDestroy_v4000>("cuCtxDestroy_v2")(context_); }

 private:
  std::vector<CUmodule> modules_;
};

TEST_F(HandlesTest, FunctionOfKernel) {
  CUfunction function = nullptr;
  auto* const kernel = reinterpret_cast<CUkernel>(parent_);
  ASSERT_EQ(CUDA_SUCCESS, driver()->kernel_get_function(&function, kernel));
  EXPECT_FALSE(redirected(function));
  learn_function_of(kernel, function);
  EXPECT_TRUE(redirected(function));
}

TEST_F(HandlesTest, FunctionOfLibrarysModule) {
  CUmodule module = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, driver()->library_get_module(&module, library_));
  learn_module(library_, module);
  EXPECT_TRUE(redirected(get_function(module, "parent")));
  EXPECT_FALSE(redirected(get_function(module, "child")));
}

TEST_F(HandlesTest, FunctionOfModule) {
  const CUmodule module = load_rewritten_module();
  const CUfunction function = get_function(module, "parent");
  EXPECT_TRUE(redirected(function));
  EXPECT_EQ("__klap_parent", launched()[1]);
  forget_module(module);
  EXPECT_FALSE(redirected(function));
}

TEST_F(HandlesTest, FunctionsAreGoodInTheirContextOnly) {
  const CUfunction function = get_function(load_rewritten_module(), "parent");
  new_context();
  EXPECT_FALSE(redirected(function));
}

TEST_F(HandlesTest, LibraryKernelsAreGoodInEveryContext) {
  EXPECT_TRUE(redirected(parent_));
  new_context();
  forget_calls();
  EXPECT_TRUE(redirected(parent_));
  // A context of its own has a queue of its own and proves the consumer again.
  EXPECT_EQ((std::vector<std::string>{"__klap_consumer", "__klap_parent", "__klap_consumer"}), launched());
  EXPECT_EQ(1u, calls("cuMemAlloc_v2").size());
}

TEST_F(HandlesTest, RecycledFunctionOfADestroyedContext) {
  const CUmodule old_module = load_rewritten_module();
  const CUfunction old_function = get_function(old_module, "parent");
  destroy_context();
  new_context();
  const CUmodule module = load_module();
  CUfunction function = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, driver()->module_get_function(&function, module, "parent"));
  ASSERT_EQ(old_module, module) << "the fake driver recycles addresses";
  ASSERT_EQ(old_function, function);
  EXPECT_FALSE(redirected(function));
  learn_function(module, "parent", function);
  EXPECT_FALSE(redirected(function));
}

TEST_F(HandlesTest, UnloadedLibraryTakesAllItsHandles) {
  CUmodule module = nullptr;
  ASSERT_EQ(CUDA_SUCCESS, driver()->library_get_module(&module, library_));
  learn_module(library_, module);
  const CUfunction function = get_function(module, "parent");
  ASSERT_TRUE(redirected(function));
  forget_library(library_);
  EXPECT_FALSE(redirected(parent_));
  EXPECT_FALSE(redirected(function));
  EXPECT_FALSE(redirected(get_function(module, "parent")));
  EXPECT_TRUE(nothing_rewritten());
}

TEST_F(HandlesTest, SettingsAreMirrored) {
  auto* const kernel = reinterpret_cast<CUkernel>(parent_);
  const auto attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  mirror_attribute(kernel, attribute, 65536, 0);
  mirror_cache_config(kernel, CU_FUNC_CACHE_PREFER_L1, 0);
  EXPECT_EQ("__klap_parent", calls("cuKernelSetAttribute")[0]["kernel"]);
  EXPECT_EQ("65536", calls("cuKernelSetAttribute")[0]["value"]);
  EXPECT_EQ("__klap_parent", calls("cuKernelSetCacheConfig")[0]["kernel"]);

  mirror_attribute(parent_, attribute, 4096);  // a CUkernel in a CUfunction's place
  const CUfunction function = get_function(load_rewritten_module(), "parent");
  mirror_attribute(function, attribute, 8192);
  mirror_cache_config(function, CU_FUNC_CACHE_PREFER_SHARED);
  const auto set = calls("cuFuncSetAttribute");
  ASSERT_EQ(2u, set.size());
  EXPECT_EQ("__klap_parent", set[0]["kernel"]);
  EXPECT_EQ("4096", set[0]["value"]);
  EXPECT_EQ("__klap_parent", set[1]["kernel"]);
  EXPECT_EQ("8192", set[1]["value"]);
  EXPECT_EQ("__klap_parent", calls("cuFuncSetCacheConfig")[0]["kernel"]);

  mirror_attribute(this->kernel("child"), attribute, 1);
  EXPECT_EQ(2u, calls("cuFuncSetAttribute").size());
}

}  // namespace
}  // namespace klap::runtime
