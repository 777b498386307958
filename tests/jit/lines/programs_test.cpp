// Programs that nvcc built with -lineinfo, rewritten: the machine code of the variants names the user's
// source lines, and calls that were inlined there. Lines are found by the comments that end them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "container/image.h"
#include "jit/module.h"
#include "line_table.h"
#include "support/error.h"
#include "support/file.h"
#include "tests/settings/given.h"

namespace klap::test {
namespace {

using jit::Launcher;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::IsEmpty;
using testing::Not;

// The line of a source file that ends in the comment.
int64_t line_of(const std::string& file, const std::string& comment) {
  std::istringstream lines(read_file(KLAP_SOURCES + file));
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.ends_with("// " + comment)) return number;
  }
  ADD_FAILURE() << file << " has no line that ends in // " << comment;
  return 0;
}

auto at(const std::string& file, const std::string& comment) {
  return AllOf(Field(&LineRow::file, file), Field(&LineRow::line, line_of(file, comment)));
}

auto inlined_at(const std::string& function, int64_t line) {
  return AllOf(Field(&LineRow::inlined, testing::HasSubstr(function)), Field(&LineRow::inlined_at, line));
}

class Built {
 public:
  Built(const std::string& program, Launcher launcher, bool drop_machine_code) {
    const container::File file = container::open_file(KLAP_PROGRAMS + program);
    for (const container::FileImage& image : file.images) {
      if (image.kind != container::ImageKind::WrapperV2) continue;
      jit::Program units = jit::program_from_fatbins(image.units, 90);
      for (jit::Unit& unit : units.units) {
        if (drop_machine_code && unit.launches) unit.cubin.clear();
      }
      jit::Request request;
      request.sm = 90;
      request.setting = test::given({{"granularity", "grid"}, {"launcher", to_string(launcher)}});
      module = rewrite_module(units, request);
    }
    rows_ = read_line_table(module.cubin);
  }

  [[nodiscard]] const jit::Variant& variant(const std::string& parent) const {
    const auto found = std::ranges::find(module.variants, parent, &jit::Variant::parent);
    if (found == module.variants.end()) throw std::runtime_error("no variant of " + parent);
    return *found;
  }

  [[nodiscard]] std::vector<LineRow> rows(const std::string& function) const {
    std::vector<LineRow> out;
    std::ranges::copy_if(rows_, std::back_inserter(out),
                         [&](const LineRow& row) { return row.function == function; });
    return out;
  }

  // Rows of a private copy of a function.
  [[nodiscard]] std::vector<LineRow> rows_of_copy(const std::string& function) const {
    std::vector<LineRow> out;
    std::ranges::copy_if(rows_, std::back_inserter(out),
                         [&](const LineRow& row) { return row.function.starts_with(function + "$klap_"); });
    return out;
  }

  jit::RewrittenModule module;

 private:
  std::vector<LineRow> rows_;
};

struct Form {
  const char* name;
  Launcher launcher;
  bool drop_machine_code;  // so that the unit is assembled anew, with the variants in it
};

class LineInfo : public testing::TestWithParam<Form> {
 protected:
  const Built built_{"lineinfo", GetParam().launcher, GetParam().drop_machine_code};
};

TEST_P(LineInfo, ParentsVariantNamesItsSource) {
  const auto rows = built_.rows(built_.variant("_Z6parentPiPKi").parent_variant);
  EXPECT_THAT(rows, Contains(at("parent.cu", "before")));
  EXPECT_THAT(rows, Contains(at("parent.cu", "launch")));
  EXPECT_THAT(rows, Contains(at("parent.cu", "after")));
  EXPECT_THAT(rows,
              Contains(AllOf(at("work.h", "inlined"), inlined_at("scaled", line_of("parent.cu", "before")))));
  EXPECT_THAT(rows, Each(Field(&LineRow::line, testing::Gt(0))));
  // The line table covers the code from its first instruction.
  ASSERT_THAT(rows, Not(IsEmpty()));
  EXPECT_EQ(0u, rows.front().address);
}

TEST_P(LineInfo, ConsumerNamesTheChildsSource) {
  const auto rows = built_.rows(built_.variant("_Z6parentPiPKi").queues.at(0).consumer);
  EXPECT_THAT(rows, Contains(at("child.cu", "child")));
  EXPECT_THAT(rows,
              Contains(AllOf(at("work.h", "inlined"), inlined_at("scaled", line_of("child.cu", "child")))));
  EXPECT_THAT(rows, Each(Field(&LineRow::file, Not("parent.cu"))));
  ASSERT_THAT(rows, Not(IsEmpty()));
  EXPECT_EQ(0u, rows.front().address);
  EXPECT_EQ("child.cu", rows.front().file);
}

TEST_P(LineInfo, ConsumerOfTheParentsOwnUnitToo) {
  const auto rows = built_.rows(built_.variant("_Z11near_parentPiPKi").queues.at(0).consumer);
  EXPECT_THAT(rows, Contains(at("parent.cu", "near child")));
  EXPECT_THAT(rows, Contains(AllOf(Field(&LineRow::file, "work.h"),
                                   inlined_at("scaled", line_of("parent.cu", "near child")))));
  EXPECT_THAT(built_.rows(built_.variant("_Z11near_parentPiPKi").parent_variant),
              Contains(at("parent.cu", "near launch")));
}

TEST_P(LineInfo, OriginalsKeepTheirLines) {
  EXPECT_THAT(built_.rows("_Z6parentPiPKi"), Contains(at("parent.cu", "launch")));
  EXPECT_THAT(built_.rows("_Z5childPii"), Contains(at("child.cu", "child")));
}

TEST_P(LineInfo, NothingIsLost) {
  for (const jit::SiteRemark& remark : built_.module.remarks) {
    EXPECT_TRUE(remark.rewritten) << remark.reason;
    EXPECT_THAT(remark.notes, Each(Not(testing::HasSubstr("omitted"))));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, LineInfo,
                         testing::Values(Form{"HostDetached", Launcher::Host, false},
                                         Form{"DeviceDetached", Launcher::Device, false},
                                         Form{"HostInPlace", Launcher::Host, true},
                                         Form{"DeviceInPlace", Launcher::Device, true}),
                         [](const auto& form) { return form.param.name; });

TEST(LineInfoOfCopies, CalledFunctionNamesItsSource) {
  const Built built("lineinfo", Launcher::Host, false);
  EXPECT_THAT(built.rows_of_copy("_Z6roundsi"), Contains(at("child.cu", "called")));
}

TEST(LineInfoOfPlainBuilds, IsEmpty) {
  const Built built("plain", Launcher::Host, false);
  ASSERT_EQ(2u, built.module.variants.size());
  EXPECT_THAT(read_line_table(built.module.cubin), IsEmpty());
}

}  // namespace
}  // namespace klap::test
