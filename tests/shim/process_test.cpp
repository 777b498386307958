// Processes: without CUDA, with many threads, forked.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "run_program.h"
#include "support/file.h"

namespace klap::shim_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Process, WithoutCudaOpensNoCudaLibrary) {
  Options options;
  options.environment = {{"KLAP_LOG", "trace"}, {"KLAP_STATS", "/no/such/folder/stats"}};
  const Outcome run = run_program("no_cuda", {}, options);
  EXPECT_EQ(0, run.status);
  EXPECT_EQ("", run.error);
  EXPECT_THAT(run.out, HasSubstr("libklap_jit.so"));
  for (const char* library : {"libcuda.so", "libnvrtc", "libnvJitLink", "libcudart"}) {
    EXPECT_THAT(run.out, Not(HasSubstr(library)));
  }
}

// Whoever starts such a program must not choose the files that it writes. This one has another group's
// rights, and so may still write into the test's folders.
TEST(Process, ASetIdProgramHeedsNoVariable) {
  namespace fs = std::filesystem;
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a program that has the rights of others";
  const fs::path program = fs::path(KLAP_PROGRAMS) / "set_id_copy";
  fs::copy_file(fs::path(KLAP_PROGRAMS) / "set_id", program, fs::copy_options::overwrite_existing);
  constexpr gid_t kNobody = 65534;
  ASSERT_EQ(0, chown(program.c_str(), 0, kNobody));
  ASSERT_EQ(0, chmod(program.c_str(), 02755));
  const TemporaryFile stats("stats"), log("log"), cache("cache"), dump("dump");
  Options options;
  options.preload = false;
  options.environment = {
      {"KLAP_STATS", stats.path()}, {"KLAP_LOG_FILE", log.path()},    {"KLAP_LOG", "trace"},
      {"KLAP_CACHE_DISABLE", "0"},  {"KLAP_CACHE_DIR", cache.path()}, {"KLAP_DUMP_DIR", dump.path()}};
  const Outcome with_variables = run_program("set_id", {}, options);
  EXPECT_EQ(0, with_variables.status) << with_variables.error;
  for (const TemporaryFile* const file : {&stats, &log, &cache, &dump}) {
    EXPECT_TRUE(fs::exists(file->path())) << file->path();
    fs::remove_all(file->path());
  }
  const Outcome run = run_program("set_id_copy", {}, options);
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("", run.error);
  EXPECT_FALSE(run.launches().empty());
  for (const TemporaryFile* const file : {&stats, &log, &cache, &dump})
    EXPECT_FALSE(fs::exists(file->path())) << file->path();
  fs::remove(program);
}

TEST(Process, SixteenThreadsLoadAtOnce) {
  const TemporaryFile stats("stats.json");
  Options options;
  options.environment = {{"KLAP_STATS", stats.path()}};
  const Outcome run = run_program("launching", {"threads"}, options);
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_TRUE(run.complaints().empty()) << run.error;
  std::map<std::string, std::string> by_stream;
  for (const Call& launch : run.launches()) {
    by_stream[launch["stream_id"]] += "OVC"[static_cast<int>(role(launch))];
  }
  EXPECT_EQ(16u, by_stream.size());
  // Each thread has a library of its own, which is proven once, and five launches.
  for (const auto& [stream, letters] : by_stream) EXPECT_EQ("CVCVCVCVCVC", letters) << stream;
  const auto json = nlohmann::json::parse(read_file(stats.path()));
  EXPECT_EQ(80, json["launches"]["redirected"]["parent"]);
  uint64_t loads = 0;
  for (const auto& module : json["modules"]) loads += module["loads"].get<uint64_t>();
  EXPECT_EQ(16u, loads);
}

TEST(Process, ForkedChildrenOnlyForward) {
  const TemporaryFile stats("stats.json");
  Options options;
  options.environment = {{"KLAP_STATS", stats.path()}, {"KLAP_GUARD", "off"}};
  const Outcome run = run_program("launching", {"fork"}, options);
  EXPECT_EQ(0, run.status) << run.error;
  // Each child launched the original and loaded its own image, and none wrote the parent's statistics.
  size_t originals = 0;
  for (const Call& launch : run.launches()) originals += role(launch) == Role::Original;
  EXPECT_EQ(20u, originals);
  EXPECT_EQ(21u, run.called("cuLibraryLoadData").size());
  EXPECT_FALSE(std::filesystem::exists(stats.path()));
}

TEST(Process, LibcudaStaysWhenTheProgramClosesIt) {
  const Outcome run = run_program("launching", {"close"});
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("CVC", roles(run));
}

