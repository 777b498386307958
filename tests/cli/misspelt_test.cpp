// Misspelt words of every kind, in each tool and in the preloaded library: each is told the nearest one.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>

#include "emulated.h"

namespace klap::cli_test {
namespace {

using testing::HasSubstr;

using Words = std::vector<std::string>;

class Misspelt : public OnEmulator {};

struct Mistake {
  const char* tool;
  Words words;
  const char* message;
};

TEST_F(Misspelt, CommandsAndOptions) {
  const std::string file = program("launches.ptx");
  for (const Mistake& row : {
           Mistake{KLAP, {"cache", "claer"}, "unknown subcommand 'cache claer'; did you mean 'cache clear'?"},
           Mistake{KLAP_PTX, {"cache", "wram", file}, "did you mean 'cache warm'?"},
           Mistake{KLAP_PTX, {"cache", "frobnicate"}, "the subcommands are ls, clear, warm"},
           Mistake{KLAP, {"exlpain", file}, "unknown subcommand 'exlpain'; did you mean 'explain'?"},
           Mistake{KLAP, {"cache"}, "a subcommand is required: ls, clear, warm"},
           Mistake{KLAP, {"help"}, "did you mean --help?"},
           Mistake{KLAP, {"inspect", file}, "'inspect' is a subcommand of klap-ptx: klap-ptx inspect"},
           Mistake{KLAP_PTX, {"run", "./app"}, "'run' is a subcommand of klap: klap run"},
           Mistake{KLAP_PTX, {"doctor"}, "'doctor' is a subcommand of klap: klap doctor"},
           Mistake{KLAP, {"--versoin"}, "unknown option '--versoin'; did you mean --version?"},
           Mistake{KLAP, {"--stats", "run", "./app"}, "options follow the subcommand"},
           Mistake{KLAP, {"explain", file, "-json"}, "did you mean --json?"},
           Mistake{KLAP, {"explain", file, "--chek"}, "did you mean --check?"},
           Mistake{KLAP, {"explain", file, "--onyl=child"}, "did you mean --only?"},
           Mistake{KLAP, {"explain", file, "--lanucher", "host"}, "did you mean --launcher?"},
           Mistake{KLAP, {"explain", file, "--launcher", "hots"}, "did you mean 'host'?"},
           Mistake{KLAP, {"doctor", "--jsno"}, "did you mean --json?"},
           Mistake{KLAP, {"tune", "--sample", "1", "./app"}, "did you mean --samples?"},
           Mistake{KLAP, {"run", "--comapre", "./app"}, "did you mean --compare?"},
           Mistake{
               KLAP, {"run", "--set", "KLAP_GRANULARTY=grid", "./app"}, "did you mean 'KLAP_GRANULARITY'?"},
           Mistake{KLAP, {"run", "--set", "optimise=-flaten", "./app"}, "did you mean 'flatten'?"},
           Mistake{KLAP_PTX, {"settings", "--develpers"}, "did you mean --developers?"},
           Mistake{KLAP_PTX, {"config", "--chidl=x"}, "did you mean --child?"},
           Mistake{
               KLAP_PTX, {"inspect", file, "--dump-after=plam"}, "unknown pass 'plam'; did you mean 'plan'?"},
       }) {
    Words words = row.words;
    words.insert(words.begin(), row.tool);
    const Result result = command(words);
    SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(row.message));
  }
}

TEST_F(Misspelt, VariablesInEveryToolAndInTheLibrary) {
  const std::string file = program("launches.ptx");
  const Words variable = {"KLAP_GRANULARTY=grid"};
  const std::string warning =
      "warning: KLAP_GRANULARTY: unknown environment variable (fix: did you mean KLAP_GRANULARITY?)\n";
  for (const Words& words : {Words{KLAP, "explain", file}, Words{KLAP_PTX, "explain", file},
                             Words{KLAP_PTX, "rewrite", file, "-o", path("out.ptx")},
                             Words{KLAP_PTX, "inspect", file, "--dump-after=plan"}}) {
    const Result result = command(words, variable);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(warning)) << words[1];
  }
  EXPECT_EQ(klap({"config"}, variable).exit_code, 1);
  EXPECT_THAT(klap({"config"}, variable).err, HasSubstr(warning));
  EXPECT_THAT(klap_on_micro({"run"}, variable).err, HasSubstr("klap: " + warning));
}

TEST_F(Misspelt, OtherSoftwareMayUseThePrefix) {
  EXPECT_EQ(klap({"explain", program("launches.ptx")}, {"KLAP_SOMETHING_ELSE_ALTOGETHER=1"}).err, "");
}

}  // namespace
}  // namespace klap::cli_test
