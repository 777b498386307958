// The pictures of what tuning found: well-formed, complete, and safe whatever a kernel is called.
#include "klap_ptx/tune/pictures.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <set>

#include "klap_ptx/tune/combinations.h"
#include "klap_ptx/tune/svg.h"
#include "support/file.h"

namespace klap::tool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

size_t count(const std::string& text, const std::string& part) {
  size_t out = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++out;
  return out;
}

// Python reads XML strictly.
void expect_well_formed(const std::vector<Picture>& pictures) {
  const std::filesystem::path folder = testing::TempDir() + "klap-pictures-" + std::to_string(getpid());
  make_folder(folder);
  for (const Picture& picture : pictures) write_file(folder / picture.file, picture.svg);
  const std::string command =
      "python3 -c 'import sys, xml.dom.minidom as d; [d.parse(file) for file in sys.argv[1:]]' '" +
      folder.string() + "'/*.svg";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::filesystem::remove_all(folder);
}

std::vector<Sample> samples(size_t number) {
  std::vector<Sample> out;
  Combinations all(candidates(), {});
  while (out.size() < number) {
    const Configuration next = *all.next();
    double ms = 0.2;
    for (const size_t i : next) ms *= i % 3 == 0 ? 1.9 : i % 5 == 1 ? 0.7 : 1.02;
    out.push_back({next, ms});
  }
  std::ranges::stable_sort(out, {}, &Sample::ms);
  return out;
}

// Findings without a model, which takes long to learn: its predictions are made up.
Findings quick_findings(size_t number) {
  Findings found;
  found.samples = samples(number);
  find_alike(found, candidates());
  for (const Candidate& candidate : candidates())
    found.importance[std::string(candidate.subject())] = 1.0 / static_cast<double>(candidates().size());
  for (size_t i = 0; i < number; i += 5)
    found.held_out.pairs.push_back({i, found.samples[i].ms, found.samples[i].ms * (i % 2 == 0 ? 1.2 : 0.9)});
  return found;
}

// KLAP_PICTURES=FOLDER keeps them, to be looked at.
std::vector<Picture> drawn(const std::string& kernel, const Findings& found) {
  std::vector<Picture> out = draw(kernel, found, candidates());
  if (const char* const folder = std::getenv("KLAP_PICTURES"))
    for (const Picture& picture : out) write_file(std::filesystem::path(folder) / picture.file, picture.svg);
  return out;
}

TEST(TunePictures, ShowAllSamples) {
  constexpr size_t kSamples = 120;
  const std::vector<Picture> all = drawn("_Z6parentPiS_i", find(samples(kSamples), candidates(), true));
  ASSERT_EQ(all.size(), 4u);
  expect_well_formed(all);
  EXPECT_EQ(all[0].file, "_Z6parentPiS_i.components.svg");
  EXPECT_EQ(count(all[0].svg, "<circle"), kSamples);
  EXPECT_EQ(all[1].file, "_Z6parentPiS_i.importance.svg");
  std::set<std::string_view> subjects;
  for (const Candidate& candidate : candidates()) subjects.insert(candidate.subject());
  EXPECT_EQ(count(all[1].svg, "class=\"bar\""), subjects.size());
  EXPECT_EQ(all[2].file, "_Z6parentPiS_i.clusters.svg");
  EXPECT_EQ(count(all[2].svg, "<circle"), kSamples);
  EXPECT_EQ(count(all[2].svg, "<polyline"), kSamples - 1);
  EXPECT_EQ(all[3].file, "_Z6parentPiS_i.prediction.svg");
  EXPECT_EQ(count(all[3].svg, "<circle"), kSamples / 5) << "those that are held out";
  for (const Picture& picture : all) {
    EXPECT_THAT(picture.svg, HasSubstr("parent(int*, int*, int)"));
    EXPECT_THAT(picture.svg, Not(HasSubstr("nan")));
    EXPECT_THAT(picture.svg, Not(HasSubstr("inf\"")));
  }
}

// Samples whose counters were read have pictures beside those of all samples.
Findings counted(size_t number) {
  std::map<Configuration, CounterValues> counters;
  for (const Sample& sample : samples(number)) {
    CounterValues& one = counters[sample.configuration];
    one["dram__throughput.avg.pct_of_peak_sustained_elapsed"] = 50 / sample.ms;
    one["smsp__thread_inst_executed_per_inst_executed.ratio"] = 32 - 3.0 * (sample.configuration.size() % 3);
    one["smsp__inst_executed.sum"] = 1e9 * sample.ms;
  }
  return find_by_counters(samples(number), counters, candidates());
}

TEST(TunePictures, ShowCounters) {
  const std::vector<Picture> all = drawn("_Z6parentPiS_i", counted(60));
  ASSERT_EQ(all.size(), 4u);
  expect_well_formed(all);
  EXPECT_EQ(all[0].file, "_Z6parentPiS_i.counters.components.svg");
  EXPECT_THAT(all[0].svg, HasSubstr("Principal components of the performance counters"));
  EXPECT_EQ(all[1].file, "_Z6parentPiS_i.counters.importance.svg");
  EXPECT_EQ(count(all[1].svg, "class=\"bar\""), 3u);
  EXPECT_THAT(all[1].svg, HasSubstr(">dram__throughput.avg.pct_of_peak_sustained_elapsed<"))
      << "not cut short";
  EXPECT_THAT(all[2].svg, HasSubstr("Clusters of samples with like performance counters"));
  EXPECT_EQ(count(all[2].svg, "<circle"), 60u);
  EXPECT_EQ(count(all[3].svg, "<circle"), 12u) << "those that are held out";
}

