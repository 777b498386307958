// The fake driver (tests/fake_cuda) inside a test process: loads it, reads its call log, loads the test
// module.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/driver.h"
#include "runtime/launch/launch.h"
#include "runtime/parents/registry.h"
#include "runtime/stats.h"
#include "support/file.h"

namespace klap::runtime {

// A function of the fake driver that klap_jit itself does not call.
template <class Function>
Function fake(const char* symbol) {
  static void* const library = dlopen(KLAP_FAKE_CUDA, RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(library, symbol));
}

// One line of the call log.
struct Call {
  std::string text;
  [[nodiscard]] std::string name() const { return text.substr(0, text.find(' ')); }
  // The value behind "KEY=", empty if there is none.
  [[nodiscard]] std::string operator[](const std::string& key) const {
    const size_t at = text.find(" " + key + "=");
    if (at == std::string::npos) return "";
    const size_t begin = at + key.size() + 2;
    return text.substr(begin, text.find(' ', begin) - begin);
  }
};

// Every test has a CUDA context of its own, with the test module loaded as a library, and an empty log.
class FakeDriverTest : public testing::Test {
 protected:
  FakeDriverTest() {
    static const Driver table = resolve_driver([](const char* symbol) { return fake<void*>(symbol); });
    publish_driver(table);
    static int number = 0;
    log_ = std::filesystem::temp_directory_path() /
           ("klap-launch-" + std::to_string(getpid()) + "-" + std::to_string(number++));
    setenv("FAKE_CUDA_LOG", log_.c_str(), 1);
    new_context();
    load_library({}, library_);
  }
  ~FakeDriverTest() override {
    Registry::instance().remove_library(library_);
    driver()->library_unload(library_);
    for (const char* name : {"FAKE_CUDA_LOG", "FAKE_CUDA_FAIL", "FAKE_CUDA_MEMORY", "FAKE_CUDA_THREADS",
                             "FAKE_CUDA_SHARED", "FAKE_CUDA_OCCUPANCY", "FAKE_CUDA_MS"})
      unsetenv(name);
    std::filesystem::remove(log_);
  }

  void new_context() {
    ASSERT_EQ(CUDA_SUCCESS, (fake<PFN_cuCtxCreate_v3020>("cuCtxCreate_v2")(&context_, 0, 0)));
  }

  static std::vector<jit::Variant> variants() {
    jit::Variant first;
    first.parent = "parent";
    first.parent_variant = "__klap_parent";
    first.parent_param_count = 2;
    first.parent_param_bytes = 12;
    first.queue_param_offset = 16;
    first.queues = {{.child = "child",
                     .consumer = "__klap_consumer",
                     .record_bytes = 24,
                     .consumer_block_threads = 128,
                     .child_block_threads = 128}};
    jit::Variant second = first;
    second.parent = "other";
    second.parent_variant = "__klap_other";
    second.queues[0].consumer = "__klap_other_consumer";
    second.parent_param_bytes = 13;
    second.parent_waits = true;
    second.stops = true;
    second.queues[0].record_bytes = 80;
    jit::Variant third = first;
    third.parent = "launching";
    third.parent_variant = "__klap_launching";
    third.queues[0].consumer = "__klap_exact_consumer";
    third.launcher = jit::Launcher::Device;
    jit::Variant fourth = first;
    fourth.parent = "several";
    fourth.parent_variant = "__klap_several";
    fourth.queues.push_back(second.queues[0]);
    jit::Variant fifth = third;
    fifth.parent = "grouped";
    fifth.parent_variant = "__klap_grouped";
    fifth.granularity = jit::Granularity::MultiBlock;
    fifth.group_blocks = 2;
    jit::Variant sixth = first;
    sixth.parent = "nesting";
    sixth.parent_variant = "__klap_nesting";
    sixth.queues[0].is_work_queue = true;
    sixth.queues[0].others = {{"grandchild", 256}};
    jit::Variant seventh = first;
    seventh.parent = "sliced";
    seventh.parent_variant = "__klap_sliced";
    seventh.in_slices = true;
    jit::Variant eighth = fifth;
    eighth.parent = "sliced_groups";
    eighth.parent_variant = "__klap_sliced_groups";
    eighth.queues.push_back(second.queues[0]);
    eighth.queues[1].consumer = "__klap_exact_consumer";
    eighth.in_slices = true;
    jit::Variant ninth = fifth;
    ninth.parent = "looping_groups";
    ninth.parent_variant = "__klap_looping_groups";
    ninth.queues[0].consumer = "__klap_consumer";
    ninth.queues[0].is_work_queue = true;
    jit::Variant tenth = sixth;
    tenth.parent = "following";
    tenth.parent_variant = "__klap_following";
    tenth.queues[0].consumer = "__klap_following_consumer";
    tenth.queues[0].consumer_block_threads = 1024;
    tenth.queues[0].following = {{.kernel = "child", .block = {0, 0, 1}, .fills = true, .full_warps = true},
                                 {.kernel = "grandchild", .block = {32, 4, 1}}};
    jit::Variant eleventh = first;
    eleventh.parent = "of_one_row";
    eleventh.parent_variant = "__klap_of_one_row";
    eleventh.block = {0, 1, 1};
    eleventh.grid = {0, 0, 1};
    jit::Variant twelfth = sixth;
    twelfth.parent = "repeated";
    twelfth.parent_variant = "__klap_repeated";
    twelfth.fixed_launches = true;
    twelfth.parent_param_offsets = {0, 8};
    twelfth.parent_param_sizes = {8, 4};
    twelfth.words_without_effect = {0};
    twelfth.unread_parameters = {{10, 2}};
    jit::Variant thirteenth = fourth;
    thirteenth.parent = "counted";
    thirteenth.parent_variant = "__klap_counted";
    thirteenth.queues[1].consumer = "__klap_consumer";
    thirteenth.in_slices = true;
    thirteenth.fixed_launches = true;
    thirteenth.parent_param_offsets = {0, 8};
    thirteenth.parent_param_sizes = {8, 4};
    return {first,  second, third, fourth,   fifth,   sixth,     seventh,
            eighth, ninth,  tenth, eleventh, twelfth, thirteenth};
  }

