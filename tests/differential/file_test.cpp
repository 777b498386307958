// Cases as files: what is read is what was written, and damage is named.
#include "support/file.h"

#include <gtest/gtest.h>

#include "case_file.h"
#include "process.h"
#include "random/generate.h"
#include "random/program_case.h"
#include "runs.h"
#include "support/error.h"

namespace klap::differential {
namespace {

void expect_same(const Step& a, const Step& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.stream, b.stream);
  EXPECT_EQ(a.launch_error, b.launch_error);
  EXPECT_EQ(a.buffer, b.buffer);
  EXPECT_EQ(a.from, b.from);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.stream_only, b.stream_only);
  EXPECT_EQ(a.launch.kernel, b.launch.kernel);
  EXPECT_EQ(a.launch.grid, b.launch.grid);
  EXPECT_EQ(a.launch.block, b.launch.block);
  EXPECT_EQ(a.launch.shared, b.launch.shared);
  ASSERT_EQ(a.launch.arguments.size(), b.launch.arguments.size());
  for (size_t i = 0; i < a.launch.arguments.size(); ++i) {
    EXPECT_EQ(a.launch.arguments[i].kind, b.launch.arguments[i].kind);
    EXPECT_EQ(a.launch.arguments[i].bytes, b.launch.arguments[i].bytes);
    EXPECT_EQ(a.launch.arguments[i].buffer, b.launch.arguments[i].buffer);
    EXPECT_EQ(a.launch.arguments[i].offset, b.launch.arguments[i].offset);
  }
}

void expect_same(const Case& a, const Case& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.about, b.about);
  EXPECT_EQ(a.ptx, b.ptx);
  ASSERT_EQ(a.buffers.size(), b.buffers.size());
  for (size_t i = 0; i < a.buffers.size(); ++i) {
    EXPECT_EQ(a.buffers[i].name, b.buffers[i].name);
    EXPECT_EQ(a.buffers[i].variable, b.buffers[i].variable);
    EXPECT_EQ(a.buffers[i].initial, b.buffers[i].initial);
    EXPECT_EQ(a.buffers[i].expected, b.buffers[i].expected);
    EXPECT_EQ(a.buffers[i].element, b.buffers[i].element);
  }
  ASSERT_EQ(a.steps.size(), b.steps.size());
  for (size_t i = 0; i < a.steps.size(); ++i) expect_same(a.steps[i], b.steps[i]);
  ASSERT_EQ(a.sites.size(), b.sites.size());
  for (size_t i = 0; i < a.sites.size(); ++i) {
    EXPECT_EQ(a.sites[i].parent, b.sites[i].parent);
    EXPECT_EQ(a.sites[i].left, b.sites[i].left);
  }
}

Case with_every_step() {
  Case c;
  c.name = "every_step";
  c.about = "a file loses something";
  c.ptx = ".version 9.0\n";
  Builder b(c);
  const auto bytes = b.buffer("bytes", std::vector<uint8_t>{1, 1, 1, 255, 0}, std::vector<uint8_t>{});
  const auto wide =
      b.buffer("wide", std::vector<uint64_t>{~0ULL, 5, 5}, std::vector<uint64_t>{1ULL << 63, 5, 5});
  b.variable("variable", std::vector<float>{1.5F}, std::vector<float>{-0.0F});
  b.launch_in(2, "kernel", {1, 2, 3}, {4, 5, 6}, Builder::address(wide, 8), 7, 2.5, 'x').launch_error = 1;
  c.steps.back().launch.shared = 99;
  b.fill(bytes, 200, 1);
  b.copy(wide, wide, 3);
  c.steps.push_back({});
  c.steps.back().kind = Step::Kind::Write;
  c.steps.back().buffer = wide;
  c.steps.back().bytes = bytes_of(std::vector<uint64_t>{1, 2, 3});
  b.synchronise();
  b.synchronise_stream(2);
  b.rewritten("kernel");
  b.left("other", "site-in-loop");
  return c;
}

TEST(CaseFiles, GiveBackWhatWasWritten) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "case.json";
  std::vector<Case> cases = {with_every_step()};
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    cases.push_back(random::to_case(random::generate(seed, random::parse_mix("all"))));
  }
  for (const Case& c : cases) {
    write_case(c, file);
    expect_same(c, read_case(file));
  }
}

TEST(CaseFiles, NameWhatIsWrong) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "case.json";
  write_case(with_every_step(), file);
  const std::string text = read_file(file);
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    write_file(file, other);
  };
  broken("\"synchronise\"", "\"sleep\"");
  EXPECT_THROW(read_case(file), Error);
  broken("\"steps\"", "\"stops\"");
  EXPECT_THROW(read_case(file), Error);
  broken("5*2", "five");
  EXPECT_THROW(read_case(file), Error);
  write_file(file, "{");
  EXPECT_THROW(read_case(file), Error);
  EXPECT_THROW(read_case(folder.path() / "none.json"), Error);
}

TEST(Configurations, AreNamed) {
  EXPECT_EQ(configurations().size(), chosen_configurations("").size() * 2);
  EXPECT_EQ(2U, chosen_configurations("native,grid-device").size());
  EXPECT_THROW(chosen_configurations("native,grid-nobody"), Error);
}

}  // namespace
}  // namespace klap::differential
