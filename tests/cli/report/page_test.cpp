// klap report --html: what is on the page. How it looks in a browser is tested by browser_test.py.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "emulated.h"

namespace klap::cli_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kParent = "_Z6parentPi";

json site(const std::string& parent, const std::string& note) {
  return {{"unit", "u"},           {"line", 3},          {"parent", parent},
          {"child", "_Z5childPi"}, {"detail", "block"},  {"child_demangled", "child(int*)"},
          {"granularity", "grid"}, {"launcher", "host"}, {"notes", {note}},
          {"verdict", "rewritten"}};
}

json left_site(const std::string& parent, const std::string& reason) {
  return {{"unit", "u"}, {"line", 9},         {"parent", parent},
          {"child", ""}, {"verdict", "left"}, {"reason", reason}};
}

// A process that launched a parent four times.
json process() {
  const auto launch = [](double begin, double children_ms) {
    return json{{"parent", kParent},          {"context", 1},     {"begin_ms", begin}, {"parent_ms", 0.1},
                {"children_ms", children_ms}, {"is_slice", false}};
  };
  return {{"format", 1},
          {"process", 7},
          {"modules",
           {{{"how", "rewritten"},
             {"loads", 1},
             {"cache", "hit"},
             {"sites", {site(kParent, "order kept: why")}}}}},
          {"launches", {{"redirected", {{kParent, 4}}}, {"left", {{kParent, {{"stream capture", 2}}}}}}},
          {"parents", {{kParent, {{"engine", "aggregation at grid by the host"}}}}},
          {"gpu_ms",
           {{"launches", {{kParent, 4}}}, {"parents", {{kParent, 0.4}}}, {"consumers", {{kParent, 1.6}}}}},
          {"timeline",
           {{"first", {launch(-1, 0.2), launch(0, 0.2), launch(90, 0.4), launch(91, 0.8)}},
            {"slowest", {launch(91, 0.8), launch(90, 0.4)}}}},
          {"child_sizes",
           {{{"parent", kParent},
             {"child", "_Z5childPi"},
             {"counted", "threads"},
             {"sizes", {{{"up_to", 1}, {"children", 3}}, {{"up_to", 7}, {"children", 9}}}}}}},
          {"queues", {{"most_bytes", 3 << 20}}},
          {"frames", {{"bytes_taken", 2048}, {"bytes_returned", 1024}, {"refused", 0}}},
          {"devices", {"a GPU"}},
          {"children_aggregated", 12}};
}

class ReportPage : public OnEmulator {
 protected:
  std::string page(const std::vector<json>& processes, const std::vector<std::string>& options = {}) {
    std::vector<std::string> words{"report", "--html", "-"};
    for (size_t i = 0; i < processes.size(); ++i)
      words.push_back(write(fmt::format("rank-{}.json", i), processes[i].dump()));
    words.insert(words.end(), options.begin(), options.end());
    const Result result = klap(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, AllOf(testing::StartsWith("<!doctype html>"), testing::EndsWith("</html>\n")));
    return result.out;
  }
};

TEST_F(ReportPage, ShowsWhatIsKnownOfAKernel) {
  const std::string found = page({process()});
  EXPECT_THAT(found, HasSubstr("<h1>4 launches of 1 kernel rewritten</h1>"));
  EXPECT_THAT(found, AllOf(HasSubstr("aggregation at grid by the host"), HasSubstr("order kept: why"),
                           HasSubstr("class=\"badge slow\""), HasSubstr("as written: stream capture")));
  EXPECT_THAT(found, HasSubstr("the stream is being captured into a graph")) << "the reason's meaning";
  EXPECT_THAT(found, HasSubstr("Launch into a stream that is not being captured")) << "and what helps";
  EXPECT_THAT(found, AllOf(HasSubstr("3.00 MB"), HasSubstr("2.00 KB"), HasSubstr("a GPU")));
  EXPECT_THAT(found, HasSubstr(">2.00 ms<")) << "GPU time of all launches";
  // The size that no child had is shown, too.
  EXPECT_THAT(found, ContainsRegex("<td>1</td>.*>3<.*<td>2 to 3</td>.*>0<.*<td>4 to 7</td>.*>9<"));
}

