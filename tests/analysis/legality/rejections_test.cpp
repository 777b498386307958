// Every sentence by which a site is left, each provoked by a small change of a launch that is rewritten, with
// the place of the launch and of the instruction that decides: rejections.golden. A reason of
// analysis/facts/reasons.def that no case provokes fails the test, and so does a sentence in the sources.
//
// An input names a fixture of ptx-patterns/idioms and what is asked (`device`, `warp`, `block`, `multiblock`,
// `auto`, `else_warp`, `none`, `stream`, `relaxed`, `any_block`, `build`, `sm_80`, `threshold_8`), then
// changes it: lines that begin with '-' must stand in the text and give way to those with '+' behind them; a
// line with '@' starts the search behind the text that it names. KLAP_REBASE=1 rewrites the messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "analysis/facts/rejection.h"
#include "fixture.h"
#include "golden.h"
#include "jit/module.h"
#include "literals.h"
#include "support/error.h"
#include "support/file.h"
#include "tests/settings/given.h"

namespace klap::test {
namespace {

using jit::SiteRemark;

// ---- cases ----

struct Case {
  jit::Request request;
  bool build = false;
  std::string ptx;
};

class CaseReader {
 public:
  explicit CaseReader(const std::string& section) : lines_(section) {}

  Case read() {
    case_.request.by_sizes = false;
    std::string first;
    std::getline(lines_, first);
    head(first);
    for (std::string line; std::getline(lines_, line);) {
      if (line.starts_with('@')) {
        change();
        from_ = find(line.substr(1));
      } else if (line.starts_with('-')) {
        if (!new_.empty()) change();
        old_.push_back(line.substr(1));
      } else if (line.starts_with('+')) {
        new_.push_back(line.substr(1));
      }
    }
    change();
    return std::move(case_);
  }

 private:
  void head(const std::string& line) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    case_.ptx = fixture(word);
    jit::Request& request = case_.request;
    auto granularity = jit::Granularity::Grid;
    auto launcher = jit::Launcher::Host;
    auto ordering = jit::Ordering::Auto;
    // The executor would take most of what is left here.
    test::GivenValues values = {{"executor", "off"}};
    while (words >> word) {
      if (word == "device") launcher = jit::Launcher::Device;
      if (word == "auto") launcher = jit::Launcher::Auto;
      if (word == "none") granularity = jit::Granularity::None;
      if (word == "multiblock") granularity = jit::Granularity::MultiBlock;
      if (word == "block") granularity = jit::Granularity::Block;
      if (word == "warp") granularity = jit::Granularity::Warp;
      if (word == "else_warp") granularity = jit::Granularity::Auto;
      if (word == "stream") ordering = jit::Ordering::Stream;
      if (word == "relaxed") ordering = jit::Ordering::Relaxed;
      if (word == "executor") values["executor"] = "on";
      if (word == "build") case_.build = true;
      if (word == "any_block") request.blocks = false;
      if (word.starts_with("threshold_")) values["threshold"] = word.substr(10);
      if (word.starts_with("sm_")) request.sm = static_cast<uint32_t>(std::stoul(word.substr(3)));
    }
    values["granularity"] = to_string(granularity);
    values["launcher"] = to_string(launcher);
    values["ordering"] = to_string(ordering);
    request.setting = test::given(values);
  }

  [[nodiscard]] size_t find(const std::string& text) const {
    const size_t at = case_.ptx.find(text, from_);
    if (at == std::string::npos) throw std::runtime_error("the fixture does not hold: " + text);
    return at;
  }

  void change() {
    if (old_.empty()) return;
    const auto joined = [](const std::vector<std::string>& lines) {
      std::string text;
      for (const std::string& line : lines) text += (&line == lines.data() ? "" : "\n") + line;
      return text;
    };
    const std::string before = joined(old_);
    case_.ptx.replace(find(before), before.size(), joined(new_));
    old_.clear();
    new_.clear();
  }

