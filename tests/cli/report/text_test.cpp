// klap report: statistics of one or several files as text.
#include <gmock/gmock.h>

#include "emulated.h"

namespace klap::cli_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Two kernels: one whose launches are rewritten but for three, and one with a launch site that is left.
constexpr const char* kStatistics = R"json({
  "format": 1, "process": 1, "modules_passed_through": 2,
  "modules": [{"how": "rewritten", "loads": 1, "cache": "miss", "compile_ms": {"parse": 1.0, "link": 2.0},
    "sites": [
      {"unit": "u", "line": 3, "parent": "_Z6parentPi", "child": "_Z5childPi", "child_demangled": "child(int*)",
       "verdict": "rewritten", "granularity": "grid", "launcher": "host", "detail": "block 32x1x1"},
      {"unit": "u", "line": 9, "parent": "_Z5otherPi", "child": "_Z5childPi", "child_demangled": "child(int*)",
       "verdict": "left", "reason": "site-in-loop", "detail": "the launch stands in a loop"}]}],
  "launches": {"redirected": {"_Z6parentPi": 4}, "left": {"_Z6parentPi": {"stream capture": 3}}},
  "parents": {"_Z6parentPi": {"engine": "aggregation at grid by the host"}},
  "gpu_ms": {"launches": {"_Z6parentPi": 2}, "parents": {"_Z6parentPi": 0.5}, "consumers": {"_Z6parentPi": 1.25}},
  "children_aggregated": 10, "children_launched_natively": 1, "links_promoted": 0
})json";

class Report : public OnEmulator {
 protected:
  void expect_refused(const std::string& text, const std::string& message) {
    const Result result = klap({"report", write("bad.json", text)});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(HasSubstr("bad.json"), HasSubstr(message)));
  }
};

TEST_F(Report, PrintsWhatIsKnownOfEachKernel) {
  const Result result = klap({"report", write("stats.json", kStatistics)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(
      result.out,
      "4 launches of 1 kernel rewritten\n"
      "10 children run together, 1 launched by the device as written, GPU time of 2 launches: 0.500 ms for "
      "parents, 1.250 ms for children\n"
      "left as they are: 1 launch site (site-in-loop), 3 launches of parents (stream capture); klap reasons "
      "explains why\n"
      "1 module compiled in 3 ms, which later runs take from the cache\n"
      "\n"
      "other(int*)\n"
      "  launches: not counted, as no launch site is rewritten\n"
      "  site: child(int*): left, site-in-loop: the launch stands in a loop\n"
      "\n"
      "parent(int*)\n"
      "  launches: 4 rewritten, aggregation at grid by the host\n"
      "  launches: 3 as written: stream capture\n"
      "  children: 10\n"
      "  GPU time: 0.500 ms for parents, 1.250 ms for children, in 2 launches\n"
      "  site: child(int*): grid by host\n");
}

TEST_F(Report, AddsUpSeveralFiles) {
  const std::string one = write("0.json", kStatistics),
                    array = std::string("[") + kStatistics + "," + kStatistics + "]";
  const Result result = klap({"report", one, write("1.json", array)});
  EXPECT_THAT(result.out,
              HasSubstr("12 launches of 1 kernel rewritten, in 3 processes\n30 children run together"));
  EXPECT_THAT(result.out, HasSubstr("1 launch site (site-in-loop), 9 launches of parents (stream capture)"))
      << "the processes have the same launch site";
  EXPECT_THAT(result.out, HasSubstr("GPU time: 1.500 ms for parents, 3.750 ms for children, in 6 launches"));
}

TEST_F(Report, SaysNothingThatIsNotKnown) {
  const Result result =
      klap({"report", write("stats.json", R"({"format": 1, "children_aggregated": null})")});
  EXPECT_EQ(result.out,
            "none of the program's modules launches kernels from kernels\n"
            "children were not counted\n"
            "nothing was left as it is\n");
}

TEST_F(Report, BadFilesAreNamed) {
  expect_refused("{", "no statistics of klap_jit");
  expect_refused("[]", "statistics of no process");
  expect_refused("{\"modules\": 3}", "no statistics of klap_jit");
  expect_refused("{\"format\": 2}", "statistics of another version");
  EXPECT_THAT(klap({"report", path("absent.json")}).err, HasSubstr("absent.json: cannot open"));
  EXPECT_EQ(klap({"report"}).exit_code, 2);
  // Members of the wrong kind count as missing.
  const Result odd = klap({"report", write("odd.json", R"({"format": 1, "modules": [7], "launches": "none",
      "parents": {"k": 1}, "child_sizes": [{"sizes": 1}], "gpu_ms": {"launches": [1]}})")});
  EXPECT_EQ(odd.exit_code, 0) << odd.err;
  EXPECT_THAT(odd.err, Not(HasSubstr("exception")));
}

}  // namespace
}  // namespace klap::cli_test