TEST_F(ReportPage, SaysWhichOrderASiteKeeps) {
  const auto page_of = [&](const std::string& note, const std::string& detail = "") {
    json one = process();
    json& rewritten = one["modules"][0]["sites"][0];
    rewritten["notes"] = json::array({"a note", note});
    rewritten["detail"] = detail;
    rewritten["source"] = {{"file", "src/a.cu"}, {"line", 12}, {"column", 3}};
    return page({one});
  };
  EXPECT_THAT(page_of("order proven: why"),
              AllOf(HasSubstr(">order proven</span>"), HasSubstr("src/a.cu:12")));
  EXPECT_THAT(page_of("order tolerated: why"), HasSubstr(">order tolerated</span>"));
  EXPECT_THAT(page_of("order relaxed: why"), HasSubstr(">order relaxed</span>"));
  EXPECT_THAT(page_of("another"), HasSubstr(">order free</span>"));
  const std::string kept =
      page_of("another", "block 64x1x1, executed in the order of its stream, one kernel");
  EXPECT_THAT(kept, AllOf(HasSubstr(">order kept</span>"), HasSubstr("--set ordering=relaxed")));
}

// A rewritten parent may have a variant for launches whose children might conflict.
TEST_F(ReportPage, CountsLaunchesThatKeptTheOrder) {
  json one = process();
  one["modules"][0]["sites"][0]["notes"] = json::array({"order tolerated: why"});
  EXPECT_THAT(page({one}), Not(HasSubstr("ordering=relaxed")));
  one["launches"]["left"] = json::object();
  EXPECT_THAT(page({one}), HasSubstr("Nothing was left as it is.")) << "an older version did not count them";
  one["launches"]["ordered"] = json::object();
  EXPECT_THAT(page({one}), HasSubstr("Nothing was left as it is, and no order had to be kept."));
  one["launches"]["ordered"] = {{kParent, 3}};
  EXPECT_THAT(page({one}), AllOf(HasSubstr("of these in CUDA&apos;s order"), HasSubstr("ordering=relaxed")));
  const Result text = klap({"report", write("ordered.json", one.dump())});
  EXPECT_THAT(text.out, AllOf(HasSubstr("the children of 3 launches kept CUDA's order"),
                              HasSubstr("launches: 3 of them with the children in CUDA's order")));
}

TEST_F(ReportPage, TimesOfLaunchesCountFromTheFirst) {
  const std::string found = page({process()});
  EXPECT_THAT(found, HasSubstr("parent: begins at 0 ms, parent 100 \u00b5s, children 200 \u00b5s"));
  EXPECT_THAT(found, HasSubstr("parent: begins at 92.0 ms"));
  EXPECT_THAT(found, HasSubstr("a pause of 89.7 ms, drawn shorter"));
  EXPECT_LT(found.find("<td data-label=\"Begins at\" class=\"number\">92.0 ms"),
            found.find("<td data-label=\"Begins at\" class=\"number\">91.0 ms"));
}

TEST_F(ReportPage, EscapesEveryText) {
  const std::string evil = "<script>alert('x')</script>&\"",
                    safe = "&lt;script&gt;alert(&apos;x&apos;)&lt;/script&gt;&amp;&quot;";
  json hostile = process();
  hostile["devices"] = {evil};
  hostile["run"] = {{"command", {"./app", evil}}, {"seconds", 1.0}, {"is_native", false}};
  hostile["launches"]["redirected"][evil] = 2;
  hostile["launches"]["left"][evil][evil] = 1;
  hostile["parents"][evil]["engine"] = evil;
  hostile["counters"] = {{"launches", {{evil, 1}}}, {"means", {{evil, {{evil, 1.0}}}}}};
  hostile["timeline"]["first"][0]["parent"] = evil;
  json& sites = hostile["modules"][0]["sites"];
  sites.push_back(site(evil, evil));
  sites.back()["child_demangled"] = sites.back()["detail"] = sites.back()["unit"] = evil;
  sites.push_back(left_site(evil, evil));
  hostile["modules"].push_back({{"how", "failed: " + evil}, {"loads", 1}});
  const std::string found = page({hostile});
  EXPECT_THAT(found, AllOf(HasSubstr(safe), Not(HasSubstr("<script>alert"))));
  EXPECT_THAT(found, Not(HasSubstr("{{"))) << "every place of the template is filled";
}