  std::istringstream lines_;
  Case case_;
  size_t from_ = 0;
  std::vector<std::string> old_, new_;
};

std::string message_of(const Case& given) {
  const jit::Program program = jit::program_from_ptx(given.ptx, "unit");
  std::string text;
  try {
    const auto remarks =
        given.build ? rewrite_module(program, given.request).remarks : explain_module(program, given.request);
    for (const SiteRemark& remark : remarks) text += remark_text(remark);
  } catch (const Error& error) {
    text = std::string("error: ") + error.what() + "\n";
  }
  return text;
}

TEST(Rejections, AreTheExpectedOnesAtTheExpectedPlaces) {
  const size_t sections = read_golden(KLAP_REJECTIONS_FILE).sections.size();
  ASSERT_EQ(0u, sections % 2) << "input and message take turns";
  for (size_t i = 0; i + 1 < sections; i += 2) {
    const Golden golden = read_golden(KLAP_REJECTIONS_FILE);  // anew: rebasing writes it
    const auto& [name, input] = golden.sections[i];
    EXPECT_EQ(name + ": message", golden.sections[i + 1].first);
    SCOPED_TRACE(name);
    std::string message;
    EXPECT_NO_THROW(message = message_of(CaseReader(input).read()));
    if (name.starts_with("rewritten: ")) {
      EXPECT_THAT(message, testing::HasSubstr(": rewritten: "));
    } else {
      EXPECT_THAT(message, testing::AnyOf(testing::HasSubstr(": left ("), testing::StartsWith("error: ")));
    }
    expect_section(golden, name + ": message", message);
  }
}

// ---- programs of several units ----

std::string child_text() {
  const std::string text = fixture("cdp2");
  const size_t child = text.find(".visible .entry _Z5child"), parent = text.find("\t// .globl\t_Z6parent");
  return ".version 9.0\n.target sm_80\n.address_size 64\n" + text.substr(child, parent - child);
}
std::string parent_text() {
  std::string text = fixture("cdp2");
  const size_t child = text.find(".visible .entry _Z5child"), parent = text.find("\t// .globl\t_Z6parent");
  return text.replace(child, parent - child, ".extern .entry _Z5childPii(.param .u64 a, .param .u32 b)\n;\n");
}

jit::Program two_units(const std::string& first, const std::string& second) {
  jit::Program program = jit::program_from_ptx(first, "parents");
  program.units.push_back(jit::program_from_ptx(second, "children").units[0]);
  return program;
}

std::string only_text(const std::vector<SiteRemark>& remarks) {
  EXPECT_EQ(1u, remarks.size());
  return remarks.empty() ? "" : remark_text(remarks[0]);
}

constexpr char kOtherUnit[] =
    "parents:69:2: _Z6parentPiPKi launches _Z5childPii: left (child-barrier): barrier.cluster.arrive (line "
    "20:2), in children\n";
constexpr char kOwnUnit[] =
    "parents:69:2: _Z6parentPiPKi launches _Z5childPii: left (argument-mismatch): an argument at offset 16 "
    "of "
    "8 bytes (line 83:2), parameters of 12 bytes\n";
constexpr char kNoPtx[] =
    "unit:0:0:  launches : left (child-not-found): the unit launches kernels but carries no PTX, only "
    "machine "
    "code; build it with PTX, as by nvcc -gencode arch=compute_90,code=compute_90\n";

TEST(Rejections, ToAChildOfAnotherUnitNameTheUnit) {
  std::string child = child_text();
  child.insert(child.find("\tsetp.ge"), "\tbarrier.cluster.arrive;\n");
  EXPECT_EQ(kOtherUnit, only_text(explain_module(two_units(parent_text(), child), {})));
}

TEST(Rejections, ToArgumentsForAChildOfAnotherUnitStandInTheParents) {
  std::string parent = parent_text();
  parent.insert(parent.find("\tst.u64 \t[%rd2]"), "\tst.u64 [%rd2+16], %rd3;\n");
  EXPECT_EQ(kOwnUnit, only_text(explain_module(two_units(parent, child_text()), {})));
}

// Whether another unit calls a function that it names is not looked at.
constexpr char kNamedElsewhere[] =
    "parents:69:2: _Z6parentPiPKi launches _Z5childPii: left (launch-in-function): parent(int*, int "
    "const*) is called, not launched: by nothing in its unit\n";
constexpr char kPassedElsewhere[] =
    "parents:69:2: _Z6parentPiPKi launches : left (callee-unknown): the kernel's address is argument 1 of "
    "parent (int*), which nothing in its unit calls\n";

TEST(Rejections, ToAFunctionThatAnotherUnitMayCall) {
  const auto with = [](std::string text, const std::string& old, const std::string& now) {
    return text.replace(text.find(old), old.size(), now);
  };
  const std::string child = child_text() + "// calls _Z6parentPiPKi\n";
  const std::string entry = ".visible .entry _Z6parent";
  const std::string function = with(parent_text(), entry, ".visible .func _Z6parent");
  EXPECT_EQ(kNamedElsewhere, only_text(explain_module(two_units(function, child), {})));
  const std::string passed = with(function, "%rd7, _Z5childPii", "%rd7, %rd3");
  EXPECT_EQ(kPassedElsewhere, only_text(explain_module(two_units(passed, child), {})));
  const std::string hidden = with(parent_text(), entry, ".func _Z6parent");
  EXPECT_THAT(only_text(explain_module(two_units(hidden, child), {})),
              testing::HasSubstr("left (never-called)"));
}

// Launches itself and, in the fire-and-forget stream, a kernel of another unit.
std::string two_children_text() {
  std::string text = read_golden(KLAP_GOLDEN_DIR "/rewritten-several-sites.golden").section("ptx");
  const auto change = [&](const std::string& old, const std::string& now) {
    const size_t at = text.find(old);
    ASSERT_NE(std::string::npos, at) << old;
    text.replace(at, old.size(), now);
  };
  const std::string callee = "st.param.b64 \t[param0+0], %rd6;";
  change("mov.u64 \t%rd6, _Z5childPii;", "mov.u64 \t%rd6, _Z6parentPiPKi;\n\tmov.u64 \t%rd9, _Z5otherPii;");
  change(callee, "st.param.b64 [param0+0], %rd9;");
  change("// .globl\t_Z6parent", ".extern .entry _Z5otherPii(.param .u64 a, .param .u32 b)\n;\n// _Z6parent");
  return text;
}

// A thread runs no code of another unit.
constexpr char kOwnOfTwoUnits[] =
    "  note: small children are not run by the launching thread: it is defined in another unit\n";

TEST(Rejections, ToRunningAChildOfAnotherUnitAtOnce) {
  jit::Request request;
  request.by_sizes = false;
  request.setting = test::given({{"threshold", "8"}, {"granularity", "grid"}, {"launcher", "host"}});
  const std::string text = only_text(explain_module(two_units(parent_text(), child_text()), request));
  EXPECT_THAT(text, testing::HasSubstr(", children without threads skipped, "));
  EXPECT_THAT(text, testing::HasSubstr(kOwnOfTwoUnits));
}

constexpr char kTwoUnits[] =
    "left (child-launches): other(int*, int) and parent(int*, int const*) are defined in different units\n";

TEST(Rejections, ToChildrenOfDifferentUnits) {
  std::string other = child_text();
  for (size_t at = 0; (at = other.find("_Z5childPii", at)) != std::string::npos;)
    other.replace(at, 11, "_Z5otherPii");
  const auto remarks = explain_module(two_units(two_children_text(), other), {});
  ASSERT_EQ(2u, remarks.size());
  EXPECT_EQ("several-sites", remarks[0].reason);
  EXPECT_THAT(remark_text(remarks[1]), testing::HasSubstr(kTwoUnits));
}

constexpr char kLoopOfTwoUnits[] =
    "left (several-sites): launched in and beside a loop, child(int*, int) and other(int*, int) are defined "
    "in "
    "different units\n";

TEST(Rejections, ToChildrenOfDifferentUnitsInALoop) {
  std::string text = read_golden(KLAP_GOLDEN_DIR "/rewritten-several-sites.golden").section("ptx");
  const auto change = [&](const std::string& old, const std::string& now, size_t from) {
    const size_t at = text.find(old, from);
    ASSERT_NE(std::string::npos, at) << old;
    text.replace(at, old.size(), now);
  };
  change("st.param.b64 \t[param0+0], %rd6;", "st.param.b64 [param0+0], %rd9;", text.find("callseq 2, 0"));
  change("mov.u64 \t%rd6,", "mov.u64 \t%rd9, _Z5otherPii;\n$again:\n\tmov.u64 \t%rd6,", 0);
  change("$L__BB1_5:", "$L__BB1_5:\n\t@%p1 bra $again;", 0);
  change("// .globl\t_Z6parent", ".extern .entry _Z5otherPii(.param .u64 a, .param .u32 b)\n;\n// _Z6parent",
         0);
  std::string other = child_text();
  for (size_t at = 0; (at = other.find("_Z5childPii", at)) != std::string::npos;)
    other.replace(at, 11, "_Z5otherPii");
  jit::Request request;
  request.by_sizes = false;
  request.setting = test::given({{"granularity", "grid"}, {"executor", "off"}});
  const auto remarks = explain_module(two_units(text, other), request);
  ASSERT_EQ(2u, remarks.size());
  for (const SiteRemark& remark : remarks)
    EXPECT_THAT(remark_text(remark), testing::HasSubstr(kLoopOfTwoUnits));
}

TEST(Rejections, ToAUnitWithoutPtx) {
  jit::Program program = jit::program_from_ptx(fixture("cdp2"), "unit");
  program.units[0].ptx.clear();
  EXPECT_EQ(kNoPtx, only_text(explain_module(program, {})));
}

// ---- every reason and every sentence ----

// What all cases here and all golden files of whole programs expect.
std::string all_expectations() {
  std::string text = std::string(kOtherUnit) + kOwnOfTwoUnits + kTwoUnits + kLoopOfTwoUnits + kNoPtx +
                     kNamedElsewhere + kPassedElsewhere;
  const Golden golden = read_golden(KLAP_REJECTIONS_FILE);
  for (size_t i = 1; i < golden.sections.size(); i += 2) text += golden.sections[i].second;
  for (const auto& file : golden_files()) text += read_golden(file).section("explain");
  return text;
}

// Reasons that only show when the code is built, with the tests that need machine code for them.
const std::map<std::string, std::string> kTestedElsewhere = {
    {"build-failed", "tests/jit/jit_test.cpp"},
    {"chain-form", "tests/analysis/promotion/recognition_test.cpp"},
    {"target-too-new", "tests/jit/units/targets_test.cpp"},
    {"unit-options", "tests/jit/jit_test.cpp"},
};

TEST(Rejections, CoverEveryReason) {
  const std::string expected = all_expectations();
  const auto covered = [&](const std::string& reason) {
    const auto other = kTestedElsewhere.find(reason);
    if (other == kTestedElsewhere.end()) return expected.find("left (" + reason + ")") != std::string::npos;
    const std::string test = read_file(std::string(KLAP_ROOT) + "/" + other->second);
    return test.find("EXPECT_EQ(\"" + reason + "\"") != std::string::npos;
  };
  std::vector<std::string> missing;
#define KLAP_REASON(name, text, meaning) \
  if (!covered(text)) missing.emplace_back(text);
#include "analysis/facts/reasons.def"
#undef KLAP_REASON
  EXPECT_THAT(missing, testing::IsEmpty()) << "reasons that no case provokes";
}

// The fixed pieces of a format string.
std::vector<std::string> pieces_of(const std::string& literal) {
  static const std::regex field(R"(\{[^}]*\}|\\n)");
  std::vector<std::string> pieces;
  for (std::sregex_token_iterator at(literal.begin(), literal.end(), field, -1), end; at != end; ++at) {
    if (std::count_if(at->first, at->second, [](char c) { return std::isalpha(c) != 0; }) > 1)
      pieces.push_back(at->str());
  }
  return pieces;
}

// Functions whose text only `klap-ptx inspect` prints; their own tests expect it.
std::string without_printers(const std::string& source) {
  static const std::regex printer(R"(\nstd::string print_(?!retry)\w+\([^;{]*\{\n([^}\n].*\n|\n)*\})");
  return std::regex_replace(source, printer, "\n");
}

// The literals of a source with their numbers taken out by `number`, where they hold a blank: sentences or
// parts of them.
std::vector<std::string> sentences_in(const std::string& code, const std::vector<std::string>& literals) {
  static const std::regex number("(#include )?\"([0-9]+)\"");
  std::vector<std::string> sentences;
  for (std::sregex_iterator at(code.begin(), code.end(), number), end; at != end; ++at) {
    const std::string& literal = literals[std::stoul((*at)[2].str())];
    if (literal.find(' ') != std::string::npos && !(*at)[1].matched) sentences.push_back(literal);
  }
  return sentences;
}

std::vector<std::string> sentences_of(const std::filesystem::path& file) {
  std::vector<std::string> literals;
  const std::string code = take_literals(read_file(file), literals);
  return sentences_in(without_printers(code), literals);
}

// The same of the errors that a file throws for a place of the PTX.
std::vector<std::string> errors_of(const std::filesystem::path& file) {
  static const std::regex site(R"(\berror_at\([^;]*)");
  std::vector<std::string> literals, errors;
  const std::string code = take_literals(read_file(file), literals);
  for (std::sregex_iterator at(code.begin(), code.end(), site), end; at != end; ++at) {
    for (std::string& error : sentences_in(at->str(), literals)) errors.push_back(std::move(error));
  }
  return errors;
}

// The files whose sentences become part of a rejection: all of some folders, and a few of others.
std::vector<std::string> all_sentences() {
  const std::filesystem::path source = KLAP_SOURCE_DIR;
  std::vector<std::string> all;
  const auto add = [&](const std::filesystem::path& file) {
    for (auto& s : sentences_of(file)) all.push_back(s);
  };
  for (const char* folder : {"analysis/executed", "analysis/legality", "jit/optimise"}) {
    for (const auto& entry : std::filesystem::directory_iterator(source / folder))
      if (entry.path().extension() == ".cpp") add(entry.path());
  }
  for (const char* name :
       {"launches/sites", "launches/calls", "launches/streams", "launches/origins", "launches/retry",
        "launches/wrappers", "effects/waiting", "synchronisation/exits", "synchronisation/barriers",
        "synchronisation/early_exit", "order/launch_order", "order/footprint", "facts/private_streams",
        "facts/launch_shape", "facts/runtime_calls", "inline/inlining", "optimise/thresholding"})
    add(source / "analysis" / (std::string(name) + ".cpp"));
  for (const char* name :
       {"plan/judge", "plan/order_plan", "plan/plan", "plan/remark_text", "planned/planned",
        "strategy/device_grid", "strategy/groups", "strategy/host_grid", "strategy/loop_launches",
        "strategy/recorded", "strategy/warp", "strategy/worklist"})
    add(source / "jit" / (std::string(name) + ".cpp"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source / "analysis")) {
    if (entry.path().extension() != ".cpp") continue;
    for (auto& s : errors_of(entry.path())) all.push_back(s);
  }
  return all;
}

// What stands in those files and is no part of a rejection.
const std::set<std::string> kNoRejection = {
    // Whether barriers order launches: tests/analysis/order/synchronisation_test.cpp.
    "which threads {} holds cannot be told", "{} can run between them",
    "how often {} runs before the launch depends on the decision at {}", "there is no barrier",
    "every barrier runs before both launches or after both", "no barrier can run before the later launch",
    "no thread can arrive after the earlier launch", "a launch is never reached",
    // Barriers by name, to tell them apart.
    "barrier {}", "the cluster's barrier",
    // Why the executor keeps an order: tests/analysis/order/executed_order_test.cpp.
    "{} launches in turn", "the kernel copies memory", "the module uses events", "control flow is not known",
    "{} updates memory that some kernel may look at meanwhile", "it is the only launch in its stream",
    "the host may pass pointers to the same memory", "{} has {} ({})",
    // On launches that the executor runs: tests/jit/golden/executor.remarks.
    "without order", "{}, and not only for blocks before it: {}",
    // At granularity warp: tests/jit/golden/warp.remarks.
    "another kernel may look at what the children update while they run",
    // What no recursive group should be asked for.
    "not in this recursive group",
    // Of kernels with hundreds of accesses: tests/analysis/order/launch_order_test.cpp.
    "there are too many accesses to compare",
    // Of a second variant that cannot be built where the first one can.
    "no variant keeps the order", "children do not run in blocks",
    "children do not run in the parent's kernel",
    // Of a form's name, which inspect prints.
    ", through a local wrapper",
    // Of streams in called functions, which are left for that; inspect prints it.
    ", a stream that its caller passes",
    // No site with such a stream is rewritten.
    "other stream",
    // Why nobody waits for threads that have left; and how barriers are told apart.
    "no thread waits for another", "every thread that exits has run all of them", "the warp",
    "its threads end together",
    // Children that call such functions are left for that.
    "a called function may exit",
    // Of blocks that are not packed: warp_block_test.cpp.
    "{} in a called function", "{} is declared outside the child in another form",
    "{} is used in another form, {}",
    // Of packed records: tests/transform/packed_test.cpp.
    "{} never read",
    // Why blocks may wait for others than those before them: tests/analysis/effects/earlier_blocks_test.cpp.
    "{}, called by it, writes for others", "{} does not go by the block's number",
    "{} goes by another number", "{} may read anything", "{} may write what {} reads",
    "a later block may write what {} reads, by {}", "no block writes what {} reads",
    // Of functions of thousands of lines: tests/transform/inlining_test.cpp.
    "it is too long"};

TEST(Rejections, CoverEverySentence) {
  const std::string expected = all_expectations();
  const std::vector<std::string> sentences = all_sentences();
  EXPECT_GE(sentences.size(), 100u) << "the sources are not read as they are written now";
  for (const std::string& sentence : sentences) {
    if (kNoRejection.contains(sentence)) continue;
    for (const std::string& piece : pieces_of(sentence))
      EXPECT_NE(std::string::npos, expected.find(piece)) << "no golden case provokes: " << sentence;
  }
  for (const std::string& exempt : kNoRejection)
    EXPECT_NE(sentences.end(), std::ranges::find(sentences, exempt)) << "stands nowhere: " << exempt;
}

}  // namespace
}  // namespace klap::test
