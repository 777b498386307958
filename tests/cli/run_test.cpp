// klap run: what it says at the end, what it passes on, and what it refuses.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "emulated.h"

namespace klap::cli_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kSummary =
    "klap: 7 launches of 1 kernel rewritten\n"
    "klap: 280 children run together\n"
    "klap: nothing was left as it is\n";

class Run : public OnEmulator {
 protected:
  // The words of the program as a shell takes them.
  [[nodiscard]] std::string micro_line() const { return fmt::format("{}", fmt::join(micro_, " ")); }
  // The exit code of a line of the shell as the program, whatever klap says about it.
  int exit_code_of(const std::string& line, std::vector<std::string> options = {}) {
    options.insert(options.begin(), "run");
    options.insert(options.end(), {"sh", "-c", line});
    return klap(options).exit_code;
  }
  void expect_refused(const std::string& program, int exit_code, const std::string& message) {
    const Result result = klap({"run", program});
    EXPECT_EQ(result.exit_code, exit_code);
    EXPECT_THAT(result.err, AllOf(StartsWith("klap: "), HasSubstr(message)));
  }
  // An executable file with another one's bytes.
  std::string executable(const std::string& name, const std::string& bytes) {
    const std::string file = write(name, bytes);
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }
};

TEST_F(Run, SaysWhatBecameOfTheLaunches) {
  const Result result = klap_on_micro({"run"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("5 right, 0 wrong"));
  EXPECT_THAT(result.err, HasSubstr(kSummary));
  EXPECT_THAT(result.err, Not(HasSubstr("GPU time"))) << "nothing was timed";
}

TEST_F(Run, SaysWhatWasLeftAndWhy) {
  const Result result = klap_on_micro({"run", "--set", "granularity=none"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("klap: no launch of a kernel was rewritten\n"));
  EXPECT_THAT(
      result.err,
      HasSubstr("klap: left as they are: 12 launch sites (config-none); klap reasons explains why\n"));
}

// The frontiers of this search fill one block each, whose threads launch in an order.
TEST_F(Run, SaysWhichLaunchesKeptTheOrder) {
  const std::vector<std::string> search = {EMULATED "bfs", "--vertices", "300",      "--degree", "20",
                                           "--reps",       "1",          "--warmup", "0"};
  const auto run_with = [&](const std::string& ordering) {
    std::vector<std::string> words = {"run", "--set", "ordering=" + ordering};
    words.insert(words.end(), search.begin(), search.end());
    return klap(words).err;
  };
  EXPECT_THAT(run_with("auto"), HasSubstr("as it is; the children of 4 launches kept CUDA's order"));
  EXPECT_THAT(run_with("relaxed"), Not(HasSubstr("CUDA's order")));
}

TEST_F(Run, QuietSaysNothing) {
  const Result result = klap_on_micro({"run", "--quiet"});
  EXPECT_THAT(result.out, HasSubstr("5 right, 0 wrong"));
  EXPECT_THAT(result.err, Not(HasSubstr("klap: ")));
}

TEST_F(Run, StatsTellAboutEachKernel) {
  const Result result = klap_on_micro({"run", "--stats", "--set", "timing=1", "--"});
  EXPECT_THAT(result.err, HasSubstr("void launch<1, false>(int*, int, int, int, unsigned long long*)\n"
                                    "  launches: 7 rewritten, aggregation at grid by the host\n"
                                    "  children: 280\n"));
  EXPECT_THAT(result.err, HasSubstr("  site: store(int*, long long, int): grid by host\n"));
  EXPECT_THAT(result.err, ContainsRegex("GPU time: [0-9.]+ ms for parents, [0-9.]+ ms for children"));
  EXPECT_THAT(result.err, HasSubstr("11 kernels that could be rewritten were not launched\n"));
}

TEST_F(Run, AddsUpTheProcessesOfAProgram) {
  const Result result =
      klap({"run", "--report", path("all.json"), "sh", "-c", micro_line() + " & " + micro_line() + "; wait"});
  EXPECT_THAT(result.err, HasSubstr("klap: 14 launches of 1 kernel rewritten, in 2 processes\n"));
  EXPECT_THAT(result.err, HasSubstr("klap: 560 children run together\n"));
  EXPECT_EQ(json::parse(read(path("all.json"))).size(), 2u);
  EXPECT_THAT(klap({"report", path("all.json")}).out, HasSubstr("560 children run together\n"));
}

TEST_F(Run, ARankSaysWhichOneItIs) {
  const Result result = klap_on_micro({"run", "--report", path("rank-%r.json")}, {"OMPI_COMM_WORLD_RANK=3"});
  EXPECT_THAT(result.err, HasSubstr("klap, rank 3: 280 children run together\n"));
  EXPECT_EQ(json::parse(read(path("rank-3.json")))["children_aggregated"], 280);
}

TEST_F(Run, ReportsGoWhereTheyAreAskedFor) {
  EXPECT_EQ(klap_on_micro({"run", "--quiet", "--report", path("one.json")}).exit_code, 0);
  EXPECT_EQ(json::parse(read(path("one.json")))["children_aggregated"], 280);
  EXPECT_THAT(klap_on_micro({"run"}, {"KLAP_STATS=" + path("two.json")}).err, HasSubstr(kSummary));
  EXPECT_EQ(json::parse(read(path("two.json")))["children_aggregated"], 280);
  EXPECT_THAT(klap_on_micro({"run"}, {"KLAP_STATS=-"}).err, HasSubstr("\"children_aggregated\": 280"));
  const Result nowhere = klap_on_micro({"run", "--report", path("nowhere/stats.json")});
  EXPECT_EQ(nowhere.exit_code, 125);
  EXPECT_EQ(nowhere.out, "") << "the program must not run in vain";
}

TEST_F(Run, TheExitCodeIsTheProgramsOwn) {
  for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--quiet"}}) {
    EXPECT_EQ(exit_code_of("exit 7", options), 7);
    EXPECT_EQ(exit_code_of("kill -KILL $$", options), 128 + SIGKILL);
    EXPECT_EQ(exit_code_of("kill -SEGV $$", options), 128 + SIGSEGV);
  }
  EXPECT_THAT(klap({"run", "sh", "-c", "kill -KILL $$"}).err,
              HasSubstr("klap: signal 9 ended the program before it could write statistics\n"));
}

TEST_F(Run, SignalsReachTheProgram) {
  EXPECT_EQ(exit_code_of("trap 'exit 9' TERM; kill -TERM $PPID; sleep 20 & wait"), 9);
  EXPECT_EQ(exit_code_of("trap 'exit 8' USR1; kill -USR1 $PPID; sleep 20 & wait"), 8);
  EXPECT_EQ(exit_code_of("kill -HUP $PPID; exec sleep 20"), 128 + SIGHUP);
}

TEST_F(Run, ArgumentsAndStreamsAreTheProgramsOwn) {
  const Result result = klap({"run", "sh", "-c", "cat; echo \"$@\"", "sh", "--stats", "--", "a b"});
  EXPECT_EQ(result.out, "--stats -- a b\n");
  const Result fed = command({"sh", "-c", "echo fed | " KLAP " run --compare cat"}, driver());
  EXPECT_THAT(fed.out, StartsWith("fed\n"));
  const std::string file = write("input", "twice\n");
  EXPECT_EQ(command({"sh", "-c", "exec " KLAP " run --compare cat <" + file}, driver()).out,
            "twice\ntwice\n");
}

TEST_F(Run, KeepsWhatTheUserPreloads) {
  const auto preloaded = [&](const std::string& before) {
    return klap({"run", "--quiet", "sh", "-c", "echo $LD_PRELOAD"}, {"LD_PRELOAD=" + before}).out;
  };
  EXPECT_EQ(preloaded(""), KLAP_SHIM "\n");
  EXPECT_EQ(preloaded(KLAP_FAKE_CUPTI), KLAP_SHIM ":" KLAP_FAKE_CUPTI "\n");
  EXPECT_EQ(preloaded(KLAP_SHIM " " KLAP_FAKE_CUPTI), KLAP_SHIM ":" KLAP_FAKE_CUPTI "\n");
}

TEST_F(Run, SettingsReachTheLibrary) {
  const auto environment = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "--quiet"});
    options.insert(options.end(), {"sh", "-c", "env | grep ^KLAP_ | sort"});
    return klap(options, {"KLAP_OPTIMISE=+unroll"}).out;
  };
  EXPECT_THAT(environment({"--set", "launcher=device", "--set", "log=info"}),
              AllOf(HasSubstr("KLAP_LAUNCHER=device\n"), HasSubstr("KLAP_LOG=info\n")));
  EXPECT_THAT(environment({"--set", "KLAP_GUARD=off"}), HasSubstr("KLAP_GUARD=off\n"));
  EXPECT_THAT(environment({"--set=flatten=off"}), HasSubstr("KLAP_OPTIMISE=+unroll,flatten=off\n"));
  const std::string file = write("klap.toml", "[defaults]\ngranularity = \"none\"\n");
  EXPECT_THAT(klap_on_micro({"run", "--config", file}).err, HasSubstr("12 launch sites (config-none)"));
}

