// Remarks name lines of the source, of programs that nvcc built with -lineinfo. Lines are found by the
// comments that end them.
#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "container/image.h"
#include "jit/module.h"
#include "jit/plan/describe.h"
#include "jit/plan/remark_words.h"
#include "support/file.h"

namespace klap::test {
namespace {

using testing::EndsWith;
using testing::StartsWith;

std::vector<jit::SiteRemark> remarks_of(const std::string& program) {
  const container::File file = container::open_file(KLAP_PROGRAMS + program);
  std::vector<jit::SiteRemark> remarks;
  for (const container::FileImage& image : file.images) {
    if (image.kind != container::ImageKind::WrapperV2) continue;
    std::ranges::move(explain_module(jit::program_from_fatbins(image.units, 90), {}),
                      std::back_inserter(remarks));
  }
  EXPECT_EQ(2u, remarks.size());
  return remarks;
}

bool ends_in_comment(const std::string& file, int number, const std::string& comment) {
  std::istringstream lines(read_file(KLAP_SOURCES + file));
  std::string line;
  for (int i = 0; i < number; ++i) std::getline(lines, line);
  return line.ends_with("// " + comment);
}

TEST(Remarks, NameTheLaunchInTheSource) {
  for (const jit::SiteRemark& remark : remarks_of("lineinfo")) {
    const bool is_near = remark.parent == "_Z11near_parentPiPKi";
    EXPECT_THAT(remark.source.file, EndsWith("/parent.cu"));
    EXPECT_TRUE(ends_in_comment("parent.cu", remark.source.line, is_near ? "near launch" : "launch"))
        << remark.source.line;
    EXPECT_THAT(describe(remark, "program"), StartsWith(remark.source.file + ":"));
  }
}

TEST(Remarks, NameThePtxWhereItNamesNoLines) {
  for (const jit::SiteRemark& remark : remarks_of("plain")) {
    EXPECT_FALSE(remark.source.is_known());
    EXPECT_THAT(describe(remark, "program"), StartsWith("program:" + std::to_string(remark.line) + ":"));
  }
}

constexpr char kKernel[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.loc 1 7 3\nret;\n}\n.file 1 "
    "\"/src/a.cu\"\n";

TEST(Remarks, PlacesOfAnotherUnitStayThoseOfItsPtx) {
  const ptx::Module module = ptx::parse(kKernel, "unit");
  const ptx::SourceLines lines(module);
  jit::SiteRemark remark;
  const std::string text = "_Z5childPii waits (line 7:1), and line 7 does; line x:1, inline 7:1";
  EXPECT_EQ("child(int*, int) waits (line 7:1), and line 7 does; line x:1, inline 7:1",
            jit::SourceWords(lines, true).of(text, remark))
      << "the remark itself is at a line of the PTX";
  remark.source = {"/src/a.cu", 2, 1};
  EXPECT_EQ("child(int*, int) waits (a.cu:7:3), and PTX line 7 does; line x:1, inline 7:1",
            jit::SourceWords(lines, true).of(text, remark));
  EXPECT_EQ("child(int*, int) waits (PTX line 7:1), and PTX line 7 does; line x:1, inline 7:1",
            jit::SourceWords(lines, false).of(text, remark));
  EXPECT_EQ("line ", jit::SourceWords(lines, true).of("line ", remark));
}

}  // namespace
}  // namespace klap::test