TEST_F(ReportPage, NeedsNoOtherFile) {
  EXPECT_THAT(page({process()}),
              AllOf(Not(HasSubstr("http://")), Not(HasSubstr("https://")), Not(HasSubstr("src=")),
                    Not(HasSubstr("url(")), Not(HasSubstr("@import"))));
}

TEST_F(ReportPage, AddsUpRanksAndShowsEach) {
  const std::string found = page({process(), process(), process()});
  EXPECT_THAT(found, AllOf(HasSubstr("12 launches of 1 kernel rewritten"), HasSubstr("3 processes")));
  EXPECT_THAT(found,
              AllOf(HasSubstr("<strong>rank-0</strong>: 4 launches"), HasSubstr("<strong>rank-2</strong>")));
  EXPECT_THAT(
      found,
      HasSubstr("<td data-label=\"Process\">rank-1</td><td data-label=\"Id\" class=\"number\">7</td>"));
  EXPECT_THAT(found, HasSubstr("3.00 MB")) << "the most of one process";
  const std::string file = write("all.json", json::array({process(), process()}).dump());
  EXPECT_THAT(klap({"report", file, "--html", "-"}).out, HasSubstr("<strong>all, process 7</strong>"));
}

TEST_F(ReportPage, SaysWhatWasNotMeasured) {
  const std::string found = page({json{{"format", 1}, {"children_aggregated", nullptr}}});
  EXPECT_THAT(found, HasSubstr("<h1>None of the program&apos;s modules launches kernels from kernels</h1>"));
  EXPECT_THAT(found, HasSubstr("There was nothing to rewrite."));
  EXPECT_THAT(found, AllOf(HasSubstr("--set timing=1"), HasSubstr("--set sizes=1"), HasSubstr("--native")));
  EXPECT_THAT(found, AllOf(Not(HasSubstr("id=\"kernel-table\"")), Not(HasSubstr("id=\"timeline\""))));
  EXPECT_THAT(page({process()}), AllOf(Not(HasSubstr("--set timing=1")), Not(HasSubstr("--set sizes=1"))));
}

TEST_F(ReportPage, EveryReasonHasAMeaningAndAnAdvice) {
  const json reasons = klap({"reasons", "--json"}).json();
  json all = process();
  for (const json& reason : reasons["sites"])
    all["modules"][0]["sites"].push_back(
        left_site("of_" + reason["reason"].get<std::string>(), reason["reason"]));
  for (const json& reason : reasons["launches"])
    all["launches"]["left"][kParent][reason["reason"].get<std::string>()] = 1;
  const std::string found = page({all});
  EXPECT_THAT(found, Not(HasSubstr("this reason is of another version")));
  EXPECT_THAT(found, HasSubstr("Compile without -G"));
  all["launches"]["left"][kParent]["a reason of tomorrow"] = 1;
  EXPECT_THAT(page({all}), HasSubstr("this reason is of another version"));
}

TEST_F(ReportPage, ShowsTheGainAgainstABaseline) {
  json native = process();
  native["run"] = {{"seconds", 35.0}, {"is_native", true}};
  native["modules"][0]["compile_ms"] = {{"link", 1000.0}, {"templates", 4000.0}};  // which no native run does
  native["gpu_ms"]["consumers"][kParent] = 99.6;
  json now = process();
  now["run"] = {{"seconds", 10.0}, {"is_native", false}, {"native", {{"seconds", 20.0}}}};
  EXPECT_THAT(page({now}),
              AllOf(HasSubstr("<strong>2.00\u00d7</strong>"), HasSubstr("natively 20.0 s, now 10.0 s")))
      << "klap run --compare knows the program's time";
  const std::string file = write("native.json", native.dump());
  const std::string found = page({now}, {"--baseline", file});
  EXPECT_THAT(found,
              AllOf(HasSubstr("<strong>50.0\u00d7</strong>"), HasSubstr("<strong>3.00\u00d7</strong>")));
  EXPECT_THAT(found, HasSubstr("a launch with its children takes 25.0 ms natively, and now 500 \u00b5s"));
  const Result text = klap({"report", write("now.json", now.dump()), "--baseline", file});
  EXPECT_THAT(text.out,
              HasSubstr("\nwhole program: 30000.000 ms natively, 10000.000 ms now, 3.00 times as fast\n"
                        "GPU time: 100.000 ms natively, 2.000 ms now, 50.00 times as fast\n"
                        "one launch of parent(int*): 25.000 ms natively, 0.500 ms now, 50.00 times as "
                        "fast\n"));
  native["run"]["is_native"] = false;
  EXPECT_THAT(page({now}, {"--baseline", write("other.json", native.dump())}), HasSubstr("30.0 s, now"));
  EXPECT_THAT(klap({"report", path("now.json"), "--baseline", path("none.json")}).err,
              HasSubstr("none.json: cannot open"));
}

