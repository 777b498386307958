// Every setting of the table does something: one test for each place it can be given in (a variable,
// [defaults],
// [[kernel]]), which shows a program or a tool behave differently for it. A new row without a test here
// fails.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "preloaded.h"
#include "settings/table.h"

namespace klap::settings_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// "KLAP_LOG", "[defaults] granularity", "[[kernel]] name".
std::vector<std::string> all_places() {
  std::vector<std::string> places;
  for (const settings::Setting& setting : settings::table()) {
    const bool is_switch = setting.kind == settings::Kind::Optimisation;
    const std::string key = (is_switch ? "optimise " : "") + std::string(setting.key);
    if (is_switch) places.push_back("KLAP_OPTIMISE " + std::string(setting.key));
    if (!setting.variable.empty()) places.emplace_back(setting.variable);
    for (const settings::Section section : setting.sections) {
      places.push_back(std::string(to_string(section)) + " " + key);
    }
  }
  return places;
}

class Effects : public Preloaded, public testing::WithParamInterface<std::string> {
 public:
  using Effect = void (Effects::*)();
  static const std::map<std::string, Effect>& table();

 protected:
  const std::string parent_table_ = "[[kernel]]\nname = \"parent(*\"\n";

  // The value in force for the parent, as klap-ptx says.
  std::string in_force(const std::string& key, const std::vector<std::string>& environment) {
    const auto result = klap_ptx({"config", "--json", "_Z6parentPii"}, environment);
    const nlohmann::json printed = result.json();
    for (const nlohmann::json& row : printed["settings"]) {
      if (row["key"] == key) return row["value"];
    }
    return "";
  }

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
    EXPECT_THAT(outcome.launched[0], HasSubstr("$klap_multi4_"));
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
    return klap_ptx({"explain", file, "--granularity", "grid"}, {setting}).out;
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
  // In how many slices the parent's one launch ran.
  static int slices(const Outcome& outcome) {
    EXPECT_TRUE(outcome.redirected());
    const nlohmann::json& sliced = outcome.stats["launches"]["sliced"];
    return sliced.contains("_Z6parentPii") ? sliced["_Z6parentPii"]["slices"].get<int>() : 1;
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
    EXPECT_THAT(after.launched.back(), HasSubstr("$klap_run_"));
    EXPECT_EQ(before.grids.back() / smaller_grid, after.grids.back());
    EXPECT_EQ(after.blocks.back(), block);
  }
  void concurrency() { expect_consumer("KLAP_CONCURRENCY=16", 16, 256); }
  void default_concurrency() { expect_consumer(config("[defaults]\nconcurrency = 4\n"), 4, 256); }
  void kernel_concurrency() { expect_consumer(config(parent_table_ + "concurrency = \"2\"\n"), 2, 256); }
  // Blocks of half the size: twice as many fit the device.
  void expect_threads(const std::string& setting) {
    const Outcome outcome = run({"KLAP_GRANULARITY=grid", setting});
    EXPECT_THAT(outcome.launched.back(), HasSubstr("$klap_run_"));
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
  // What a grid's parts and their consumers take as the queue: each consumer the same as its part.
  void expect_heads(const std::string& setting, size_t heads) {
    EXPECT_GT(slices(run({"KLAP_GRANULARITY=grid", "KLAP_POOL_BYTES=8K", setting}, 100)), 3);
    std::vector<std::string> parts, queues;
    const std::string calls = cli_test::read(path("calls"));
    for (size_t at = 0; (at = calls.find(" params=", at)) != std::string::npos; ++at) {
      const std::string line =
          calls.substr(calls.rfind('\n', at) + 1, calls.find('\n', at) - calls.rfind('\n', at));
      const std::string params = calls.substr(at + 8, calls.find_first_of(" \n", at + 8) - at - 8);
      (line.find("$klap_run_") == std::string::npos ? parts : queues).push_back(params);
    }
    queues.erase(queues.begin(),
                 queues.end() - static_cast<std::ptrdiff_t>(parts.size()));  // it is tried before
    for (size_t i = 0; i < parts.size(); ++i) {
      EXPECT_THAT(parts[i], HasSubstr(queues[i])) << i;
      EXPECT_EQ(queues[i], queues[i % heads]) << i;
    }
    EXPECT_EQ(heads, std::set(queues.begin(), queues.end()).size());
  }
  void double_buffer() {
    expect_heads("KLAP_OPTIMISE=+double_buffer", 2);
    expect_heads("KLAP_OPTIMISE=-double_buffer", 1);
  }
  void default_double_buffer() {
    expect_heads(config("[defaults]\noptimise = \"+double_buffer\"\n"), 2);
    expect_heads(config("[defaults]\noptimise = \"-double_buffer\"\n"), 1);
  }
  void kernel_double_buffer() {
    expect_heads(config(parent_table_ + "optimise = \"+double_buffer\"\n"), 2);
    expect_heads(config(parent_table_ + "optimise = \"-double_buffer\"\n"), 1);
    expect_heads(config("[[kernel]]\nname = \"other*\"\noptimise = \"-double_buffer\"\n"), 2);
  }
  // Whether the consumer of a child that is run thread by thread has the name of one that holds arguments.
  void expect_held(const std::string& setting, bool expected = true) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-error-query.golden");
    const std::string file = write("querying.ptx", golden.substr(golden.find(".version")));
    EXPECT_EQ(klap_ptx({"rewrite", file, "-o", path("held.ptx")}, {setting}).exit_code, 0);
    const std::string rewritten = cli_test::read(path("held.ptx"));
    EXPECT_THAT(rewritten, HasSubstr("_flat256")) << setting;
    EXPECT_EQ(expected, rewritten.find("_held(") != std::string::npos) << setting;
  }
  void preload_arguments() {
    expect_held("KLAP_OPTIMISE=+preload_arguments");
    expect_held("KLAP_OPTIMISE=-preload_arguments", false);
  }
  void default_preload_arguments() { expect_held(config("[defaults]\noptimise = \"+preload_arguments\"\n")); }
  void kernel_preload_arguments() {
    expect_held(config("[[kernel]]\nname = \"*\"\noptimise = \"+preload_arguments\"\n"));
  }
  // What explain says of a child that sums along a row.
  void expect_unrolled(const std::string& setting, const std::string& times) {
    const std::string file = KLAP_CASE_PTX_DIR "/straight_loops.ptx";
    const std::string said = klap_ptx({"explain", file}, {setting}).out;
    const std::string text = "a loop unrolled ";
    EXPECT_EQ(!times.empty(), said.find(text) != std::string::npos) << said;
    EXPECT_THAT(said, HasSubstr(times.empty() ? "rewritten" : text + times + " times"));
  }
  void unroll() {
    expect_unrolled("KLAP_OPTIMISE=", "4");
    expect_unrolled("KLAP_OPTIMISE=+unroll", "4");
    expect_unrolled("KLAP_OPTIMISE=-unroll", "");
    expect_unrolled("KLAP_OPTIMISE=unroll=2", "2");
    expect_unrolled("KLAP_OPTIMISE=unroll=8", "8");
  }
  void default_unroll() { expect_unrolled(config("[defaults]\noptimise = \"-unroll\"\n"), ""); }
  void kernel_unroll() {
    expect_unrolled(config("[[kernel]]\nname = \"*\"\noptimise = \"unroll=2\"\n"), "2");
    expect_unrolled(config("[[kernel]]\nname = \"other*\"\noptimise = \"unroll=2\"\n"), "4");
  }
  // The name of a consumer for packed records ends in that of their layout.
  void expect_not_packed(const std::string& setting) {
    const auto consumer = [&](const std::string& given) {
      return run({"KLAP_GRANULARITY=grid", given}).launched.back();
    };
    const std::string packed = consumer("KLAP_OPTIMISE=-occupancy");
    ASSERT_THAT(packed, testing::MatchesRegex(".*_1d_p[0-9a-f]+"));
    EXPECT_EQ(consumer(setting), packed.substr(0, packed.rfind("_p")));
  }
  const std::string unpacked_ = "-occupancy,-pack_records";
  void pack_records() { expect_not_packed("KLAP_OPTIMISE=" + unpacked_); }
  void default_pack_records() { expect_not_packed(config("[defaults]\noptimise = \"" + unpacked_ + "\"\n")); }
  void kernel_pack_records() {
    expect_not_packed(config(parent_table_ + "optimise = \"" + unpacked_ + "\"\n"));
  }
  // Several of them, of which a kernel's table switches some and the defaults others.
  void optimise() {
    EXPECT_EQ(in_force("flatten", {"KLAP_OPTIMISE=-flatten,unroll=2"}), "off");
    EXPECT_EQ(in_force("unroll", {"KLAP_OPTIMISE=-flatten,unroll=2"}), "2");
    const Outcome wrong = run({"KLAP_OPTIMISE=-flaten"});
    EXPECT_THAT(wrong.err, HasSubstr("unknown optimisation 'flaten' (fix: did you mean 'flatten'?)"));
    EXPECT_TRUE(wrong.redirected());
    EXPECT_THAT(run({"KLAP_OPTIMISE=unroll=3"}).err, HasSubstr("optimisation unroll cannot be '3'"));
  }
  void default_optimise() {
    const std::string file = config("[defaults]\noptimise = \"-flatten,-occupancy\"\n");
    EXPECT_EQ(in_force("flatten", {file}), "off");
    EXPECT_EQ(in_force("flatten", {file, "KLAP_OPTIMISE=+flatten"}), "on");
    EXPECT_EQ(in_force("occupancy", {file, "KLAP_OPTIMISE=+flatten"}), "off");
    EXPECT_THAT(run({config("[defaults]\nflatten = \"off\"\n")}).err,
                HasSubstr("unknown key 'flatten' in [defaults] (fix: write optimise"));
  }
  void kernel_optimise() {
    const std::string file = config("[defaults]\noptimise = \"-flatten,-occupancy\"\n" + parent_table_ +
                                    "optimise = \"+occupancy\"\n");
    EXPECT_EQ(in_force("flatten", {file}), "off");
    EXPECT_EQ(in_force("occupancy", {file}), "on");
  }
  // What explain says of a child in a grid-stride loop.
  void expect_rounds(const std::string& setting, const std::string& text) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-grid-stride.golden");
    const std::string file = write("striding.ptx", golden.substr(golden.find(".version")));
    EXPECT_THAT(klap_ptx({"explain", file, "--ordering", "relaxed"}, {setting}).out, HasSubstr(text))
        << setting;
  }
  const std::string split_ = "flattened: threads with i < p[16], iterations redistributed over threads";
  const std::string kept_ = "not flattened: its threads loop";
  void split_iterations() {
    expect_rounds("KLAP_OPTIMISE=", split_);
    expect_rounds("KLAP_OPTIMISE=-split_iterations", kept_);
    expect_rounds("KLAP_OPTIMISE=+split_iterations", split_);
    expect_rounds("KLAP_OPTIMISE=split_iterations=all", split_);
  }
  void default_split_iterations() {
    expect_rounds(config("[defaults]\noptimise = \"-split_iterations\"\n"), kept_);
  }
  void kernel_split_iterations() {
    expect_rounds(config("[[kernel]]\nname = \"parent*\"\noptimise = \"-split_iterations\"\n"), kept_);
    expect_rounds(config("[[kernel]]\nname = \"other*\"\noptimise = \"-split_iterations\"\n"), split_);
  }
  // Whether a consumer is launched as the dependent of its parent.
  bool launches_dependents(const std::string& setting) {
    EXPECT_TRUE(run({"KLAP_GRANULARITY=grid", setting}).redirected());
    return cli_test::read(path("calls")).find(" attributes=6=1; ") != std::string::npos;
  }
  void dependent_launch() {
    EXPECT_TRUE(launches_dependents("KLAP_OPTIMISE=+dependent_launch"));
    EXPECT_FALSE(launches_dependents("KLAP_OPTIMISE=-dependent_launch"));
  }
  void default_dependent_launch() {
    EXPECT_TRUE(launches_dependents(config("[defaults]\noptimise = \"+dependent_launch\"\n")));
    EXPECT_FALSE(launches_dependents(config("[defaults]\noptimise = \"-dependent_launch\"\n")));
  }
  void kernel_dependent_launch() {
    EXPECT_FALSE(launches_dependents(config(parent_table_ + "optimise = \"-dependent_launch\"\n")));
    EXPECT_TRUE(
        launches_dependents(config("[[kernel]]\nname = \"other*\"\noptimise = \"-dependent_launch\"\n")));
  }
  // What explain says of a program whose child begins with a comparison.
  std::string flattening(const std::string& setting) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-error-query.golden");
    const std::string file = write("guarded.ptx", golden.substr(golden.find(".version")));
    return klap_ptx({"explain", file}, {setting}).out;
  }
  void expect_not_flattened(const std::string& setting) {
    EXPECT_THAT(flattening("KLAP_OPTIMISE="), HasSubstr("flattened: threads with i < p[8]"));
    EXPECT_THAT(flattening(setting), AllOf(HasSubstr("1 rewritten"), Not(HasSubstr("flattened"))));
  }
  void flatten() { expect_not_flattened("KLAP_OPTIMISE=-flatten"); }
  void default_flatten() { expect_not_flattened(config("[defaults]\noptimise = \"-flatten\"\n")); }
  void kernel_flatten() {
    expect_not_flattened(config("[[kernel]]\nname = \"parent*\"\noptimise = \"-flatten\"\n"));
  }
  // The same of children of few threads and of none.
  void expect_threshold(const std::string& setting, const std::string& text) {
    const std::string expected = "flattened: threads with i < p[8], 256 to a consumer block" + text;
    EXPECT_THAT(flattening(setting), AllOf(HasSubstr("1 rewritten"), HasSubstr(expected))) << setting;
  }
  void threshold() {
    expect_threshold("KLAP_THRESHOLD=off", ", 12 argument bytes");
    expect_threshold("KLAP_THRESHOLD=auto", ", children without threads skipped, 12 argument bytes");
    expect_threshold("KLAP_THRESHOLD=0", ", children without threads skipped, 12 argument bytes");
    expect_threshold("KLAP_THRESHOLD=8", ", children of up to 8 threads run by the launching thread, 12 ");
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
  void expect_aggregated_memory(const std::string& setting, bool expected) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-device-malloc.golden");
    const std::string file = write("taking.ptx", golden.substr(golden.find(".version")));
    const std::string text = klap_ptx({"explain", file}, {setting}).out;
    EXPECT_THAT(text, HasSubstr("1 rewritten")) << setting;
    EXPECT_EQ(expected, text.find("device memory is aggregated by warp") != std::string::npos) << text;
  }
  void aggregate_malloc() {
    expect_aggregated_memory("KLAP_AGGREGATE_MALLOC=warp", true);
    expect_aggregated_memory("KLAP_AGGREGATE_MALLOC=off", false);
    expect_aggregated_memory("KLAP_AGGREGATE_MALLOC=", false);
  }
  void default_aggregate_malloc() {
    expect_aggregated_memory(config("[defaults]\naggregate_malloc = \"warp\"\n"), true);
    expect_aggregated_memory(config("[defaults]\naggregate_malloc = \"off\"\n"), false);
  }
  // The launch that became of a chain's.
  Outcome run_chain(const std::string& setting, const std::string& kernel = "_Z5chainPii") {
    return run_kernel("chains.fatbin", kernel, {setting}, 1);
  }
  const std::string chain_table_ = "[[kernel]]\nname = \"*chain(*\"\n";
  void expect_promotion(const std::string& given, const std::string& mode) {
    const Outcome outcome = run_chain(given);
    ASSERT_FALSE(outcome.launched.empty());
    EXPECT_THAT(outcome.launched.back(), HasSubstr("_Z5chainPii$klap_" + mode + "_")) << given;
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
  // What explain says of a chain whose links are told apart by a few registers.
  void expect_no_batches(const std::string& setting) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-chain-carried.golden");
    const std::string file = write("carried.ptx", golden.substr(golden.find(".version")));
    const std::string explained = klap_ptx({"explain", file}, {setting}).out;
    EXPECT_THAT(klap_ptx({"explain", file}, {"KLAP_OPTIMISE="}).out,
                HasSubstr("links side by side in a block"));
    EXPECT_THAT(explained, AllOf(HasSubstr("look-back"), Not(HasSubstr("side by side"))));
  }
  void expect_single_blocks(const std::string& setting) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-child-shared-memory.golden");
    const std::string file = write("shared.ptx", golden.substr(golden.find(".version")));
    EXPECT_THAT(klap_ptx({"explain", file}, {"KLAP_OPTIMISE="}).out,
                HasSubstr("8 to a consumer block in full warps"));
    EXPECT_THAT(klap_ptx({"explain", file}, {setting}).out,
                HasSubstr("1 to a consumer block with a barrier after each"));
  }
  void pack_blocks() { expect_single_blocks("KLAP_OPTIMISE=-pack_blocks"); }
  void default_pack_blocks() { expect_single_blocks(config("[defaults]\noptimise = \"-pack_blocks\"\n")); }
  void kernel_pack_blocks() {
    expect_single_blocks(config("[[kernel]]\nname = \"*parent*\"\noptimise = \"-pack_blocks\"\n"));
  }
  void expect_single_items(const std::string& setting) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-recursion.golden");
    const std::string file = write("recursion.ptx", golden.substr(golden.find(".version")));
    const std::string explained = klap_ptx({"explain", file, "--ordering", "relaxed"}, {setting}).out;
    EXPECT_THAT(klap_ptx({"explain", file, "--ordering", "relaxed"}, {"KLAP_OPTIMISE="}).out,
                HasSubstr("run by a persistent consumer, up to 8 items"));
    EXPECT_THAT(explained, AllOf(HasSubstr("run by a persistent consumer"), Not(HasSubstr(" items"))));
  }
  void batch_items() { expect_single_items("KLAP_OPTIMISE=-batch_items"); }
  void default_batch_items() { expect_single_items(config("[defaults]\noptimise = \"-batch_items\"\n")); }
  void kernel_batch_items() {
    expect_single_items(config("[[kernel]]\nname = \"parent*\"\noptimise = \"-batch_items\"\n"));
  }
  // Of the consumer that runs a child, of a persistent one, and of a chain.
  void expect_no_room(const std::string& setting) {
    for (const char* const name :
         {"rewritten-child-unites", "rewritten-recursion", "rewritten-chain-carried"}) {
      const std::string golden = cli_test::read(std::string(KLAP_GOLDEN_DIR "/") + name + ".golden");
      const std::string ptx = golden.substr(golden.find(".version"));
      const std::string file = write("occupancy.ptx", ptx.substr(0, ptx.find("\n---")));
      const std::string to = file + ".rewritten.ptx";
      EXPECT_EQ(0,
                klap_ptx({"rewrite", file, "-o", to, "--ordering", "relaxed"}, {"KLAP_OPTIMISE="}).exit_code)
          << name;
      EXPECT_THAT(cli_test::read(to), HasSubstr(".minnctapersm")) << name;
      EXPECT_EQ(0, klap_ptx({"rewrite", file, "-o", to, "--ordering", "relaxed"}, {setting}).exit_code)
          << name;
      EXPECT_THAT(cli_test::read(to), Not(HasSubstr(".minnctapersm"))) << name;
    }
  }
  void occupancy() { expect_no_room("KLAP_OPTIMISE=-occupancy"); }
  void default_occupancy() { expect_no_room(config("[defaults]\noptimise = \"-occupancy\"\n")); }
  void kernel_occupancy() { expect_no_room(config("[[kernel]]\nname = \"*\"\noptimise = \"-occupancy\"\n")); }
  void batch_links() { expect_no_batches("KLAP_OPTIMISE=-batch_links"); }
  void default_batch_links() { expect_no_batches(config("[defaults]\noptimise = \"-batch_links\"\n")); }
  void kernel_batch_links() {
    expect_no_batches(config("[[kernel]]\nname = \"*chosen*\"\noptimise = \"-batch_links\"\n"));
  }
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
    const bool waits = outcome.launched.back().find("$klap_PA_") != std::string::npos;
    EXPECT_EQ(waits, !overlaps) << outcome.launched.back();
    EXPECT_THAT(outcome.launched.back(), HasSubstr("$klap_"));
  }
  void assume() {
    expect_assumption("KLAP_ASSUME=none", false);
    expect_assumption("KLAP_ASSUME=noalias", true);
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
  void config_file() {
    EXPECT_FALSE(run({config("[defaults]\ngranularity = \"none\"\n")}).redirected());
    EXPECT_THAT(run({"KLAP_CONFIG=" + path("absent.toml")}).err, HasSubstr("absent.toml: cannot open"));
  }
  void log_level() {
    EXPECT_EQ(run().err, "");
    EXPECT_THAT(run({"KLAP_LOG=info"}).err,
                HasSubstr("parent(int*, int) launches child(int*, int): aggregated at grid"));
    EXPECT_THAT(run({"KLAP_LOG=info", "KLAP_GRANULARITY=grid"}).err, HasSubstr("left: block-not-constant"));
  }
  void log_file() {
    const std::vector<std::string> settings{"KLAP_LOG=info", "KLAP_LOG_FILE=" + path("log-%p.txt")};
    EXPECT_EQ(run(settings).err, "");
    run({"KLAP_LOG=info", "KLAP_GRANULARITY=grid", "KLAP_LOG_FILE=" + path("log.txt")});
    const size_t once = cli_test::read(path("log.txt")).size();
    run({"KLAP_LOG=info", "KLAP_GRANULARITY=grid", "KLAP_LOG_FILE=" + path("log.txt")});
    EXPECT_GE(cli_test::read(path("log.txt")).size(), 2 * once - 20) << "appended";
    EXPECT_THAT(cli_test::read(path("log.txt")), HasSubstr("left: block-not-constant"));
    size_t with_process = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path(""))) {
      const std::string name = entry.path().filename();
      if (name.starts_with("log-") && name != "log-%p.txt") ++with_process;
    }
    EXPECT_EQ(with_process, 1);
  }
  void disable() {
    const Outcome outcome = run({"KLAP_DISABLE=1"});
    EXPECT_EQ(outcome.launched, std::vector<std::string>{"_Z6parentPii"});
    EXPECT_EQ(outcome.stats, nullptr);
  }
  std::string cache_use(const std::string& setting) {
    return run({setting}).stats["modules"][0]["cache"].get<std::string>();
  }
  void cache_dir() {
    EXPECT_EQ(cache_use("KLAP_CACHE_DIR=" + path("kept")), "miss");
    EXPECT_FALSE(std::filesystem::is_empty(path("kept")));
    EXPECT_EQ(cache_use("KLAP_CACHE_DIR=" + path("kept")), "hit");
    EXPECT_EQ(cache_use("KLAP_CACHE_DIR=" + path("other")), "miss");
  }
  void cache_max_size() {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(cache_use("KLAP_CACHE_MAX_SIZE=1K"), "miss") << "does not fit";
    EXPECT_EQ(cache_use("KLAP_CACHE_MAX_SIZE=8M"), "miss");
    EXPECT_EQ(cache_use("KLAP_CACHE_MAX_SIZE=8M"), "hit");
  }
  void cache_disable() {
    EXPECT_EQ(cache_use("KLAP_CACHE_DISABLE=0"), "miss");
    EXPECT_EQ(cache_use("KLAP_CACHE_DISABLE=1"), "off");
    EXPECT_EQ(cache_use("KLAP_CACHE_DISABLE=0"), "hit");
  }
  void dump_dir() {
    run({"KLAP_DUMP_DIR=" + path("dump")});
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path("dump"))) {
      names.push_back(entry.path().filename());
    }
    EXPECT_THAT(names, testing::IsSupersetOf({"unit0.ptx", "linked.cubin"}));
  }
  void stats() {
    EXPECT_EQ(run({"KLAP_STATS="}).stats, nullptr);
    const Outcome outcome = run({"KLAP_GRANULARITY=grid"});
    EXPECT_EQ(outcome.stats["launches"]["redirected"]["_Z6parentPii"], 1);
    EXPECT_EQ(outcome.stats["sites"]["left"]["block-not-constant"], 1);
  }
  void linker() {
    EXPECT_EQ(run({"KLAP_LINKER=nvjitlink", "KLAP_GRANULARITY=grid"}).stats["modules"][0]["how"],
              "rewritten");
    const std::string how = run({"KLAP_LINKER=driver", "KLAP_GRANULARITY=grid"}).stats["modules"][0]["how"];
    EXPECT_THAT(how, testing::HasSubstr("the driver's linker")) << "this driver cannot link";
  }
  // The launches that are left are still there, but not CUDA's functions for them.
  void device_runtime() {
    const auto image = [&](const std::string& setting) {
      run({"KLAP_DUMP_DIR=" + path(setting), "KLAP_LOG=warn", setting});
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path(setting)))
        if (entry.path().filename() == "linked.cubin") return cli_test::read(entry.path());
      return std::string();
    };
    EXPECT_THAT(image("KLAP_DEVICE_RUNTIME=1"), HasSubstr("cudaCDP2"));
    const std::string without = image("KLAP_DEVICE_RUNTIME=0");
    EXPECT_THAT(without, HasSubstr("_Z6parentPii"));
    EXPECT_THAT(without, Not(HasSubstr("cudaCDP2")));
    EXPECT_EQ(cache_use("KLAP_DEVICE_RUNTIME=1"), "miss");
    EXPECT_EQ(cache_use("KLAP_DEVICE_RUNTIME=0"), "miss") << "another image";
    EXPECT_EQ(cache_use("KLAP_DEVICE_RUNTIME=0"), "hit");
    EXPECT_TRUE(run({"KLAP_DEVICE_RUNTIME=0"}).redirected());
  }
  void count_children() {
    EXPECT_TRUE(run({"KLAP_COUNT_CHILDREN=1"}).stats["children_aggregated"].is_number());
    const auto uncounted = run({"KLAP_COUNT_CHILDREN=0"});
    EXPECT_TRUE(uncounted.redirected());
    EXPECT_EQ(uncounted.stats["children_aggregated"], nullptr);
  }
  void timing() {
    EXPECT_EQ(run().stats["gpu_ms"], nullptr);
    const nlohmann::json times = run({"KLAP_TIMING=1"}).stats["gpu_ms"];
    EXPECT_EQ(times["launches"]["_Z6parentPii"], 1);
    EXPECT_EQ(times["parents"]["_Z6parentPii"], 1.5) << "what the fake driver says of any two events";
    EXPECT_EQ(times["consumers"]["_Z6parentPii"], 1.5);
  }
};

