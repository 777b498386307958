// Links in the cache's folder: what comes back, and what is not believed.
#include "runtime/links/link_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/error.h"
#include "support/file.h"

namespace klap::runtime {
namespace {

using testing::HasSubstr;

const ProgramLink kLink{
    {{CodeKind::Ptx, "module", ".version 9.0", " -O3"}, {CodeKind::LtoIr, "", std::string("a\0b", 3), ""}},
    {"-arch=sm_90", "-ftz=true"},
    ""};

void expect_equal(const ProgramLink& expected, const ProgramLink& link) {
  EXPECT_EQ(expected.lto_options, link.lto_options);
  ASSERT_EQ(expected.inputs.size(), link.inputs.size());
  for (size_t i = 0; i < link.inputs.size(); ++i) {
    EXPECT_EQ(expected.inputs[i].kind, link.inputs[i].kind);
    EXPECT_EQ(expected.inputs[i].name, link.inputs[i].name);
    EXPECT_EQ(expected.inputs[i].bytes, link.inputs[i].bytes);
    EXPECT_EQ(expected.inputs[i].options, link.inputs[i].options);
  }
}

std::string why_not(std::string bytes) {
  try {
    decode_link(bytes);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(LinkBytes, ComeBack) {
  expect_equal(kLink, decode_link(encode(kLink)));
  expect_equal({}, decode_link(encode(ProgramLink{})));
}

TEST(LinkBytes, AreBelievedWhole) {
  const std::string bytes = encode(kLink);
  EXPECT_THAT(why_not(""), HasSubstr("is no link"));
  EXPECT_THAT(why_not("klaplnk\n"), HasSubstr("is too short"));
  for (size_t kept = 24; kept < bytes.size(); ++kept) EXPECT_NE("", why_not(bytes.substr(0, kept))) << kept;
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string other = bytes;
    other[at] ^= 1;
    EXPECT_NE("", why_not(other)) << at;
  }
}

class LinkFilesTest : public testing::Test {
 protected:
  LinkFilesTest() {
    std::string name = (std::filesystem::temp_directory_path() / "link_files.XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~LinkFilesTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(LinkFilesTest, AreFoundByTheResult) {
  const LinkFiles files(folder_ / "cache", 1 << 20);
  EXPECT_EQ(nullptr, files.find("code"));
  files.keep("code", kLink);
  files.keep("code", kLink);
  const auto found = LinkFiles(folder_ / "cache", 1 << 20).find("code");
  ASSERT_NE(nullptr, found);
  expect_equal(kLink, *found);
  EXPECT_EQ(nullptr, files.find("node"));
}

TEST_F(LinkFilesTest, ThatAreBrokenAreNotUsed) {
  const LinkFiles files(folder_ / "cache", 1 << 20);
  files.keep("code", kLink);
  write_file(folder_ / "cache" / link_file("code"), "rubbish");
  EXPECT_EQ(nullptr, files.find("code"));
}

TEST_F(LinkFilesTest, HaveNoMoreRoomThanTheCache) {
  const LinkFiles files(folder_ / "cache", 10'000);
  ProgramLink large = kLink;
  large.inputs[0].bytes.resize(6000, ' ');
  files.keep("first", large);
  files.keep("second", large);
  EXPECT_EQ(nullptr, files.find("first"));
  EXPECT_NE(nullptr, files.find("second"));
}

TEST_F(LinkFilesTest, AreNotKeptWithoutAFolder) {
  const LinkFiles nowhere("", 1 << 20), impossible(folder_ / "file" / "cache", 1 << 20);
  write_file(folder_ / "file", "");
  for (const LinkFiles* files : {&nowhere, &impossible}) {
    files->keep("code", kLink);
    EXPECT_EQ(nullptr, files->find("code"));
  }
}

}  // namespace
}  // namespace klap::runtime