// Those of a recursion are not counted.
TEST_F(ReportPage, SaysHowToHaveSizesWhereNobodyLooked) {
  json counted = process();
  counted["child_sizes"] = json::array();
  EXPECT_THAT(page({counted}), Not(HasSubstr("klap run --set sizes=1")));
  counted["child_sizes"] = nullptr;
  EXPECT_THAT(page({counted}), HasSubstr("klap run --set sizes=1"));
}

TEST_F(ReportPage, TakesTheDriversTimeOffThatOfALoad) {
  json loaded = process();
  loaded["modules"][0]["load_ms"] = 19.0;
  loaded["modules"][0]["driver_ms"] = 12.5;
  EXPECT_THAT(page({loaded}), HasSubstr("6.50 ms"));
}

// A native run that loses launches ends in another way, and sooner.
TEST_F(ReportPage, WarnsOfRunsThatEndInDifferentWays) {
  json native = process(), now = process();
  native["run"] = {{"seconds", 1.0}, {"is_native", true}, {"exit_code", 1}};
  now["run"] = {{"seconds", 2.0}, {"is_native", false}, {"exit_code", 0}};
  const std::string warning = "The exit code was 1 natively, and is 0 now";
  const std::string file = write("native.json", native.dump());
  EXPECT_THAT(page({now}, {"--baseline", file}), HasSubstr(warning));
  EXPECT_THAT(klap({"report", write("now.json", now.dump()), "--baseline", file}).out, HasSubstr(warning));
  now["run"]["exit_code"] = 1;
  EXPECT_THAT(page({now}, {"--baseline", file}), Not(HasSubstr("The exit code")));
  now["run"]["native"] = {{"seconds", 3.0}, {"exit_code", 0}};
  EXPECT_THAT(page({now}), HasSubstr("The exit code was 0 natively, and is 1 now"));
}

// Without a baseline, the guard may have measured both.
TEST_F(ReportPage, ShowsWhatTheGuardMeasured) {
  json guarded = process();
  guarded["parents"][kParent]["guard"] = {
      {{"launches", 3}, {"children", 5}, {"choice", "variant"}, {"variant_ms", 0.5}, {"original_ms", 4.0}}};
  EXPECT_THAT(page({guarded}), AllOf(HasSubstr("natively, as the guard measured"), HasSubstr("8.00\u00d7")));
}

TEST_F(ReportPage, RunsOfAProgramMakeIt) {
  const std::string native = path("native.json"), now = path("now.json"), html = path("page.html");
  const Result first = klap_on_micro({"run", "--native", "--report", native});
  EXPECT_THAT(first.err, HasSubstr("7 launches of parents (original is asked for)"));
  EXPECT_THAT(first.out, HasSubstr("5 right, 0 wrong"));
  EXPECT_EQ(klap_on_micro({"run", "--profile", "--report", now}).exit_code, 0);
  const json stats = json::parse(read(now));
  EXPECT_EQ(stats["run"]["command"][0], micro_[0]);
  EXPECT_EQ(stats["run"]["is_native"], false);
  EXPECT_GT(stats["run"]["seconds"], 0.0);
  EXPECT_GE(stats["timeline"]["first"].size(), 6u);
  EXPECT_GT(stats["queues"]["most_bytes"], 0u);
  const Result result = klap({"report", now, "--baseline", native, "--html", html});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, ContainsRegex("GPU time: [0-9.]+ ms natively, [0-9.]+ ms now"));
  EXPECT_THAT(read(html), AllOf(HasSubstr("an emulated GPU, whose times say nothing"), HasSubstr("280")));
  EXPECT_THAT(klap({"report", now, "--html", path("no/page.html")}).err, HasSubstr("no/page.html"));
  EXPECT_EQ(klap_on_micro({"run", "--native", "--compare"}).exit_code, 2);
}

}  // namespace
}  // namespace klap::cli_test