const std::map<std::string, Effects::Effect>& Effects::table() {
  static const std::map<std::string, Effect> effects{
      {"KLAP_GRANULARITY", &Effects::granularity},
      {"[defaults] granularity", &Effects::default_granularity},
      {"[[kernel]] granularity", &Effects::kernel_granularity},
      {"KLAP_LAUNCHER", &Effects::launcher},
      {"[defaults] launcher", &Effects::default_launcher},
      {"[[kernel]] launcher", &Effects::kernel_launcher},
      {"KLAP_MULTIBLOCK", &Effects::multiblock},
      {"[defaults] multiblock", &Effects::default_multiblock},
      {"[[kernel]] multiblock", &Effects::kernel_multiblock},
      {"KLAP_ORDERING", &Effects::ordering},
      {"[defaults] ordering", &Effects::default_ordering},
      {"[[kernel]] ordering", &Effects::kernel_ordering},
      {"KLAP_BUFFER", &Effects::buffer},
      {"[defaults] buffer", &Effects::default_buffer},
      {"[[kernel]] buffer", &Effects::kernel_buffer},
      {"KLAP_POOL_BYTES", &Effects::pool_bytes},
      {"[defaults] pool_bytes", &Effects::default_pool_bytes},
      {"[[kernel]] pool_bytes", &Effects::kernel_pool_bytes},
      {"KLAP_TOTAL_BYTES", &Effects::total_bytes},
      {"[defaults] total_bytes", &Effects::default_total_bytes},
      {"KLAP_CONCURRENCY", &Effects::concurrency},
      {"[defaults] concurrency", &Effects::default_concurrency},
      {"[[kernel]] concurrency", &Effects::kernel_concurrency},
      {"KLAP_CONSUMER_THREADS", &Effects::consumer_threads},
      {"[defaults] consumer_threads", &Effects::default_consumer_threads},
      {"[[kernel]] consumer_threads", &Effects::kernel_consumer_threads},
      {"KLAP_OPTIMISE", &Effects::optimise},
      {"[defaults] optimise", &Effects::default_optimise},
      {"[[kernel]] optimise", &Effects::kernel_optimise},
      {"KLAP_OPTIMISE double_buffer", &Effects::double_buffer},
      {"[defaults] optimise double_buffer", &Effects::default_double_buffer},
      {"[[kernel]] optimise double_buffer", &Effects::kernel_double_buffer},
      {"KLAP_OPTIMISE unroll", &Effects::unroll},
      {"[defaults] optimise unroll", &Effects::default_unroll},
      {"[[kernel]] optimise unroll", &Effects::kernel_unroll},
      {"KLAP_OPTIMISE preload_arguments", &Effects::preload_arguments},
      {"[defaults] optimise preload_arguments", &Effects::default_preload_arguments},
      {"[[kernel]] optimise preload_arguments", &Effects::kernel_preload_arguments},
      {"KLAP_OPTIMISE dependent_launch", &Effects::dependent_launch},
      {"[defaults] optimise dependent_launch", &Effects::default_dependent_launch},
      {"[[kernel]] optimise dependent_launch", &Effects::kernel_dependent_launch},
      {"KLAP_OPTIMISE pack_records", &Effects::pack_records},
      {"[defaults] optimise pack_records", &Effects::default_pack_records},
      {"[[kernel]] optimise pack_records", &Effects::kernel_pack_records},
      {"KLAP_OPTIMISE flatten", &Effects::flatten},
      {"[defaults] optimise flatten", &Effects::default_flatten},
      {"[[kernel]] optimise flatten", &Effects::kernel_flatten},
      {"KLAP_OPTIMISE split_iterations", &Effects::split_iterations},
      {"[defaults] optimise split_iterations", &Effects::default_split_iterations},
      {"[[kernel]] optimise split_iterations", &Effects::kernel_split_iterations},
      {"KLAP_THRESHOLD", &Effects::threshold},
      {"[defaults] threshold", &Effects::default_threshold},
      {"[[kernel]] threshold", &Effects::kernel_threshold},
      {"KLAP_AGGREGATE_MALLOC", &Effects::aggregate_malloc},
      {"[defaults] aggregate_malloc", &Effects::default_aggregate_malloc},
      {"KLAP_PROMOTION", &Effects::promotion},
      {"[defaults] promotion", &Effects::default_promotion},
      {"[[kernel]] promotion", &Effects::kernel_promotion},
      {"KLAP_OPTIMISE pack_blocks", &Effects::pack_blocks},
      {"[defaults] optimise pack_blocks", &Effects::default_pack_blocks},
      {"[[kernel]] optimise pack_blocks", &Effects::kernel_pack_blocks},
      {"KLAP_OPTIMISE batch_items", &Effects::batch_items},
      {"[defaults] optimise batch_items", &Effects::default_batch_items},
      {"[[kernel]] optimise batch_items", &Effects::kernel_batch_items},
      {"KLAP_OPTIMISE occupancy", &Effects::occupancy},
      {"[defaults] optimise occupancy", &Effects::default_occupancy},
      {"[[kernel]] optimise occupancy", &Effects::kernel_occupancy},
      {"KLAP_OPTIMISE batch_links", &Effects::batch_links},
      {"[defaults] optimise batch_links", &Effects::default_batch_links},
      {"[[kernel]] optimise batch_links", &Effects::kernel_batch_links},
      {"KLAP_POOL", &Effects::pool},
      {"[defaults] pool", &Effects::default_pool},
      {"[[kernel]] pool", &Effects::kernel_pool},
      {"KLAP_ASSUME", &Effects::assume},
      {"[defaults] assume", &Effects::default_assume},
      {"[[kernel]] assume", &Effects::kernel_assume},
      {"[[kernel]] child", &Effects::kernel_child},
      {"[[kernel]] name", &Effects::kernel_name},
      {"KLAP_CONFIG", &Effects::config_file},
      {"KLAP_LOG", &Effects::log_level},
      {"KLAP_LOG_FILE", &Effects::log_file},
      {"KLAP_DISABLE", &Effects::disable},
      {"KLAP_CACHE_DIR", &Effects::cache_dir},
      {"KLAP_CACHE_MAX_SIZE", &Effects::cache_max_size},
      {"KLAP_CACHE_DISABLE", &Effects::cache_disable},
      {"KLAP_DUMP_DIR", &Effects::dump_dir},
      {"KLAP_STATS", &Effects::stats},
      {"KLAP_LINKER", &Effects::linker},
      {"KLAP_DEVICE_RUNTIME", &Effects::device_runtime},
      {"KLAP_COUNT_CHILDREN", &Effects::count_children},
      {"KLAP_TIMING", &Effects::timing},
  };
  return effects;
}