// Nothing lies outside of the picture.
TEST(TunePictures, StayInTheirFrames) {
  std::vector<Picture> all = drawn("_Z1bv", counted(60));
  for (const size_t number : {2u, 3u, 10u, 60u, 300u, 1200u})
    std::ranges::copy(drawn("_Z1av" + std::to_string(number), quick_findings(number)),
                      std::back_inserter(all));
  for (const Picture& picture : all) {
    std::smatch size;
    ASSERT_TRUE(std::regex_search(picture.svg, size, std::regex(R"(viewBox="0 0 (\d+) (\d+)\")")));
    const auto check = [&](const char* attribute, double most) {
      const std::regex place(attribute + std::string(R"(="(-?[0-9.]+)\")"));
      for (std::sregex_iterator i(picture.svg.begin(), picture.svg.end(), place), end; i != end; ++i) {
        EXPECT_GE(std::stod((*i)[1]), 0) << picture.file << ": " << i->str();
        EXPECT_LE(std::stod((*i)[1]), most) << picture.file << ": " << i->str();
      }
    };
    for (const char* const attribute : {" cx", " x", " x1", " x2"}) check(attribute, std::stod(size[1]));
    for (const char* const attribute : {" cy", " y", " y1", " y2"}) check(attribute, std::stod(size[2]));
  }
}

TEST(TunePictures, AreSafeWhateverAKernelIsCalled) {
  std::set<std::string> files;
  const std::vector<std::string> names = {"a<b>&\"'",
                                          "../../etc/passwd",
                                          "..__..__etc_passwd",
                                          "",
                                          "/",
                                          std::string("zero\0\x01\xff\xc3(", 9),
                                          "]]><script>",
                                          "a b;rm -rf $HOME",
                                          std::string(5000, 'x'),
                                          std::string(5001, 'x')};
  const Findings found = quick_findings(12);
  for (const std::string& name : names) {
    const std::vector<Picture> all = drawn(name, found);
    expect_well_formed(all);
    for (const Picture& picture : all) {
      EXPECT_TRUE(files.insert(picture.file).second) << "two kernels have the file " << picture.file;
      EXPECT_LT(picture.file.size(), 200u);
      EXPECT_TRUE(std::regex_match(picture.file, std::regex("[A-Za-z0-9_]+\\.[a-z]+\\.svg"))) << picture.file;
      EXPECT_THAT(picture.svg, Not(HasSubstr("<script")));
    }
  }
  EXPECT_EQ(files.size(), 4 * names.size());
}

TEST(TunePictures, AreLeftOutIfTheyWouldBeEmpty) {
  EXPECT_THAT(drawn("a", find(samples(4), candidates(), true)), testing::IsEmpty());
  const Findings equal = find(std::vector<Sample>(20, {{}, 1}), candidates(), true);
  const std::vector<Picture> all = drawn("a", equal);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].file, "a.importance.svg");
  EXPECT_EQ(all[1].file, "a.prediction.svg");
  expect_well_formed(all);
  for (const Picture& picture : all) EXPECT_THAT(picture.svg, Not(HasSubstr("nan")));
}

TEST(TuneSvg, EscapesText) {
  EXPECT_EQ(xml_text("a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
  EXPECT_EQ(xml_text("a\nb\x7f\xff"), "a?b??");
  EXPECT_EQ(xml_text("\xc3\xa4\xc3"), "\xc3\xa4?") << "cut in the middle of a letter";
  EXPECT_EQ(xml_text("\xc2\x80"), "??") << "a control character";
}

TEST(TuneSvg, HasRoundTicks) {
  EXPECT_THAT(Scale::linear(0, 10, 0, 100).ticks(), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(Scale::logarithmic(0.05, 3, 0, 100).ticks(),
              testing::Pointwise(testing::DoubleNear(1e-9), {0.05, 0.1, 0.2, 0.5, 1.0, 2.0}));
  EXPECT_EQ(Scale::logarithmic(1, 100, 0, 50).at(10), 25);
  for (const double most : {1e-7, 0.013, 1.0001, 3.0, 1e3, 1e9})
    for (const double least : {most, most * 0.999, most / 3, most / 70, most / 1e5})
      for (const Scale& scale : {Scale::linear(least, most, 0, 1), Scale::logarithmic(least, most, 0, 1)}) {
        const std::vector<double> ticks = scale.ticks();
        EXPECT_GE(ticks.size(), 1u) << least << ' ' << most;
        EXPECT_LE(ticks.size(), 11u) << least << ' ' << most;
        for (const double tick : ticks) {
          EXPECT_GE(scale.at(tick), -1e-6) << least << ' ' << most;
          EXPECT_LE(scale.at(tick), 1 + 1e-6) << least << ' ' << most;
        }
      }
}

}  // namespace
}  // namespace klap::tool