TEST_F(Run, MistakesAreToldBeforeAnythingRuns) {
  const auto expect_usage_error = [&](const std::vector<std::string>& options, const std::string& message) {
    std::vector<std::string> words = options;
    words.insert(words.begin(), "run");
    const Result result = klap_on_micro(words);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(StartsWith("klap: "), HasSubstr(message)));
  };
  expect_usage_error({"--set", "granularty=grid"},
                     "unknown setting 'granularty'; did you mean 'granularity'?");
  expect_usage_error({"--set", "granularity=gird"},
                     "granularity cannot be 'gird' (fix: did you mean 'grid'?");
  expect_usage_error({"--set", "flaten=off"}, "did you mean 'flatten'?");
  expect_usage_error({"--set", "flatten=maybe"}, "flatten cannot be 'maybe'");
  expect_usage_error({"--set", "granularity"}, "is no KEY=VALUE");
  expect_usage_error({"--set", "quite_another=1"}, "klap settings lists them");
  expect_usage_error({"--config", path("absent.toml")}, "absent.toml");
  expect_usage_error({"--stas"}, "unknown option '--stas'; did you mean --stats?");
  EXPECT_EQ(klap({"run"}).exit_code, 2);
  EXPECT_THAT(klap({"run", "--stats"}).err, HasSubstr("PROGRAM is required"));
}

