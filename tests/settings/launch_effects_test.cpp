// Settings of launches: granularity, launcher, order, queues, consumers, promotion, and for which kernels
// they hold.
#include "effects.h"

namespace klap::settings_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class LaunchEffects : public Effects {
 public:
  using Effect = void (LaunchEffects::*)();
  static const std::map<std::string, Effect>& table();

 protected:
  void granularity() {
    EXPECT_EQ(run().stats["sites"]["rewritten"], 2) << "one over the grid, one by warp";
    EXPECT_TRUE(run().redirected());
    EXPECT_FALSE(run({"KLAP_GRANULARITY=none"}).redirected());
  }
  void default_granularity() {
    EXPECT_FALSE(run({config("[defaults]\ngranularity = \"none\"\n")}).redirected());
  }
  void kernel_granularity() {
    EXPECT_FALSE(run({config(parent_table_ + "granularity = \"none\"\n")}).redirected());
  }
  // Whether the host waits for the parent and reads back what it recorded. The fake driver's kernels record
  // nothing, so then no consumer runs but the one in advance.
  bool reads_back(const std::string& setting) {
    EXPECT_TRUE(run({"KLAP_GRANULARITY=grid", setting}).redirected());
    return cli_test::read(path("calls")).find("cuMemcpyDtoHAsync_v2 ") != std::string::npos;
  }
  void launcher() {
    EXPECT_EQ(in_force("launcher", {}), "auto");
    EXPECT_EQ(in_force("launcher", {"KLAP_LAUNCHER=host"}), "host");
    EXPECT_EQ(in_force("launcher", {"KLAP_LAUNCHER=device"}), "device");
    EXPECT_TRUE(reads_back("KLAP_LAUNCHER=host-readback"));
    EXPECT_FALSE(reads_back("KLAP_LAUNCHER=host"));
  }
  void default_launcher() {
    EXPECT_EQ(in_force("launcher", {config("[defaults]\nlauncher = \"device\"\n")}), "device");
    EXPECT_TRUE(reads_back(config("[defaults]\nlauncher = \"host-readback\"\n")));
  }
  void kernel_launcher() {
    EXPECT_EQ(in_force("launcher", {config(parent_table_ + "launcher = \"device\"\n")}), "device");
  }
  void multiblock() {
    EXPECT_EQ(in_force("multiblock", {}), "16");
    EXPECT_EQ(in_force("multiblock", {"KLAP_MULTIBLOCK=4"}), "4");
    const Outcome outcome = run({"KLAP_GRANULARITY=multiblock", "KLAP_MULTIBLOCK=4"});
    ASSERT_EQ(outcome.launched.size(), 1);
    EXPECT_THAT(outcome.launched[0], HasSubstr("klap_multi4_"));
  }
  void default_multiblock() {
    EXPECT_EQ(in_force("multiblock", {config("[defaults]\nmultiblock = 4\n")}), "4");
  }
  void kernel_multiblock() {
    EXPECT_EQ(in_force("multiblock", {config(parent_table_ + "multiblock = \"4\"\n")}), "4");
  }
  // What becomes of children that meet where their input says.
  std::string order_of_input(const std::string& setting) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-order-tolerated-index.golden");
    const std::string file = write("marking.ptx", golden.substr(golden.find(".version")));
    return explanation({file, "--granularity", "grid"}, {setting});
  }
  void ordering() {
    EXPECT_EQ(in_force("ordering", {}), "auto");
    EXPECT_THAT(order_of_input("KLAP_ORDERING="), HasSubstr("order tolerated"));
    EXPECT_THAT(order_of_input("KLAP_ORDERING=stream"), HasSubstr("order kept"));
    EXPECT_THAT(order_of_input("KLAP_ORDERING=relaxed"), HasSubstr("order relaxed"));
  }
  void default_ordering() {
    EXPECT_THAT(order_of_input(config("[defaults]\nordering = \"stream\"\n")), HasSubstr("order kept"));
  }
  void kernel_ordering() {
    EXPECT_THAT(order_of_input(config("[[kernel]]\nname = \"*parent*\"\nordering = \"relaxed\"\n")),
                HasSubstr("order relaxed"));
    EXPECT_THAT(order_of_input(config("[[kernel]]\nname = \"other*\"\nordering = \"stream\"\n")),
                HasSubstr("order tolerated"));
  }
  // Whether the parent's launch allocated its queue itself.
  bool allocates(const std::string& setting) {
    const Outcome outcome = run({"KLAP_GRANULARITY=grid", "KLAP_LOG=info", setting});
    EXPECT_TRUE(outcome.redirected());
    const bool said = outcome.err.find("its queues are allocated for each launch") != std::string::npos;
    const std::string calls = cli_test::read(path("calls"));
    const bool did = calls.find("cuMemAllocFromPoolAsync ") != std::string::npos;
    EXPECT_EQ(said, did) << outcome.err;
    EXPECT_EQ(did, calls.find("cuMemFreeAsync ") != std::string::npos);
    return did;
  }
  void buffer() {
    EXPECT_EQ(in_force("buffer", {}), "pool");
    EXPECT_TRUE(allocates("KLAP_BUFFER=malloc"));
    EXPECT_FALSE(allocates("KLAP_BUFFER=pool"));
  }
  void default_buffer() {
    EXPECT_TRUE(allocates(config("[defaults]\nbuffer = \"malloc\"\n")));
    EXPECT_FALSE(allocates(config("[defaults]\nbuffer = \"pool\"\n")));
  }
  void kernel_buffer() {
    EXPECT_TRUE(allocates(config(parent_table_ + "buffer = \"malloc\"\n")));
    EXPECT_FALSE(allocates(config("[[kernel]]\nname = \"other*\"\nbuffer = \"malloc\"\n")));
  }
  void expect_pool_matters(const std::string& before) {
    EXPECT_GT(slices(run({config(before + "pool_bytes = \"8K\"\n")}, 100)), 10);
    EXPECT_EQ(slices(run({config(before + "pool_bytes = \"64M\"\n")}, 100)), 1);
    const Outcome tight = run({config(before + "pool_bytes = 512\n")}, 100);
    EXPECT_FALSE(tight.redirected());
    EXPECT_EQ(tight.stats["launches"]["left"]["_Z6parentPii"]["queue over pool_bytes"], 1);
  }
  void pool_bytes() {
    EXPECT_GT(slices(run({"KLAP_POOL_BYTES=8K"}, 100)), 10);
    EXPECT_EQ(slices(run({"KLAP_POOL_BYTES=64M"}, 100)), 1);
    EXPECT_FALSE(run({"KLAP_POOL_BYTES=512"}, 100).redirected());
  }
  void default_pool_bytes() { expect_pool_matters("[defaults]\n"); }
  void kernel_pool_bytes() { expect_pool_matters(parent_table_); }
  void total_bytes() {
    const Outcome outcome = run({"KLAP_TOTAL_BYTES=512"}, 100);
    EXPECT_FALSE(outcome.redirected());
    EXPECT_EQ(outcome.stats["launches"]["left"]["_Z6parentPii"]["queues over total_bytes"], 1);
    EXPECT_GT(slices(run({"KLAP_TOTAL_BYTES=64K"}, 100)), 1);
    EXPECT_EQ(slices(run({"KLAP_TOTAL_BYTES=64M"}, 100)), 1);
  }
  void default_total_bytes() {
    EXPECT_GT(slices(run({config("[defaults]\ntotal_bytes = \"64K\"\n")}, 100)), 1);
    EXPECT_EQ(slices(run({config("[defaults]\ntotal_bytes = \"64M\"\n")}, 100)), 1);
  }
  // The consumer's launch behind the parent's.
  void expect_consumer(const std::string& setting, int smaller_grid, int block) {
    const Outcome before = run({"KLAP_GRANULARITY=grid"}), after = run({"KLAP_GRANULARITY=grid", setting});
    ASSERT_EQ(before.launched.size(), after.launched.size());
    EXPECT_THAT(after.launched.back(), HasSubstr("klap_run_"));
    EXPECT_EQ(before.grids.back() / smaller_grid, after.grids.back());
    EXPECT_EQ(after.blocks.back(), block);
  }
  void concurrency() { expect_consumer("KLAP_CONCURRENCY=16", 16, 256); }
  void default_concurrency() { expect_consumer(config("[defaults]\nconcurrency = 4\n"), 4, 256); }
  void kernel_concurrency() { expect_consumer(config(parent_table_ + "concurrency = \"2\"\n"), 2, 256); }
  // Blocks of half the size: twice as many fit the device.
  void expect_threads(const std::string& setting) {
    const Outcome outcome = run({"KLAP_GRANULARITY=grid", setting});
    EXPECT_THAT(outcome.launched.back(), HasSubstr("klap_run_"));
    EXPECT_EQ(outcome.blocks.back(), 128);
  }
  void consumer_threads() {
    expect_threads("KLAP_CONSUMER_THREADS=128");
    const Outcome odd = run({"KLAP_LOG=info", "KLAP_CONSUMER_THREADS=100"});
    EXPECT_THAT(odd.err,
                HasSubstr("consumer_threads 100 is ignored: it is no multiple of the 32 threads of a "
                          "child's block"));
    EXPECT_TRUE(odd.redirected());
  }
  void default_consumer_threads() { expect_threads(config("[defaults]\nconsumer_threads = 128\n")); }
  void kernel_consumer_threads() { expect_threads(config(parent_table_ + "consumer_threads = 128\n")); }
  // The same of children of few threads and of none.
  void expect_threshold(const std::string& setting, const std::string& text) {
    const std::string expected =
        "flattened: threads with i < argument 2 of child (int), 256 to a consumer block, or in blocks where "
        "they are large" +
        text;
    EXPECT_THAT(flattening(setting), AllOf(HasSubstr("1 rewritten"), HasSubstr(expected))) << setting;
  }
  void threshold() {
    expect_threshold("KLAP_THRESHOLD=off", ", 12 argument bytes");
    expect_threshold("KLAP_THRESHOLD=auto", ", children without threads skipped, 12 argument bytes");
    expect_threshold("KLAP_THRESHOLD=0", ", children without threads skipped, 12 argument bytes");
    expect_threshold("KLAP_THRESHOLD=8", ", children of up to 8 threads run by the launching thread, 12 ");
    expect_threshold("KLAP_THRESHOLD=9", ", children of up to 9 threads run by the launching warp, 12 ");
  }
  void default_threshold() {
    expect_threshold(config("[defaults]\nthreshold = 1\n"),
                     ", children of up to 1 thread run by the launching ");
    expect_threshold(config("[defaults]\nthreshold = \"off\"\n"), ", 12 argument bytes");
  }
  void kernel_threshold() {
    const std::string parent = "[[kernel]]\nname = \"parent*\"\n";
    expect_threshold(config(parent + "threshold = 32\n"),
                     ", children of up to 32 threads run by the launching ");
    expect_threshold(config(parent + "child = \"child*\"\nthreshold = 4\n"),
                     ", children of up to 4 threads ");
    expect_threshold(config(parent + "child = \"other*\"\nthreshold = 4\n"), ", children without threads ");
  }
  // What explain says of a program whose kernel takes memory.
  void expect_aggregated_memory(const std::string& setting, const std::string& expected) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-device-malloc.golden");
    const std::string file = write("taking.ptx", golden.substr(golden.find(".version")));
    const std::string text = explanation({file}, {setting});
    EXPECT_THAT(text, HasSubstr("1 rewritten")) << setting;
    const std::string how = "device memory is aggregated ";
    const size_t at = text.find(how);
    const size_t begin = at == std::string::npos ? text.size() : at + how.size();
    EXPECT_EQ(expected, text.substr(begin, text.find(',', begin) - begin)) << text;
  }
  void aggregate_malloc() {
    expect_aggregated_memory("KLAP_AGGREGATE_MALLOC=warp", "by warp");
    expect_aggregated_memory("KLAP_AGGREGATE_MALLOC=chunks", "in chunks");
    expect_aggregated_memory("KLAP_AGGREGATE_MALLOC=off", "");
    expect_aggregated_memory("KLAP_AGGREGATE_MALLOC=", "");
  }
  void default_aggregate_malloc() {
    expect_aggregated_memory(config("[defaults]\naggregate_malloc = \"warp\"\n"), "by warp");
    expect_aggregated_memory(config("[defaults]\naggregate_malloc = \"chunks\"\n"), "in chunks");
    expect_aggregated_memory(config("[defaults]\naggregate_malloc = \"off\"\n"), "");
  }
  // The launch that became of a chain's.
  Outcome run_chain(const std::string& setting, const std::string& kernel = "_Z5chainPii") {
    return run_kernel("chains.fatbin", kernel, {setting}, 1);
  }
  const std::string chain_table_ = "[[kernel]]\nname = \"*chain(*\"\n";
  void expect_promotion(const std::string& given, const std::string& mode) {
    const Outcome outcome = run_chain(given);
    ASSERT_FALSE(outcome.launched.empty());
    EXPECT_THAT(outcome.launched.back(), AllOf(HasSubstr("_Z5chainB"), HasSubstr("klap_" + mode + "_")))
        << given;
  }
  void promotion() {
    expect_promotion("KLAP_PROMOTION=P", "P");
    expect_promotion("KLAP_PROMOTION=PA", "PA");
    expect_promotion("KLAP_PROMOTION=PO", "PO");
    expect_promotion("KLAP_PROMOTION=PAO", "PAO");
    expect_promotion("KLAP_PROMOTION=auto", "lookback");
    const Outcome none = run_chain("KLAP_PROMOTION=none");
    EXPECT_THAT(none.stats["modules"][0]["sites"].dump(), Not(HasSubstr("\"promotion\"")));
  }
  void default_promotion() {
    expect_promotion(config("[defaults]\npromotion = \"PA\"\n"), "PA");
    expect_promotion(config("[defaults]\npromotion = \"PAO\"\n"), "PAO");
  }
  void kernel_promotion() { expect_promotion(config(chain_table_ + "promotion = \"PAO\"\n"), "PAO"); }
  void expect_pool(const std::string& setting, int blocks) {
    const Outcome outcome = run_chain(setting);
    ASSERT_FALSE(outcome.grids.empty());
    EXPECT_EQ(outcome.grids.back(), blocks) << setting;
  }
  void pool() {
    expect_pool("KLAP_POOL=5", 5);
    expect_pool("KLAP_POOL=auto", 132 * 2048 / 64);
    expect_pool("KLAP_PROMOTION=PA", 8);
    expect_pool("KLAP_PROMOTION=P", 1);
  }
  void default_pool() { expect_pool(config("[defaults]\npool = 6\n"), 6); }
  void kernel_pool() { expect_pool(config(chain_table_ + "pool = 7\n"), 7); }
  // Where what comes before the launch may be read, nothing overlaps.
  void expect_assumption(const std::string& setting, bool overlaps) {
    const Outcome outcome = run_chain(setting, "_Z13writing_chainPii");
    ASSERT_FALSE(outcome.launched.empty());
    const bool waits = outcome.launched.back().find("klap_PA_") != std::string::npos;
    EXPECT_EQ(waits, !overlaps) << outcome.launched.back();
    EXPECT_THAT(outcome.launched.back(), HasSubstr("klap_"));
  }
  void assume() {
    expect_assumption("KLAP_ASSUME=none", false);
    expect_assumption("KLAP_ASSUME=noalias", true);
    expect_assumption("KLAP_ASSUME=reassociate", false);
    expect_assumption("KLAP_ASSUME=all", true);
  }
  void default_assume() { expect_assumption(config("[defaults]\nassume = \"noalias\"\n"), true); }
  void kernel_assume() { expect_assumption(config(chain_table_ + "assume = \"noalias\"\n"), true); }
  void kernel_child() {
    const auto table = [&](const std::string& child) {
      return config(parent_table_ + "child = \"" + child + "\"\ngranularity = \"none\"\n");
    };
    EXPECT_FALSE(run({table("child(*")}).redirected());
    EXPECT_FALSE(run({table("_Z5child*")}).redirected());
    EXPECT_TRUE(run({table("other*")}).redirected());
  }
  void kernel_name() {
    EXPECT_TRUE(run({config("[[kernel]]\nname = \"other*\"\ngranularity = \"none\"\n")}).redirected());
    EXPECT_FALSE(run({config("[[kernel]]\nname = \"_Z6par*\"\ngranularity = \"none\"\n")}).redirected());
  }
};

