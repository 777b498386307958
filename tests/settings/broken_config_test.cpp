// Broken config files: the exact message for each kind, and that the program runs as if the broken part were
// not there. And where settings come from the environment of somebody else: set-uid programs take none.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "preloaded.h"

namespace klap::settings_test {
namespace {

using testing::HasSubstr;
using testing::Not;

// FILE stands for the config file's path.
struct Broken {
  const char* kind;
  const char* text;
  const char* message;
};

constexpr Broken kBroken[] = {
    {"SyntaxError", "[defaults\ngranularity = \"none\"\n",
     "FILE:1:10: not valid TOML: Error while parsing table header: expected ']', saw '\\n'"},
    {"ForgottenQuotes", "[defaults]\ngranularity = none\n",
     "FILE:2:16: not valid TOML: Error while parsing floating-point: expected 'nan', saw 'no' (fix: text is "
     "written in quotes)"},
    {"UnknownTable", "[kernels]\nname = \"x\"\n",
     "FILE:1:2: unknown table 'kernels' (fix: did you mean 'kernel'? use one of: defaults, kernel)"},
    {"UnknownKey", "[defaults]\npool_byts = \"64M\"\n",
     "FILE:2:1: unknown key 'pool_byts' in [defaults] (fix: did you mean 'pool_bytes'? use one of: "
     "granularity, launcher, ordering, threshold, promotion, assume, aggregate_malloc, pool_bytes, "
     "total_bytes, concurrency, optimise, multiblock, buffer, consumer_threads, pool)"},
    {"WrongType", "[defaults]\nlauncher = 1\n",
     "FILE:2:12: 'launcher' must be a string (fix: use auto | host | device | fused | host-readback, in "
     "quotes)"},
    {"WrongTypeOfANumber", "[defaults]\npool_bytes = 6.4\n",
     "FILE:2:14: 'pool_bytes' must be a number or a string (fix: use bytes, as 4096, 64M or 1G, in quotes)"},
    {"UnknownValue", "[[kernel]]\nname = \"*\"\ngranularity = \"grdi\"\n",
     "FILE:3:15: granularity cannot be 'grdi' (fix: did you mean 'grid'? use none | warp | block | "
     "multiblock | grid | auto)"},
    {"UnknownSize", "[defaults]\npool_bytes = \"64 megabytes\"\n",
     "FILE:2:14: pool_bytes cannot be '64 megabytes' (fix: use bytes, as 4096, 64M or 1G)"},
    {"CountOfOne", "[defaults]\nmultiblock = 1\n",
     "FILE:2:14: multiblock cannot be '1' (fix: use a number from 2 on)"},
    {"ShareOfNothing", "[defaults]\nconcurrency = 0\n",
     "FILE:2:15: concurrency cannot be '0' (fix: use a number from 1 on)"},
    {"MoreThreadsThanABlockHas", "[defaults]\nconsumer_threads = 2048\n",
     "FILE:2:20: consumer_threads cannot be '2048' (fix: use auto, or a number up to 1024)"},
    {"ThresholdOfNoNumber", "[defaults]\nthreshold = \"on\"\n",
     "FILE:2:13: threshold cannot be 'on' (fix: use auto, off, or a number up to 1024)"},
    {"PoolOfSomeLaunches", "[[kernel]]\nname = \"*\"\nchild = \"*\"\npool_bytes = \"1M\"\n",
     "FILE:1:1: 'pool_bytes' is for all launches of a kernel, not for those of one child (fix: put it into a "
     "table "
     "without child)"},
    {"UnknownBuffer", "[defaults]\nbuffer = \"mallok\"\n",
     "FILE:2:10: buffer cannot be 'mallok' (fix: did you mean 'malloc'? use pool | malloc)"},
    {"NegativeSize", "[defaults]\npool_bytes = -1\n",
     "FILE:2:14: pool_bytes cannot be '-1' (fix: use bytes, as 4096, 64M or 1G)"},
    {"EmptyName", "[[kernel]]\nname = \"\"\ngranularity = \"none\"\n",
     "FILE:2:8: name cannot be '' (fix: use glob)"},
    {"MissingName", "[[kernel]]\ngranularity = \"none\"\n",
     "FILE:1:1: [[kernel]] without a name (fix: add name = \"GLOB\")"},
    {"NotUtf8", "[defaults]\n# \xff\xfe\ngranularity = \"none\"\n",
     "FILE:2:2: not valid TOML: Encountered invalid utf-8 sequence"},
    {"DuplicateKey", "[defaults]\ngranularity = \"none\"\ngranularity = \"none\"\n",
     "FILE:3:15: not valid TOML: Error while parsing key-value pair: cannot redefine existing string "
     "'granularity'"},
    {"DuplicateKernel", "[[kernel]]\nname = \"x*\"\n[[kernel]]\nname = \"x*\"\n",
     "FILE:3:1: a second [[kernel]] named 'x*' (fix: put its keys into the one at line 1)"},
};

class BrokenConfig : public Preloaded, public testing::WithParamInterface<Broken> {
 protected:
  void expect_one_warning(const std::string& setting, std::string message) {
    const std::string file = setting.substr(setting.find('=') + 1);
    for (size_t at = 0; (at = message.find("FILE", at)) != std::string::npos;) message.replace(at, 4, file);
    const Outcome outcome = run({setting});
    EXPECT_EQ(outcome.err, "klap: warning: " + message + "\n");
    EXPECT_TRUE(outcome.redirected()) << "the defaults hold";
    const auto printed = klap_ptx({"config"}, {setting});
    EXPECT_EQ(printed.exit_code, 1);
    EXPECT_EQ(printed.err,
              "klap-ptx: warning: " + message + "\nklap-ptx: the settings have problems, see above\n");
    EXPECT_THAT(printed.out, Not(HasSubstr("klap.toml:")));
  }
};

TEST_P(BrokenConfig, IsOneMessageAndTheDefaults) {
  expect_one_warning(config(GetParam().text), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BrokenConfig, testing::ValuesIn(kBroken),
                         [](const auto& broken) { return broken.param.kind; });

TEST_F(BrokenConfig, MissingFile) {
  expect_one_warning("KLAP_CONFIG=" + path("absent"),
                     "FILE: cannot open: No such file or directory (fix: KLAP_CONFIG names this file)");
}

TEST_F(BrokenConfig, Folder) {
  std::filesystem::create_directory(path("folder"));
  expect_one_warning("KLAP_CONFIG=" + path("folder"),
                     "FILE: is a folder, not a file (fix: KLAP_CONFIG names this file)");
}

// Sound parts of a file with a broken one keep their effect.
TEST_F(BrokenConfig, LeavesTheRestOfTheFile) {
  const Outcome outcome = run({config("[defaults]\ngranularty = \"grid\"\ngranularity = \"none\"\n")});
  EXPECT_THAT(outcome.err, HasSubstr("klap.toml:2:1: unknown key 'granularty'"));
  EXPECT_FALSE(outcome.redirected());
}

class SetUid : public Preloaded {};

// A copy of klap-ptx that belongs to another user and runs as that one. Only root can make it.
TEST_F(SetUid, ProgramsIgnoreTheEnvironment) {
  struct statvfs file_system {};
  ASSERT_EQ(statvfs(path("").c_str(), &file_system), 0);
  if (geteuid() != 0 || (file_system.f_flag & ST_NOSUID) != 0) {
    GTEST_SKIP() << "needs root and a file system that allows set-uid programs";
  }
  const std::string copy = path("klap-ptx");
  std::filesystem::copy_file(KLAP_PTX, copy);
  ASSERT_EQ(chown(copy.c_str(), 1, 1), 0);
  ASSERT_EQ(chmod(path("").c_str(), 0755), 0);
  const auto granularity = [&](mode_t mode) {
    EXPECT_EQ(chmod(copy.c_str(), mode), 0);
    const auto result = command({copy, "config"}, {"KLAP_GRANULARITY=none"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out.substr(0, result.out.find('\n'));
  };
  EXPECT_THAT(granularity(0755), HasSubstr("none  "));
  EXPECT_THAT(granularity(04755), HasSubstr("auto  "));
}

}  // namespace
}  // namespace klap::settings_test
