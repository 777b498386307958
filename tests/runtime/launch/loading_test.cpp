// Lazy loading: the driver loads a kernel at its first use and waits for all that runs, so klap_jit's own are
// loaded where the program loads or allocates itself.
#include <cstdio>
#include <set>
#include <string>

#include "runtime/parents/frame_memory.h"
#include "runtime/parents/handles.h"
#include "runtime/queues/launch_context.h"
#include "tests/runtime/launch/fake_driver.h"

namespace klap::runtime {
namespace {

class LoadingTest : public FakeDriverTest {
 protected:
  LoadingTest() { setenv("FAKE_CUDA_LAZY", "1", 1); }
  ~LoadingTest() override {
    gate(false);
    unsetenv("FAKE_CUDA_LAZY");
  }
  static void gate(bool closed) { fake<void (*)(int)>("fakeGate")(closed ? 1 : 0); }
  static void set_current(CUcontext context) { fake<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent")(context); }
  [[nodiscard]] std::set<std::string> loaded() const {
    std::set<std::string> names;
    for (const Call& call : calls("load")) names.insert(call["kernel"]);
    return names;
  }
  [[nodiscard]] size_t calls_of(CUlibrary library) const {
    char text[32];
    std::snprintf(text, sizeof text, "%p", static_cast<void*>(library));
    size_t count = 0;
    for (const Call& call : calls("cuLibraryGetKernel")) count += call["library"] == text ? 1 : 0;
    return count;
  }
  // The program's own first use of the parent.
  CUfunction use(CUfunction kernel) {
    CUfunction function = nullptr;
    auto* const handle = reinterpret_cast<CUkernel>(kernel);
    EXPECT_EQ(CUDA_SUCCESS, driver()->kernel_get_function(&function, handle));
    learn_function_of(handle, function);
    return function;
  }
};

TEST_F(LoadingTest, BehindAKernelThatWaitsForTheHost) {
  use(parent_);
  gate(true);
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(parent_)));
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(several_)));
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(launching_)));
}

// Its first launch was the variant's.
TEST_F(LoadingTest, OriginalsThatRunLater) {
  make_kernels_ready();
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(parent_)));
  gate(true);
  EXPECT_EQ(CUDA_SUCCESS, driver()->launch_kernel(parent_, 1, 1, 1, 64, 1, 1, 0, nullptr, params_, nullptr));
}

TEST_F(LoadingTest, WhatVariantsLaunchIsLoadedToo) {
  make_kernels_ready();
  const std::set<std::string> names = loaded();
  for (const char* name : {"__klap_parent", "__klap_consumer", "child", "grandchild", "__klap_following",
                           "__klap_following_consumer", "__klap_exact_consumer"})
    EXPECT_TRUE(names.contains(name)) << name;
}

// The driver fixes the size of the device's heap when it loads a kernel that uses it.
TEST_F(LoadingTest, KernelsThatUseTheHeapAreLoadedForTheirLaunch) {
  using namespace std::string_view_literals;
  EXPECT_TRUE(uses_sized_memory("kernel\0malloc\0free"sv));
  EXPECT_TRUE(uses_sized_memory("kernel\0__cuda_syscall_aligned_malloc\0free"sv));
  EXPECT_TRUE(uses_sized_memory("kernel\0vprintf\0"sv));
  EXPECT_FALSE(uses_sized_memory("kernel\0my_malloc\0malloced\0free\0"sv));
  CUlibrary library = nullptr;
  load_library({}, library, true);
  forget_calls();
  make_kernels_ready();
  EXPECT_TRUE(loaded().contains("__klap_parent")) << "of the other library";
  EXPECT_EQ(0u, calls_of(library));
  parent_ = use(parent_);
  forget_calls();
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(parent_)));
  EXPECT_TRUE(loaded().contains("child")) << "with all that originals launch";
  gate(true);
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(parent_)));
  EXPECT_EQ(CUDA_SUCCESS, driver()->launch_kernel(parent_, 1, 1, 1, 64, 1, 1, 0, nullptr, params_, nullptr));
  gate(false);
  forget_library(library);
  driver()->library_unload(library);
}

