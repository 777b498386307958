// Settings that switch single optimisations: KLAP_OPTIMISE, and optimise in the config file.
#include <regex>
#include <set>

#include "effects.h"
#include "support/demangle.h"

namespace klap::settings_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class OptimisationEffects : public Effects {
 public:
  using Effect = void (OptimisationEffects::*)();
  static const std::map<std::string, Effect>& table();

 protected:
  // What a grid's parts and their consumers take as the queue: each consumer the same as its part.
  void expect_heads(const std::string& setting, size_t heads) {
    EXPECT_GT(slices(run({"KLAP_GRANULARITY=grid", "KLAP_POOL_BYTES=8K", setting}, 100)), 3);
    std::vector<std::string> parts, queues;
    const std::string calls = cli_test::read(path("calls"));
    for (size_t at = 0; (at = calls.find(" params=", at)) != std::string::npos; ++at) {
      const std::string line =
          calls.substr(calls.rfind('\n', at) + 1, calls.find('\n', at) - calls.rfind('\n', at));
      const std::string params = calls.substr(at + 8, calls.find_first_of(" \n", at + 8) - at - 8);
      (line.find("klap_run_") == std::string::npos ? parts : queues).push_back(params);
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
  void expect_preloaded(const std::string& setting, bool expected = true) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-error-query.golden");
    const std::string file = write("querying.ptx", golden.substr(golden.find(".version")));
    EXPECT_EQ(klap_ptx({"rewrite", file, "-o", path("held.ptx")}, {setting}).exit_code, 0);
    const std::string rewritten = cli_test::read(path("held.ptx"));
    EXPECT_TRUE(std::regex_search(rewritten, std::regex("klap_run_\\w*_flat256"))) << setting;
    EXPECT_EQ(expected, std::regex_search(rewritten, std::regex("klap_run_\\w*_preloaded"))) << setting;
  }
  void preload_arguments() {
    expect_preloaded("KLAP_OPTIMISE=+preload_arguments");
    expect_preloaded("KLAP_OPTIMISE=-preload_arguments", false);
  }
  void default_preload_arguments() {
    expect_preloaded(config("[defaults]\noptimise = \"+preload_arguments\"\n"));
  }
  void kernel_preload_arguments() {
    expect_preloaded(config("[[kernel]]\nname = \"*\"\noptimise = \"+preload_arguments\"\n"));
  }
  // What explain says of a child that sums along a row.
  void expect_unrolled(const std::string& setting, const std::string& times) {
    const std::string file = KLAP_CASE_PTX_DIR "/straight_loops.ptx";
    const std::string said = explanation({file}, {setting});
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
      const std::string name = demangle(run({"KLAP_GRANULARITY=grid", given}).launched.back());
      return name.substr(0, name.find(']'));
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
    EXPECT_THAT(explanation({file, "--ordering", "relaxed"}, {setting}), HasSubstr(text)) << setting;
  }
  const std::string split_ =
      "flattened: threads with i < argument 3 of scale (int), iterations redistributed over threads";
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
  // What explain says of a child that sums up a range.
  void expect_parts(const std::string& setting, bool parts = true, int elements = 256) {
    const std::string file = KLAP_CASE_PTX_DIR "/ranges.ptx";
    const std::string said = explanation({file}, {setting});
    const std::string text = "its range in parts of " + std::to_string(elements) + " elements";
    EXPECT_EQ(parts, said.find(text) != std::string::npos) << setting;
  }
  // What it says of one that stores an integer or a floating-point sum.
  void expect_joined(const std::vector<std::string>& settings, bool integers, bool reals) {
    const std::string said = explanation({KLAP_CASE_PTX_DIR "/ranges_stored.ptx"}, settings);
    for (const auto& [parent, is_joined] : {std::pair("from ranges_stored_parent", integers),
                                            std::pair("from ranges_of_reals_stored_parent", reals)}) {
      const size_t at = said.find(parent);
      ASSERT_NE(at, std::string::npos) << parent;
      const std::string line = said.substr(at, said.find('\n', at) - at);
      EXPECT_EQ(is_joined, line.find("in parts of 256 elements, joined") != std::string::npos) << line;
    }
  }
  void split_ranges() {
    expect_parts("KLAP_OPTIMISE=");
    expect_parts("KLAP_OPTIMISE=-split_ranges", false);
    expect_parts("KLAP_OPTIMISE=+split_ranges");
    expect_joined({"KLAP_OPTIMISE=+split_ranges", "KLAP_ASSUME=reassociate"}, false, false);
    expect_joined({"KLAP_OPTIMISE=split_ranges=all"}, true, false);
    expect_joined({"KLAP_OPTIMISE=split_ranges=all", "KLAP_ASSUME=noalias"}, true, false);
    expect_joined({"KLAP_OPTIMISE=split_ranges=all", "KLAP_ASSUME=reassociate"}, true, true);
    expect_joined({"KLAP_OPTIMISE=split_ranges=all", "KLAP_ASSUME=all"}, true, true);
  }
  void default_split_ranges() { expect_parts(config("[defaults]\noptimise = \"-split_ranges\"\n"), false); }
  void kernel_split_ranges() {
    expect_parts(config("[[kernel]]\nname = \"*\"\noptimise = \"-split_ranges\"\n"), false);
    expect_parts(config("[[kernel]]\nname = \"other*\"\noptimise = \"-split_ranges\"\n"));
  }
  void part_elements() {
    expect_parts("KLAP_OPTIMISE=part_elements=auto");
    expect_parts("KLAP_OPTIMISE=part_elements=32", true, 32);
    expect_parts("KLAP_OPTIMISE=part_elements=1024", true, 1024);
    EXPECT_THAT(run({"KLAP_OPTIMISE=part_elements=33"}).err,
                HasSubstr("optimisation part_elements cannot be '33'"));
  }
  void default_part_elements() {
    expect_parts(config("[defaults]\noptimise = \"part_elements=128\"\n"), true, 128);
  }
  void kernel_part_elements() {
    expect_parts(config("[[kernel]]\nname = \"*\"\noptimise = \"part_elements=128\"\n"), true, 128);
    expect_parts(config("[[kernel]]\nname = \"other*\"\noptimise = \"part_elements=128\"\n"));
  }
  // What explain says of that child with a setting that is off by default.
  void expect_of_parts(const std::string& setting, const std::string& text) {
    const std::string file = KLAP_CASE_PTX_DIR "/ranges.ptx";
    EXPECT_THAT(explanation({file}, {setting}), HasSubstr("256 elements" + text)) << setting;
  }
  void merge_parts() {
    expect_of_parts("KLAP_OPTIMISE=+merge_parts", ", neighbours as one, ");
    expect_of_parts("KLAP_OPTIMISE=-merge_parts", ", a loop unrolled");
  }
  void default_merge_parts() {
    expect_of_parts(config("[defaults]\noptimise = \"+merge_parts\"\n"), ", neighbours as one, ");
  }
  void kernel_merge_parts() {
    expect_of_parts(config("[[kernel]]\nname = \"*\"\noptimise = \"+merge_parts\"\n"),
                    ", neighbours as one, ");
  }
  void stream_loads() {
    expect_of_parts("KLAP_OPTIMISE=+stream_loads", ", streamed, ");
    expect_of_parts("KLAP_OPTIMISE=-stream_loads", ", a loop unrolled");
  }
  void default_stream_loads() {
    expect_of_parts(config("[defaults]\noptimise = \"+stream_loads\"\n"), ", streamed, ");
  }
  void kernel_stream_loads() {
    expect_of_parts(config("[[kernel]]\nname = \"*\"\noptimise = \"+stream_loads\"\n"), ", streamed, ");
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
  void expect_not_flattened(const std::string& setting) {
    EXPECT_THAT(flattening("KLAP_OPTIMISE="),
                HasSubstr("flattened: threads with i < argument 2 of child (int)"));
    EXPECT_THAT(flattening(setting), AllOf(HasSubstr("1 rewritten"), Not(HasSubstr("flattened"))));
  }
  void flatten() { expect_not_flattened("KLAP_OPTIMISE=-flatten"); }
  void default_flatten() { expect_not_flattened(config("[defaults]\noptimise = \"-flatten\"\n")); }
  void kernel_flatten() {
    expect_not_flattened(config("[[kernel]]\nname = \"parent*\"\noptimise = \"-flatten\"\n"));
  }
  // What explain says of a chain whose links are told apart by a few registers.
  void expect_no_batches(const std::string& setting) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-chain-carried.golden");
    const std::string file = write("carried.ptx", golden.substr(golden.find(".version")));
    const std::string explained = explanation({file}, {setting});
    EXPECT_THAT(explanation({file}, {"KLAP_OPTIMISE="}), HasSubstr("links side by side in a block"));
    EXPECT_THAT(explained, AllOf(HasSubstr("look-back"), Not(HasSubstr("side by side"))));
  }
  void expect_single_blocks(const std::string& setting) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-child-shared-memory.golden");
    const std::string file = write("shared.ptx", golden.substr(golden.find(".version")));
    EXPECT_THAT(explanation({file}, {"KLAP_OPTIMISE="}), HasSubstr("8 to a consumer block in full warps"));
    EXPECT_THAT(explanation({file}, {setting}), HasSubstr("1 to a consumer block with a barrier after each"));
  }
  void pack_blocks() { expect_single_blocks("KLAP_OPTIMISE=-pack_blocks"); }
  void default_pack_blocks() { expect_single_blocks(config("[defaults]\noptimise = \"-pack_blocks\"\n")); }
  void kernel_pack_blocks() {
    expect_single_blocks(config("[[kernel]]\nname = \"*parent*\"\noptimise = \"-pack_blocks\"\n"));
  }
  void expect_single_items(const std::string& setting) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/rewritten-recursion.golden");
    const std::string file = write("recursion.ptx", golden.substr(golden.find(".version")));
    const std::string explained = explanation({file, "--ordering", "relaxed"}, {setting});
    EXPECT_THAT(explanation({file, "--ordering", "relaxed"}, {"KLAP_OPTIMISE="}),
                HasSubstr("run by a persistent consumer, up to 8 items"));
    EXPECT_THAT(explained, AllOf(HasSubstr("run by a persistent consumer"), Not(HasSubstr(" items"))));
  }
  void batch_items() { expect_single_items("KLAP_OPTIMISE=-batch_items"); }
  void default_batch_items() { expect_single_items(config("[defaults]\noptimise = \"-batch_items\"\n")); }
  void kernel_batch_items() {
    expect_single_items(config("[[kernel]]\nname = \"parent*\"\noptimise = \"-batch_items\"\n"));
  }
  // A recursion in which a thread launches twice into one stream.
  void expect_not_executed(const std::string& setting) {
    const std::string golden = cli_test::read(KLAP_GOLDEN_DIR "/left-recursion-stream-twice.golden");
    const std::string ptx = golden.substr(golden.find(".version"));
    const std::string file = write("executor.ptx", ptx.substr(0, ptx.find("\n---")));
    EXPECT_THAT(explanation({file}, {"KLAP_OPTIMISE="}),
                AllOf(HasSubstr("executed in the order of its stream"), Not(HasSubstr("left: "))));
    EXPECT_THAT(explanation({file}, {setting}), AllOf(HasSubstr("left: "), Not(HasSubstr("executed"))));
  }
  void executor() { expect_not_executed("KLAP_OPTIMISE=-executor"); }
  void default_executor() { expect_not_executed(config("[defaults]\noptimise = \"-executor\"\n")); }
  void kernel_executor() {
    expect_not_executed(config("[[kernel]]\nname = \"halves*\"\noptimise = \"-executor\"\n"));
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
  void occupancy() {
    expect_no_room("KLAP_OPTIMISE=-occupancy");
    const std::string file = KLAP_CASE_PTX_DIR "/ranges.ptx", room = "registers for 5 blocks per SM";
    EXPECT_THAT(explanation({file}, {"KLAP_OPTIMISE="}), Not(HasSubstr(room)));
    EXPECT_THAT(explanation({file}, {"KLAP_OPTIMISE=occupancy=all"}), HasSubstr(room));
  }
  void default_occupancy() { expect_no_room(config("[defaults]\noptimise = \"-occupancy\"\n")); }
  void kernel_occupancy() { expect_no_room(config("[[kernel]]\nname = \"*\"\noptimise = \"-occupancy\"\n")); }
  void batch_links() { expect_no_batches("KLAP_OPTIMISE=-batch_links"); }
  void default_batch_links() { expect_no_batches(config("[defaults]\noptimise = \"-batch_links\"\n")); }
  void kernel_batch_links() {
    expect_no_batches(config("[[kernel]]\nname = \"*chosen*\"\noptimise = \"-batch_links\"\n"));
  }
};