TEST_P(Effects, Shows) {
  const auto effect = table().find(GetParam());
  ASSERT_NE(effect, table().end()) << GetParam() << " has no test: add one that shows what it does";
  (this->*effect->second)();
}

INSTANTIATE_TEST_SUITE_P(OfEverySetting, Effects, testing::ValuesIn(all_places()), [](const auto& place) {
  std::string name;
  for (const char c : place.param) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

TEST(EffectsTable, NamesOnlyWhatExists) {
  for (const auto& [place, effect] : Effects::table()) EXPECT_THAT(all_places(), testing::Contains(place));
}

// The log file cannot be written: one warning, and the log goes where it went before.
class LogFile : public Preloaded {};

TEST_F(LogFile, ThatCannotBeOpenedIsOneWarning) {
  const Outcome outcome = run({"KLAP_LOG_FILE=" + path("absent/log.txt")});
  EXPECT_EQ(outcome.err, "klap: warning: the log stays on standard error: " + path("absent/log.txt") +
                             ": cannot append: No such file or directory\n");
  EXPECT_TRUE(outcome.redirected());
  EXPECT_THAT(run({"KLAP_LOG=info", "KLAP_GRANULARITY=grid", "KLAP_LOG_FILE=" + path("absent/log.txt")}).err,
              HasSubstr("left: block-not-constant"));
}

TEST_F(LogFile, ThatFillsUpIsOneWarning) {
  const Outcome outcome = run({"KLAP_LOG=info", "KLAP_GRANULARITY=grid", "KLAP_LOG_FILE=/dev/full"});
  EXPECT_THAT(outcome.err,
              testing::StartsWith("klap: warning: /dev/full: cannot write the log: No space left"));
  EXPECT_EQ(outcome.err.find("cannot write the log", 60), std::string::npos) << "once";
  EXPECT_THAT(outcome.err, HasSubstr("left: block-not-constant")) << "no line is lost";
  EXPECT_TRUE(outcome.redirected());
}

}  // namespace
}  // namespace klap::settings_test