// Before anything is loaded that uses the heap, and once in a context.
TEST_F(LoadingTest, BlocksThatStopHaveAWiderHeap) {
  CUlibrary library = nullptr;
  load_library({}, library, true);
  other_ = use(other_);
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(parent_)));
  EXPECT_TRUE(calls("cuCtxSetLimit").empty()) << "these do not stop";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(other_)));
  const auto set = calls("cuCtxSetLimit");
  ASSERT_EQ(1u, set.size());
  EXPECT_EQ(std::to_string(CU_LIMIT_MALLOC_HEAP_SIZE), set[0]["limit"]);
  EXPECT_GT(std::stoull(set[0]["value"]), 8u << 20);
  forget_library(library);
  driver()->library_unload(library);
}

// At most half of what queues may take, and 512 MB.
TEST_F(LoadingTest, TheHeapOfBlocksThatStopIsBounded) {
  constexpr uint64_t kAny = ~uint64_t{0};
  EXPECT_EQ(size_t{64} << 20, heap_for_frames(size_t{1} << 30, kAny));
  EXPECT_EQ(size_t{512} << 20, heap_for_frames(size_t{100} << 30, kAny));
  EXPECT_EQ(size_t{20} << 20, heap_for_frames(size_t{100} << 30, uint64_t{40} << 20));
  CUlibrary library = nullptr;
  load_library({}, library, true);
  other_ = use(other_);
  setenv("FAKE_CUDA_MEMORY", "134217728", 1);
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(other_)));
  EXPECT_TRUE(calls("cuCtxSetLimit").empty()) << "CUDA's default is as much";
  forget_library(library);
  driver()->library_unload(library);
}

// What the heap has more is memory of queues.
TEST_F(LoadingTest, TheHeapOfBlocksThatStopCountsAsMemoryOfQueues) {
  CUlibrary library = nullptr;
  load_library({}, library, true);
  other_ = use(other_);
  unsigned long long id = 0;
  ASSERT_EQ(CUDA_SUCCESS, driver()->ctx_get_id(nullptr, &id));
  BlockPool& pool = LaunchContexts::instance().in_context(id)->pool;
  const uint64_t before = pool.left(BlockOf::Node);
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(other_)));
  const auto set = calls("cuCtxSetLimit");
  ASSERT_EQ(1u, set.size());
  const uint64_t more = std::stoull(set[0]["value"]) - (8u << 20), taken = before - pool.left(BlockOf::Node);
  EXPECT_GT(taken, more - (1u << 20)) << "the queue of the launch is small";
  EXPECT_LT(taken, more + (1u << 20));
  forget_library(library);
  driver()->library_unload(library);
}

TEST_F(LoadingTest, OnceInEachContext) {
  make_kernels_ready();
  forget_calls();
  make_kernels_ready();
  EXPECT_TRUE(calls().empty());
  const CUcontext first = context_;
  new_context();
  make_kernels_ready();
  EXPECT_TRUE(loaded().contains("__klap_parent"));
  forget_calls();
  set_current(first);
  make_kernels_ready();
  EXPECT_TRUE(calls().empty());
}

TEST_F(LoadingTest, WithoutAContextItWaitsForOne) {
  set_current(nullptr);
  make_kernels_ready();
  EXPECT_TRUE(loaded().empty());
  set_current(context_);
  make_kernels_ready();
  EXPECT_TRUE(loaded().contains("__klap_parent"));
}

// The first launch of whatever kernel, if nothing came before it.
TEST_F(LoadingTest, AtTheLatestBeforeTheFirstLaunch) {
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of(nullptr)));
  EXPECT_TRUE(loaded().contains("__klap_parent"));
  gate(true);
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(parent_)));
}

TEST_F(LoadingTest, ImagesThatComeLater) {
  make_kernels_ready();
  CUlibrary second = nullptr;
  load_library({}, second);
  forget_calls();
  make_kernels_ready();
  EXPECT_TRUE(loaded().contains("__klap_parent"));
  const size_t all = calls("cuLibraryGetKernel").size();
  EXPECT_NE(0u, all);
  EXPECT_EQ(all, calls_of(second)) << "those of the first are loaded";
  forget_library(second);
  driver()->library_unload(second);
}

TEST_F(LoadingTest, DriversWithoutTheFunctionForIt) {
  EXPECT_EQ(nullptr, resolve_driver([](const char* symbol) {
                       return std::string(symbol) == "cuFuncLoad" ? nullptr : fake<void*>(symbol);
                     }).missing);
}

TEST_F(LoadingTest, SmallFirstLaunchesTakeNoMemory) {
  parent_ = use(parent_);
  several_ = use(several_);
  forget_calls();
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(several_)));
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch_of(parent_)));
  EXPECT_TRUE(calls("cuMemAlloc_v2").empty());
}

}  // namespace
}  // namespace klap::runtime