const std::map<std::string, OptimisationEffects::Effect>& OptimisationEffects::table() {
  static const std::map<std::string, Effect> effects{
      {"KLAP_OPTIMISE", &OptimisationEffects::optimise},
      {"[defaults] optimise", &OptimisationEffects::default_optimise},
      {"[[kernel]] optimise", &OptimisationEffects::kernel_optimise},
      {"KLAP_OPTIMISE double_buffer", &OptimisationEffects::double_buffer},
      {"[defaults] optimise double_buffer", &OptimisationEffects::default_double_buffer},
      {"[[kernel]] optimise double_buffer", &OptimisationEffects::kernel_double_buffer},
      {"KLAP_OPTIMISE split_ranges", &OptimisationEffects::split_ranges},
      {"[defaults] optimise split_ranges", &OptimisationEffects::default_split_ranges},
      {"[[kernel]] optimise split_ranges", &OptimisationEffects::kernel_split_ranges},
      {"KLAP_OPTIMISE merge_parts", &OptimisationEffects::merge_parts},
      {"[defaults] optimise merge_parts", &OptimisationEffects::default_merge_parts},
      {"[[kernel]] optimise merge_parts", &OptimisationEffects::kernel_merge_parts},
      {"KLAP_OPTIMISE stream_loads", &OptimisationEffects::stream_loads},
      {"[defaults] optimise stream_loads", &OptimisationEffects::default_stream_loads},
      {"[[kernel]] optimise stream_loads", &OptimisationEffects::kernel_stream_loads},
      {"KLAP_OPTIMISE part_elements", &OptimisationEffects::part_elements},
      {"[defaults] optimise part_elements", &OptimisationEffects::default_part_elements},
      {"[[kernel]] optimise part_elements", &OptimisationEffects::kernel_part_elements},
      {"KLAP_OPTIMISE unroll", &OptimisationEffects::unroll},
      {"[defaults] optimise unroll", &OptimisationEffects::default_unroll},
      {"[[kernel]] optimise unroll", &OptimisationEffects::kernel_unroll},
      {"KLAP_OPTIMISE preload_arguments", &OptimisationEffects::preload_arguments},
      {"[defaults] optimise preload_arguments", &OptimisationEffects::default_preload_arguments},
      {"[[kernel]] optimise preload_arguments", &OptimisationEffects::kernel_preload_arguments},
      {"KLAP_OPTIMISE dependent_launch", &OptimisationEffects::dependent_launch},
      {"[defaults] optimise dependent_launch", &OptimisationEffects::default_dependent_launch},
      {"[[kernel]] optimise dependent_launch", &OptimisationEffects::kernel_dependent_launch},
      {"KLAP_OPTIMISE pack_records", &OptimisationEffects::pack_records},
      {"[defaults] optimise pack_records", &OptimisationEffects::default_pack_records},
      {"[[kernel]] optimise pack_records", &OptimisationEffects::kernel_pack_records},
      {"KLAP_OPTIMISE flatten", &OptimisationEffects::flatten},
      {"[defaults] optimise flatten", &OptimisationEffects::default_flatten},
      {"[[kernel]] optimise flatten", &OptimisationEffects::kernel_flatten},
      {"KLAP_OPTIMISE split_iterations", &OptimisationEffects::split_iterations},
      {"[defaults] optimise split_iterations", &OptimisationEffects::default_split_iterations},
      {"[[kernel]] optimise split_iterations", &OptimisationEffects::kernel_split_iterations},
      {"KLAP_OPTIMISE pack_blocks", &OptimisationEffects::pack_blocks},
      {"[defaults] optimise pack_blocks", &OptimisationEffects::default_pack_blocks},
      {"[[kernel]] optimise pack_blocks", &OptimisationEffects::kernel_pack_blocks},
      {"KLAP_OPTIMISE batch_items", &OptimisationEffects::batch_items},
      {"[defaults] optimise batch_items", &OptimisationEffects::default_batch_items},
      {"[[kernel]] optimise batch_items", &OptimisationEffects::kernel_batch_items},
      {"KLAP_OPTIMISE executor", &OptimisationEffects::executor},
      {"[defaults] optimise executor", &OptimisationEffects::default_executor},
      {"[[kernel]] optimise executor", &OptimisationEffects::kernel_executor},
      {"KLAP_OPTIMISE occupancy", &OptimisationEffects::occupancy},
      {"[defaults] optimise occupancy", &OptimisationEffects::default_occupancy},
      {"[[kernel]] optimise occupancy", &OptimisationEffects::kernel_occupancy},
      {"KLAP_OPTIMISE batch_links", &OptimisationEffects::batch_links},
      {"[defaults] optimise batch_links", &OptimisationEffects::default_batch_links},
      {"[[kernel]] optimise batch_links", &OptimisationEffects::kernel_batch_links},
  };
  return effects;
}

TEST_P(OptimisationEffects, Show) { (this->*table().at(GetParam()))(); }

INSTANTIATE_TEST_SUITE_P(Optimisations, OptimisationEffects,
                         testing::ValuesIn(places_of(OptimisationEffects::table())), name_of_place);

}  // namespace

std::vector<std::string> optimisation_places() { return places_of(OptimisationEffects::table()); }

}  // namespace klap::settings_test