const std::map<std::string, LaunchEffects::Effect>& LaunchEffects::table() {
  static const std::map<std::string, Effect> effects{
      {"KLAP_GRANULARITY", &LaunchEffects::granularity},
      {"[defaults] granularity", &LaunchEffects::default_granularity},
      {"[[kernel]] granularity", &LaunchEffects::kernel_granularity},
      {"KLAP_LAUNCHER", &LaunchEffects::launcher},
      {"[defaults] launcher", &LaunchEffects::default_launcher},
      {"[[kernel]] launcher", &LaunchEffects::kernel_launcher},
      {"KLAP_MULTIBLOCK", &LaunchEffects::multiblock},
      {"[defaults] multiblock", &LaunchEffects::default_multiblock},
      {"[[kernel]] multiblock", &LaunchEffects::kernel_multiblock},
      {"KLAP_ORDERING", &LaunchEffects::ordering},
      {"[defaults] ordering", &LaunchEffects::default_ordering},
      {"[[kernel]] ordering", &LaunchEffects::kernel_ordering},
      {"KLAP_BUFFER", &LaunchEffects::buffer},
      {"[defaults] buffer", &LaunchEffects::default_buffer},
      {"[[kernel]] buffer", &LaunchEffects::kernel_buffer},
      {"KLAP_POOL_BYTES", &LaunchEffects::pool_bytes},
      {"[defaults] pool_bytes", &LaunchEffects::default_pool_bytes},
      {"[[kernel]] pool_bytes", &LaunchEffects::kernel_pool_bytes},
      {"KLAP_TOTAL_BYTES", &LaunchEffects::total_bytes},
      {"[defaults] total_bytes", &LaunchEffects::default_total_bytes},
      {"KLAP_CONCURRENCY", &LaunchEffects::concurrency},
      {"[defaults] concurrency", &LaunchEffects::default_concurrency},
      {"[[kernel]] concurrency", &LaunchEffects::kernel_concurrency},
      {"KLAP_CONSUMER_THREADS", &LaunchEffects::consumer_threads},
      {"[defaults] consumer_threads", &LaunchEffects::default_consumer_threads},
      {"[[kernel]] consumer_threads", &LaunchEffects::kernel_consumer_threads},
      {"KLAP_THRESHOLD", &LaunchEffects::threshold},
      {"[defaults] threshold", &LaunchEffects::default_threshold},
      {"[[kernel]] threshold", &LaunchEffects::kernel_threshold},
      {"KLAP_AGGREGATE_MALLOC", &LaunchEffects::aggregate_malloc},
      {"[defaults] aggregate_malloc", &LaunchEffects::default_aggregate_malloc},
      {"KLAP_PROMOTION", &LaunchEffects::promotion},
      {"[defaults] promotion", &LaunchEffects::default_promotion},
      {"[[kernel]] promotion", &LaunchEffects::kernel_promotion},
      {"KLAP_POOL", &LaunchEffects::pool},
      {"[defaults] pool", &LaunchEffects::default_pool},
      {"[[kernel]] pool", &LaunchEffects::kernel_pool},
      {"KLAP_ASSUME", &LaunchEffects::assume},
      {"[defaults] assume", &LaunchEffects::default_assume},
      {"[[kernel]] assume", &LaunchEffects::kernel_assume},
      {"[[kernel]] child", &LaunchEffects::kernel_child},
      {"[[kernel]] name", &LaunchEffects::kernel_name},
  };
  return effects;
}

TEST_P(LaunchEffects, Show) { (this->*table().at(GetParam()))(); }

INSTANTIATE_TEST_SUITE_P(Launches, LaunchEffects, testing::ValuesIn(places_of(LaunchEffects::table())),
                         name_of_place);

}  // namespace

std::vector<std::string> launch_places() { return places_of(LaunchEffects::table()); }

}  // namespace klap::settings_test