  // `pool_bytes` and `uses_sized_memory` as in LoadedImage. The kernels of the last one loaded are the ones
  // launched.
  void load_library(const std::map<std::string, uint64_t>& pool_bytes, CUlibrary& library,
                    bool uses_sized_memory = false) {
    static const std::string cubin = read_file(KLAP_LAUNCH_CUBIN);
    ASSERT_EQ(CUDA_SUCCESS,
              driver()->library_load_data(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    LoadedImage image;
    image.library = library;
    image.variants = variants();
    image.pool_bytes = pool_bytes;
    image.uses_sized_memory = uses_sized_memory;
    image.key = module_key_;
    Registry::instance().add(image);
    parent_ = kernel(library, "parent");
    other_ = kernel(library, "other");
    launching_ = kernel(library, "launching");
    several_ = kernel(library, "several");
    grouped_ = kernel(library, "grouped");
    nesting_ = kernel(library, "nesting");
    sliced_ = kernel(library, "sliced");
    sliced_groups_ = kernel(library, "sliced_groups");
    looping_groups_ = kernel(library, "looping_groups");
    following_ = kernel(library, "following");
    of_one_row_ = kernel(library, "of_one_row");
    repeated_ = kernel(library, "repeated");
    counted_ = kernel(library, "counted");
  }

  CUfunction kernel(const char* name) { return kernel(library_, name); }
  static CUfunction kernel(CUlibrary library, const char* name) {
    CUkernel handle = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, driver()->library_get_kernel(&handle, library, name));
    Registry::instance().learn_kernel(library, name, handle);
    return reinterpret_cast<CUfunction>(handle);
  }

  // A launch of `parent` with valid parameters.
  Launch launch_of(CUfunction function) {
    Launch launch;
    launch.function = function;
    launch.grid[0] = 4;
    launch.block[0] = 64;
    launch.params = params_;
    return launch;
  }

  // The log so far, calls of that name only (all if empty).
  [[nodiscard]] std::vector<Call> calls(const std::string& name = "") const {
    std::vector<Call> found;
    if (!std::filesystem::exists(log_)) return found;
    const std::string text = read_file(log_);
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      Call call{text.substr(at, end - at)};
      if (name.empty() || call.name() == name) found.push_back(std::move(call));
      at = end + 1;
    }
    return found;
  }

  // Names of the kernels launched so far, in order.
  [[nodiscard]] std::vector<std::string> launched() const {
    std::vector<std::string> names;
    for (const Call& call : calls()) {
      if (call.name().rfind("cuLaunchKernel", 0) == 0 && call["result"] == "0")
        names.push_back(call["kernel"]);
    }
    return names;
  }
  // How many launches of that kernel ran the original for that reason.
  static int left(const std::string& reason, const std::string& name = "parent") {
    const nlohmann::json reasons = Stats::instance().to_json()["launches"]["left"];
    return reasons.value(name, nlohmann::json::object()).value(reason, 0);
  }
  // Expects the original to be asked for, nothing launched, and the reason to be counted.
  void expect_left(const Launch& launch, const std::string& reason, const std::string& name = "parent") {
    const int before = left(reason, name);
    forget_calls();
    EXPECT_EQ(std::nullopt, redirect_launch(launch));
    EXPECT_EQ(std::vector<std::string>{}, launched());
    EXPECT_EQ(before + 1, left(reason, name)) << reason;
  }

  void forget_calls() const { std::filesystem::remove(log_); }

  inline static std::string module_key_;  // of images that are loaded; profiles are kept if there is one
  std::filesystem::path log_;
  CUcontext context_ = nullptr;
  CUlibrary library_ = nullptr;
  CUfunction parent_ = nullptr, other_ = nullptr, launching_ = nullptr, several_ = nullptr,
             grouped_ = nullptr, nesting_ = nullptr, sliced_ = nullptr, sliced_groups_ = nullptr,
             looping_groups_ = nullptr, following_ = nullptr, of_one_row_ = nullptr, repeated_ = nullptr,
             counted_ = nullptr;

  uint64_t first_param_ = 0x1122334455667788;
  uint32_t second_param_ = 0x99aabbcc;
  void* params_[2] = {&first_param_, &second_param_};
};

}  // namespace klap::runtime
