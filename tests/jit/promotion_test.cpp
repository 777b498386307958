// Chains of launches, promoted: which mode each gets for each wish, with the reasons against better ones; and
// the generated kernels are accepted by ptxas for three targets and link with nvJitLink.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <string>

#include "assembled.h"
#include "golden.h"
#include "jit/inspect.h"
#include "jit/module.h"
#include "jit/strategy/promotion_plan.h"
#include "tests/settings/given.h"

namespace klap::test {
namespace {

using analysis::ChainArgument;
using analysis::ChainFacts;
using analysis::LinkArgument;
using analysis::LinkCondition;
using transform::PromotionMode;

// ---- golden files with a section of their own ----

jit::Request request_for(const std::string& promotion, uint32_t sm = 90) {
  jit::Request request;
  request.sm = sm;
  request.setting = test::given({{"promotion", promotion}}, "test");
  return request;
}

jit::Program program_of(const std::filesystem::path& path) {
  return jit::program_from_ptx(read_golden(path).section("ptx"), "golden");
}

class ChainFile : public testing::TestWithParam<std::filesystem::path> {};

constexpr std::array kWishes = {"auto", "lookback", "PAO", "PO", "PA", "P", "none"};

TEST_P(ChainFile, GivesTheExpectedRemarks) {
  const Golden golden = read_golden(GetParam());
  std::string text;
  for (const char* const wish : kWishes) {
    for (const jit::SiteRemark& r : explain_module(program_of(GetParam()), request_for(wish))) {
      text += std::string(wish) + ": " + r.granularity + " " + r.launcher + ": " + r.detail + "\n";
      for (const std::string& note : r.notes) text += "  note: " + note + "\n";
    }
  }
  expect_section(golden, "promotion", text);
}

TEST_P(ChainFile, AssemblesAndLinks) {
  const jit::Program program = program_of(GetParam());
  const std::string& ptx = program.units[0].ptx;
  for (const char* const wish : {"lookback", "PAO", "PA", "PO", "P"}) {
    const std::string rewritten = jit::rewrite_ptx(program.units[0], request_for(wish), nullptr);
    EXPECT_EQ(ptx, rewritten.substr(0, ptx.size())) << "the originals must stay as they are";
    for (const uint32_t sm : {80u, 90u, 100u}) {
      SCOPED_TRACE(wish);
      assembled(rewritten, static_cast<int>(sm));
      const jit::RewrittenModule module = rewrite_module(program, request_for(wish, sm));
      ASSERT_EQ(1u, module.variants.size());
      const jit::Variant& variant = module.variants[0];
      ASSERT_TRUE(variant.promoted.has_value());
      EXPECT_TRUE(variant.queues.empty());
      EXPECT_EQ(0u, variant.queue_param_offset % 8);
      EXPECT_NE(std::string::npos, module.cubin.find(".text." + variant.parent_variant));
      EXPECT_NE(std::string::npos, variant.parent_variant.find(variant.promoted->mode));
    }
  }
}

// What launches nothing any more refers to nothing that does.
TEST_P(ChainFile, LaunchesNothing) {
  const jit::Program program = program_of(GetParam());
  const std::string& ptx = program.units[0].ptx;
  for (const char* const wish : {"lookback", "PAO", "PA"}) {
    const std::string added =
        jit::rewrite_ptx(program.units[0], request_for(wish), nullptr).substr(ptx.size());
    EXPECT_FALSE(added.empty());
    EXPECT_EQ(0u, count(added, "__cudaCDP2"));
    EXPECT_EQ(0u, count(added, "__klap_link")) << "a marker is left";
    EXPECT_EQ(0u, count(added, "ld.global.nc"));
  }
}

// Where a link is known to exist, and where one is done that had a place.
TEST_P(ChainFile, LaunchesThePromotedKernel) {
  const jit::Program program = program_of(GetParam());
  const std::string& ptx = program.units[0].ptx;
  for (const char* const wish : {"PO", "P"}) {
    const std::string added =
        jit::rewrite_ptx(program.units[0], request_for(wish), nullptr).substr(ptx.size());
    const std::string variant = rewrite_module(program, request_for(wish)).variants.at(0).parent_variant;
    EXPECT_EQ(2u, count(added, "mov.u64 %klap_next_kernel, " + variant + ";"));
    EXPECT_EQ(2u, count(added, "__cudaCDP2GetParameterBufferV2"));
    EXPECT_EQ(2u, count(added, "__cudaCDP2LaunchDeviceV2"));
    for (const char* const marker :
         {"__klap_link", "__klap_next", "__klap_launch", "__klap_get_buffer", "__klap_device_launch"})
      EXPECT_EQ(0u, count(added, marker)) << "a marker is left";
    EXPECT_EQ(0u, count(added, "ld.global.nc"));
  }
}

std::vector<std::filesystem::path> chain_files() {
  std::vector<std::filesystem::path> files = golden_files();
  std::erase_if(files,
                [](const auto& file) { return file.stem().string().find("-chain-") == std::string::npos; });
  return files;
}

std::string chain_test_name(const testing::TestParamInfo<std::filesystem::path>& file) {
  std::string name = file.param.stem().string();
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ChainFile, testing::ValuesIn(chain_files()), chain_test_name);

// ---- what stands in the kernel of a chain ----

// What is added to a golden file's unit.
std::string added_to(const std::string& file, const std::string& wish) {
  const jit::Program program = program_of(std::string(KLAP_GOLDEN_DIR "/") + file + ".golden");
  return jit::rewrite_ptx(program.units[0], request_for(wish), nullptr).substr(program.units[0].ptx.size());
}

// The loads in front of a barrier that leads to the launch are over when the next link begins: it may
// overwrite what they read. Hardware may let them be late, the emulator does not. In front of the boundary
// the acquire's own fence does that.
TEST(PromotedKernel, HasFencesAtBarriersBeforeTheLaunch) {
  constexpr char kFenced[] = "fence.acq_rel.gpu;\n\t\tbar.sync 0;";
  EXPECT_EQ(2u, count(added_to("rewritten-chain-ends-by-data", "PA"), kFenced));
  EXPECT_EQ(1u, count(added_to("rewritten-chain-known-early", "PA"), kFenced));
  EXPECT_EQ(0u, count(added_to("rewritten-chain-known-early", "PAO"), kFenced));
}

// How often a kernel asks whether a link exists: for the link that its block takes; where the first thread
// knows, also for the link of the block's own number, without which the block is not needed, and for the
// first one that is left when every block has one; where blocks take several, of those again.
const std::map<std::string, size_t> kQuestions = {{"PA", 1}, {"PAO", 3}, {"lookback", 4}};

// Links that are counted end where the compared value would have wrapped around.
TEST(PromotedKernel, HasCounters) {
  for (const auto& [wish, questions] : kQuestions) {
    EXPECT_EQ(questions, count(added_to("rewritten-chain-carried", wish),
                               "setp.le.s64 %klap_test, %klap_begin, %klap_last;"))
        << wish;
  }
  EXPECT_EQ(0u, count(added_to("rewritten-chain-known-early", "PAO"), "%klap_begin"));
}

// Of the link before where a block asks whether its own link exists, of its own where it asks for the next.
TEST(PromotedKernel, CountsTheLinkThatItAsksFor) {
  constexpr char kBefore[] = "sub.u64 %klap_number, %klap_number, 1;";
  constexpr char kOwn[] = "sub.u64 %klap_number, %klap_number, 0;";
  for (const auto& [wish, questions] : kQuestions) {
    EXPECT_EQ(questions, count(added_to("rewritten-chain-carried", wish), kBefore)) << wish;
    EXPECT_EQ(0u, count(added_to("rewritten-chain-carried", wish), kOwn)) << wish;
  }
  for (const char* const wish : {"P", "PO"}) {
    EXPECT_EQ(0u, count(added_to("rewritten-chain-carried", wish), kBefore)) << wish;
    EXPECT_EQ(1u, count(added_to("rewritten-chain-carried", wish), kOwn)) << wish;
  }
}

// The value that a link adds is `total + 3`.
TEST(PromotedKernel, CombinesAllValues) {
  const std::string text = added_to("rewritten-chain-carried", "lookback");
  // Of each of eight links, and once more for a block that has a single one.
  EXPECT_EQ(9u, count(text, "\tadd.s32 %klap_value32, %klap_value32, "));
  EXPECT_EQ(2u, count(text, "@%klap_is_first st.shared.b32 [%klap_part0+"));
  EXPECT_EQ(1u, count(text, "@%klap_is_first st.shared.b32 [%klap_part7+"));
}

// Arguments behind 3,000 bytes of others: the areas of eight links would be larger than what a block may
// have.
TEST(PromotedKernel, HasRoomForTheArgumentsOfItsLinks) {
  jit::Program program = program_of(KLAP_GOLDEN_DIR "/rewritten-chain-carried.golden");
  std::string& ptx = program.units[0].ptx;
  const auto replace = [&](const std::string& from, const std::string& to) {
    const size_t at = ptx.find(from);
    ASSERT_NE(std::string::npos, at) << from;
    ptx.replace(at, from.size(), to);
  };
  replace(".param .u64 _Z6chosenPKiPiiii_param_0,",
          ".param .align 8 .b8 table[3000],\n.param .u64 _Z6chosenPKiPiiii_param_0,");
  replace("[%rd2]", "[%rd2+3000]");
  for (const int offset : {8, 16, 20, 24})
    replace("[%rd2+" + std::to_string(offset) + "]", "[%rd2+" + std::to_string(3000 + offset) + "]");
  const std::string rewritten = jit::rewrite_ptx(program.units[0], request_for("lookback"), nullptr);
  EXPECT_EQ(1u, count(rewritten, "setp.le.u32 %klap_more, %klap_links, 1;"));
  EXPECT_EQ(0u, count(rewritten, "setp.le.u32 %klap_more, %klap_links, 2;"));
  assembled(rewritten);
}

TEST(PromotedKernel, BeginsLinksSideBySide) {
  std::string text = added_to("rewritten-chain-carried", "lookback");
  text.erase(0, text.find("$klap_several:"));
  const size_t last_load = text.find("ld.global.u32 %klap_b7_r25"),
               first_vote = text.find("bar.red.popc.u32");
  ASSERT_NE(std::string::npos, last_load);
  EXPECT_LT(last_load, first_vote);
  EXPECT_LT(first_vote, text.find("$klap_begun:"));
}

// ---- which mode ----

// A chain that allows everything: an offset that is carried, a counter that steps.
ChainFacts carried_chain() {
  static const ptx::Statement boundary;
  ChainFacts chain;
  chain.block = {64, 1, 1};
  chain.condition = LinkCondition::Counted;
  chain.boundary = &boundary;
  chain.looks_back = true;
  ChainArgument data, tile, offset;
  data.offset = 0, data.bytes = 8, data.kind = LinkArgument::Unchanged;
  tile.offset = 8, tile.bytes = 4, tile.kind = LinkArgument::Stepped, tile.step = 1;
  offset.offset = 12, offset.bytes = 4, offset.kind = LinkArgument::Postponed;
  offset.carried = analysis::CarriedArgument{"add.s32", {"%r1"}};
  chain.arguments = {data, tile, offset};
  return chain;
}

PromotionMode mode_of(const ChainFacts& chain, const std::string& wish,
                      std::vector<std::string>* notes = nullptr) {
  const auto verdict = jit::plan_promotion(std::make_shared<const ChainFacts>(chain), wish);
  if (!verdict.promotion) throw std::runtime_error(verdict.rejection->detail);
  if (notes != nullptr) *notes = verdict.promotion->notes;
  return verdict.promotion->shape.mode;
}

TEST(PromotionMode, IsTheBestThatTheChainAllows) {
  ChainFacts chain = carried_chain();
  EXPECT_EQ(PromotionMode::LookBack, mode_of(chain, "auto"));
  chain.looks_back = false;
  chain.look_back_text = "it does not";
  std::vector<std::string> notes;
  EXPECT_EQ(PromotionMode::Overlapped, mode_of(chain, "auto", &notes));
  EXPECT_EQ(std::vector<std::string>{"not look-back: it does not"}, notes);
  chain.boundary = nullptr;
  chain.boundary_text = "a store comes first";
  EXPECT_EQ(PromotionMode::Aggregated, mode_of(chain, "auto", &notes));
  EXPECT_EQ((std::vector<std::string>{"not look-back: it does not", "not overlapping: a store comes first"}),
            notes);
}

TEST(PromotionMode, IsNotBetterThanAsked) {
  std::vector<std::string> notes;
  EXPECT_EQ(PromotionMode::LookBack, mode_of(carried_chain(), "lookback", &notes));
  EXPECT_EQ(PromotionMode::Overlapped, mode_of(carried_chain(), "PAO", &notes));
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(PromotionMode::Aggregated, mode_of(carried_chain(), "PA", &notes));
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(PromotionMode::Aggregated, mode_of(carried_chain(), "P", &notes));
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(PromotionMode::Overlapped, mode_of(carried_chain(), "PO", &notes));
  EXPECT_TRUE(notes.empty());
}

TEST(PromotionMode, LaunchesOnlyWhereThatIsAsked) {
  const auto chain = std::make_shared<const ChainFacts>(carried_chain());
  for (const char* const wish : {"auto", "lookback", "PAO", "PA"})
    EXPECT_FALSE(jit::plan_promotion(chain, wish).promotion->shape.launches) << wish;
  for (const char* const wish : {"PO", "P"}) {
    const transform::PromotedShape& shape = jit::plan_promotion(chain, wish).promotion->shape;
    EXPECT_TRUE(shape.launches) << wish;
    EXPECT_STREQ(wish, shape.name());
  }
}

// Such a link waits for the launch before it does anything.
TEST(PromotionMode, DoesNotOverlapWhereTheLaunchTells) {
  ChainFacts chain = carried_chain();
  chain.condition = LinkCondition::AtSite;
  chain.condition_text = "it depends on a load";
  std::vector<std::string> notes;
  for (const char* const wish : {"PAO", "PO"}) {
    EXPECT_EQ(PromotionMode::Aggregated, mode_of(chain, wish, &notes));
    EXPECT_EQ(std::vector<std::string>{"not overlapping: it depends on a load"}, notes);
  }
}

// The fast chain's words lie where links that look back would write.
TEST(PromotionMode, DoesNotLookBackWithAChainOfItsOwn) {
  ChainFacts chain = carried_chain();
  ChainArgument early;
  early.offset = 16, early.bytes = 4, early.kind = LinkArgument::Available;
  chain.arguments.push_back(early);
  EXPECT_EQ(PromotionMode::Overlapped, mode_of(chain, "lookback"));
}

TEST(PromotionMode, DoesNotLookBackWithOtherOperations) {
  for (const char* const operation : {"add.s16", "add.f32", "mul.lo.s32", "add.s64"}) {
    ChainFacts chain = carried_chain();
    chain.arguments[2].carried->operation = operation;
    EXPECT_EQ(PromotionMode::Overlapped, mode_of(chain, "auto")) << operation;
  }
}

// ---- what goes from link to link ----

using Words = std::vector<uint32_t>;

TEST(PromotedShape, PassesOnWhatIsNotKnown) {
  const auto shape = transform::promoted_shape(carried_chain(), PromotionMode::Overlapped);
  EXPECT_EQ(Words{12}, shape.words);
  EXPECT_EQ(16u, shape.area_bytes);
  EXPECT_EQ(8u, shape.slot_bytes);
  ASSERT_EQ(1u, shape.steps.size());
  EXPECT_EQ(8u, shape.steps[0].offset);
}

TEST(PromotedShape, PassesEverythingOnWhereTheLaunchTells) {
  ChainFacts chain = carried_chain();
  chain.condition = LinkCondition::AtSite;
  const auto shape = transform::promoted_shape(chain, PromotionMode::Aggregated);
  EXPECT_EQ((Words{8, 12}), shape.words);
  EXPECT_TRUE(shape.steps.empty());
  EXPECT_EQ(16u, shape.slot_bytes);
}

TEST(PromotedShape, HasAFastChainForWhatIsKnownEarly) {
  ChainFacts chain = carried_chain();
  ChainArgument early;
  early.offset = 16, early.bytes = 8, early.kind = LinkArgument::Available;
  chain.arguments.push_back(early);
  const auto shape = transform::promoted_shape(chain, PromotionMode::Overlapped);
  EXPECT_EQ(LinkCondition::Available, shape.condition);
  EXPECT_EQ(Words{12}, shape.words);
  EXPECT_EQ((Words{16, 20}), shape.fast_words);
  EXPECT_EQ(32u, shape.area_bytes);
  EXPECT_EQ(8u * 4, shape.slot_bytes) << "a word of the slow chain, two of the fast one, and its mark";
}

// A chain that passes nothing on still has a mark to pass.
TEST(PromotedShape, HasAWordForTheMark) {
  ChainFacts chain = carried_chain();
  chain.arguments.pop_back();
  EXPECT_EQ(8u, transform::promoted_shape(chain, PromotionMode::LookBack).slot_bytes);
}

// Narrow arguments travel with their neighbours; a step must not be undone by an early one's word.
TEST(PromotedShape, SharesWords) {
  ChainFacts chain = carried_chain();
  chain.arguments[1].bytes = 2;
  chain.arguments[2].offset = 10, chain.arguments[2].bytes = 2;
  chain.arguments[2].carried.reset();
  const auto shape = transform::promoted_shape(chain, PromotionMode::Overlapped);
  EXPECT_EQ(Words{8}, shape.words);
  EXPECT_TRUE(shape.passes(8, 2));
  EXPECT_FALSE(shape.passes(0, 8));
  chain.arguments[2].kind = LinkArgument::Available;
  EXPECT_TRUE(check_mode(chain, PromotionMode::Aggregated).has_value());
}

}  // namespace
}  // namespace klap::test