TEST_F(Run, ProgramsThatNothingCanBePreloadedInto) {
  expect_refused(KLAP_STATIC_PROGRAM, 126, "is statically linked, so nothing can be preloaded into it");
  std::string bytes = read("/bin/true");
  bytes[18] = static_cast<char>(0xf3);  // e_machine: RISC-V
  expect_refused(executable("other", bytes), 126, "is for another processor");
  expect_refused(path(""), 126, "is a folder");
  expect_refused(write("text", "text"), 126, "is not executable");
  expect_refused(path("absent"), 127, "was not found");
  expect_refused("klap-no-such-program", 127, "was not found");
  const std::string foreign = executable("foreign", read("/bin/true"));
  if (chown(foreign.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can give a file away";
  std::filesystem::permissions(foreign, std::filesystem::perms::set_uid | std::filesystem::perms::all);
  expect_refused(foreign, 126, "runs with the rights of another user or group");
}

TEST_F(Run, ALibraryThatIsMissingOrNone) {
  const Result missing = klap_on_micro({"run", "--library", path("absent.so")});
  EXPECT_EQ(missing.exit_code, 125);
  EXPECT_EQ(missing.out, "");
  EXPECT_THAT(missing.err, HasSubstr("there is no library at " + path("absent.so")));
  const Result text = klap_on_micro({"run", "--library", write("libklap_jit.so", "text")});
  EXPECT_EQ(text.exit_code, 125);
  EXPECT_THAT(text.err, HasSubstr("is no shared library"));
  std::filesystem::create_directory(path("a b"));
  std::filesystem::copy_file(KLAP_SHIM, path("a b/libklap_jit.so"));
  EXPECT_THAT(klap_on_micro({"run", "--library", path("a b/libklap_jit.so")}).err,
              HasSubstr("LD_PRELOAD cannot name a file with a blank"));
}

TEST_F(Run, FindsTheLibraryWhereItIsInstalled) {
  for (const char* const folder : {"lib", "lib/" KLAP_MULTIARCH}) {
    const std::filesystem::path root =
        path(std::string("root-") + std::to_string(std::string(folder).size()));
    std::filesystem::create_directories(root / "bin");
    std::filesystem::create_directories(root / folder);
    std::filesystem::copy_file(KLAP, root / "bin" / "klap");
    const std::string library = root / folder / "libklap_jit.so";
    std::filesystem::create_symlink(KLAP_SHIM, library);
    const Result found = command({root / "bin" / "klap", "run", "--quiet", "sh", "-c", "echo $LD_PRELOAD"});
    EXPECT_EQ(found.out, KLAP_SHIM "\n") << "the file itself, for programs that see other folders";
    std::filesystem::remove(library);
    const Result missing = command({root / "bin" / "klap", "run", "true"});
    EXPECT_EQ(missing.exit_code, 125);
    EXPECT_THAT(missing.err, HasSubstr("there is no library at " + (root / "lib/libklap_jit.so").string()));
  }
}

TEST_F(Run, ComparesWithANativeRun) {
  const Result result = klap_on_micro({"run", "--compare"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr(kSummary));
  EXPECT_THAT(result.err,
              ContainsRegex("klap: natively [0-9.]+ s, preloaded [0-9.]+ s; [0-9.]+ s of that for "
                            "compiling, which the next run does not: [0-9.]+ times as fast\n"));
  EXPECT_THAT(result.err, HasSubstr("klap: exit code 0 both times\n"));
  EXPECT_EQ(exit_code_of("exit 3", {"--compare"}), 3);
}

TEST_F(Run, OtherExitCodesThanNativelyAreAFailure) {
  const Result result = klap({"run", "--compare", "sh", "-c", "test -z \"$LD_PRELOAD\" || exit 5"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("klap: the exit codes differ: 0 natively, 5 preloaded\n"));
}

TEST_F(Run, WhoeverEndsTheNativeRunGetsNoOther) {
  const Result result = klap({"run", "--compare", "sh", "-c", "echo run; kill -TERM $PPID; exec sleep 20"});
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_EQ(result.out, "run\n");
}

TEST_F(Run, SaysWhyThereAreNoStatistics) {
  EXPECT_THAT(klap({"run", "true"}).err, HasSubstr("klap: there are no statistics: "));
  EXPECT_THAT(klap_on_micro({"run"}, {"KLAP_DISABLE=yes"}).err,
              HasSubstr("klap: KLAP_DISABLE is set, so the program ran as it is\n"));
}

}  // namespace
}  // namespace klap::cli_test