TEST(Process, ExitHandlersOfTheProgramStillLaunch) {
  const TemporaryFile stats("stats.json");
  Options options;
  options.environment = {{"KLAP_STATS", stats.path()}};
  const Outcome run = run_program("launching", {"exit_handler"}, options);
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ("CVCVC", roles(run));
  EXPECT_EQ("cuLibraryUnload", run.calls.back().name());
}

// The 8 bytes from there on of what was copied, in hexadecimal digits with the lowest byte first.
uint64_t number_at(const std::string& data, size_t offset) {
  std::string digits;
  for (size_t byte = offset + 8; byte-- > offset;) digits += data.substr(2 * byte, 2);
  return std::stoull(digits, nullptr, 16);
}

TEST(Process, StatisticsAreWrittenAtExit) {
  const TemporaryFile stats("stats.json");
  Options options;
  options.environment = {{"KLAP_STATS", stats.path()}, {"KLAP_TUNE", "off"}};
  const Outcome run = run_program("launching", {"launch_ex"}, options);
  EXPECT_EQ(0, run.status) << run.error;
  const auto json = nlohmann::json::parse(read_file(stats.path()));
  EXPECT_EQ("rewritten", json["modules"][0]["how"]);
  EXPECT_EQ("cuLibraryLoadData", json["modules"][0]["load_path"]);
  EXPECT_EQ(2, json["launches"]["redirected"]["parent"]);
  EXPECT_EQ(1, json["launches"]["left"]["parent"]["cluster launch"]);
  // The queue tells the consumer where to count, and that where the process sees it.
  ASSERT_EQ(1u, run.called("cuMemHostRegister_v2").size());
  const uint64_t page = std::stoull(run.called("cuMemHostRegister_v2")[0]["memory"], nullptr, 16);
  const std::vector<Call> copies = run.called("cuMemcpyHtoDAsync_v2");
  ASSERT_LE(2u, copies.size());
  const uint64_t words = number_at(copies[0]["data"], 0);
  EXPECT_LE(page, words);
  EXPECT_GT(page + 4096, words);
  EXPECT_EQ(std::stoull(copies[0]["to"], nullptr, 16), number_at(copies[1]["data"], 48));
}

// A page has room for 64.
TEST(Process, EachStreamIsCountedInAPlaceOfItsOwn) {
  const TemporaryFile stats("stats.json");
  Options options;
  options.environment = {{"KLAP_STATS", stats.path()}, {"KLAP_TUNE", "off"}};
  const Outcome run = run_program("launching", {"many_streams"}, options);
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ(2u, run.called("cuMemHostRegister_v2").size());
  std::set<uint64_t> words, reports;
  for (const Call& copy : run.called("cuMemcpyHtoDAsync_v2")) {
    if (std::stoull(copy["bytes"]) != 32) continue;  // a queue's heads
    words.insert(number_at(copy["data"], 0));
    reports.insert(std::stoull(copy["to"], nullptr, 16));
  }
  EXPECT_EQ(70u, words.size());
  EXPECT_EQ(70u, reports.size());
}

TEST(Process, StatisticsWithoutChildrenTakeNoPlaceForTotals) {
  const TemporaryFile stats("stats.json");
  Options options;
  options.environment = {{"KLAP_STATS", stats.path()},
                         {"KLAP_COUNT_CHILDREN", "0"},
                         {"KLAP_GUARD", "off"},
                         {"KLAP_TUNE", "off"}};
  const Outcome run = run_program("launching", {"launch_ex"}, options);
  EXPECT_EQ(0, run.status) << run.error;
  EXPECT_EQ(2, nlohmann::json::parse(read_file(stats.path()))["launches"]["redirected"]["parent"]);
  EXPECT_TRUE(run.called("cuMemHostRegister_v2").empty());
  const std::vector<Call> copies = run.called("cuMemcpyHtoDAsync_v2");
  ASSERT_EQ(1u, copies.size());
  EXPECT_EQ(0u, number_at(copies[0]["data"], 48)) << "the queue names none";
}

TEST(Process, WithoutAPlaceForTotalsNothingIsCounted) {
  for (const char* const failing : {"cuMemHostRegister_v2=2", "cuMemAlloc_v2=2@1"}) {
    const TemporaryFile stats("stats.json");
    Options options;
    options.environment = {{"KLAP_STATS", stats.path()}, {"FAKE_CUDA_FAIL", failing}};
    const Outcome run = run_program("launching", {"streams"}, options);
    EXPECT_EQ(0, run.status) << run.error;
    ASSERT_EQ(1u, run.complaints().size()) << run.error;
    EXPECT_THAT(run.complaints()[0], HasSubstr("children are not counted: there is no memory"));
    EXPECT_EQ(3, nlohmann::json::parse(read_file(stats.path()))["launches"]["redirected"]["parent"]);
  }
}

}  // namespace
}  // namespace klap::shim_test
