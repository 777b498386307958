#include "fixture.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "support/hash.h"

namespace klap::jit {

void Cache::SetUp() {
  std::string name = testing::TempDir() + "klap-cache-XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  base_ = name;
  ASSERT_EQ(chmod(name.c_str(), 0755), 0);  // for the tests that run as another user
}

void Cache::TearDown() { std::filesystem::remove_all(base_); }

CacheUse Cache::use(const CacheKey& key, uint64_t max_bytes) {
  DiskCache cache({.folder = folder(), .max_bytes = max_bytes});
  const RewrittenModule module = cache.find_or_build(key, Request{}, [&] {
    ++builds_;
    return module_for(key);
  });
  EXPECT_TRUE(same(module, module_for(key)));
  return module.cache;
}

size_t Cache::files_in_folder() const {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(folder()), std::filesystem::directory_iterator()));
}

CacheKey key_for(const std::string& name) { return {"key of " + name, Hasher().add(name).hex()}; }

RewrittenModule module_for(const CacheKey& key, size_t cubin_bytes) {
  RewrittenModule module;
  while (module.cubin.size() < cubin_bytes) module.cubin += key.text + '\0';
  Variant variant;
  variant.parent = key.text + " parent";
  variant.parent_variant = "parent variant";
  variant.launcher = Launcher::Device;
  variant.parent_param_count = 1;
  variant.parent_param_bytes = 2;
  variant.queue_param_offset = 3;
  variant.buffer = Buffer::Malloc;
  variant.shared_limits = {{"fifth child", 27, true}};
  variant.block = {0, 19, 20};
  variant.grid = {21, 22, 0};
  variant.in_slices = true;
  variant.consumers_await = true;
  variant.parent_waits = true;
  variant.stops = true;
  variant.queues.push_back({.child = "child",
                            .consumer = "consumer",
                            .record_bytes = 4,
                            .consumer_block_threads = 5,
                            .child_block_threads = 6,
                            .child_shared_bytes = 7,
                            .is_work_queue = true,
                            .others = {{"third child", 9}},
                            .following = {{"fourth child", {17, 0, 18}, true, false}},
                            .bounds = {{{23, 24, 25}, {true, false, true}, 26}}});
  variant.queues.push_back({.child = "other child", .consumer = "other consumer", .record_bytes = 8});
  Variant chain;
  chain.parent = key.text + " chain";
  chain.promoted = PromotedChain{.mode = "PAO", .block = {10, 11, 12}, .shared_bytes = 13, .slot_bytes = 14};
  chain.pool = 15;
  chain.concurrency = 16;
  module.variants = {variant, variant, chain};
  SiteRemark remark;
  remark.unit = "unit 0";
  remark.parent = variant.parent;
  remark.child = "child";
  remark.line = 97;
  remark.column = 2;
  remark.rewritten = true;
  remark.granularity = "grid";
  remark.launcher = "device";
  remark.detail = "detail";
  remark.source = {"a.cu", 12, 3};
  remark.brief = "brief";
  remark.facts = {{"block", "32x1x1"}};
  remark.notes = {"one", "two"};
  SiteRemark left;
  left.reason = "site-in-loop";
  module.remarks = {remark, left};
  return module;
}

bool same(const RewrittenModule& a, const RewrittenModule& b) {
  // Encoding covers every field that is kept; the structured bindings in it see to that.
  return encode({.key = {}, .sm = 0, .tools = {}, .decisions = {}, .module = a}) ==
         encode({.key = {}, .sm = 0, .tools = {}, .decisions = {}, .module = b});
}

pid_t start_process(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t process = fork();
  if (process == 0) _exit(body());
  return process;
}

int exit_code(pid_t process) {
  int status = 0;
  if (waitpid(process, &status, 0) != process) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace klap::jit
