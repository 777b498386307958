// Places and arguments of PTX in the words of the program's source.
#include <gmock/gmock.h>

#include "ptx/argument_words.h"
#include "ptx/source_lines.h"

namespace klap::ptx {
namespace {

constexpr char kHead[] = ".version 8.0\n.target sm_80\n.address_size 64\n";
constexpr char kFiles[] =
    ".file 1 \"/src/a.cu\"\n.file 2 \"/src/work.h\", 1700000000, 55\n"
    ".file 3 \"/cuda/bin/../include/cuda_device_runtime_api.h\"\n.file 4 \"/cuda/include/cub/device.cuh\"\n";

// Where `mark: ` in a kernel's body comes from: "/src/a.cu:10:3", or "-".
std::string source_of_mark(const std::string& body, const std::string& files = kFiles) {
  const Module module =
      parse(kHead + (".visible .entry k()\n{\n" + body + "mark: ret;\n}\n" + files), "words");
  for (uint32_t t = 0; t < module.tokens.size(); ++t) {
    if (!module.is(t, "mark")) continue;
    const auto place = SourceLines(module).of(module.position(t));
    return place ? place->file + ":" + std::to_string(place->line) + ":" + std::to_string(place->column)
                 : "-";
  }
  return "no mark";
}

TEST(SourceLines, TheDirectiveBeforeAPlaceCounts) {
  EXPECT_EQ("/src/a.cu:10:3", source_of_mark(".loc 1 9 1\n.loc 1 10 3\n"));
  EXPECT_EQ("/src/a.cu:10:1", source_of_mark(".loc 1 10 0\n")) << "columns count from 1";
  EXPECT_EQ("-", source_of_mark(""));
  EXPECT_EQ("/src/a.cu:10:3", source_of_mark(".loc 1 10 3\n.loc 1 0 3\n")) << "added by the compiler";
}

TEST(SourceLines, InlinedCodeIsWhereItIsWritten) {
  EXPECT_EQ("/src/work.h:5:2", source_of_mark(".loc 2 5 2, function_name $L, inlined_at 1 10 3\n"));
}

TEST(SourceLines, CodeOfTheToolkitIsWhereTheUserAsksForIt) {
  EXPECT_EQ("/src/a.cu:10:3", source_of_mark(".loc 3 727 5, function_name $L, inlined_at 1 10 3\n"));
  EXPECT_EQ("/src/a.cu:10:3", source_of_mark(".loc 4 33 1, function_name $L+2, inlined_at 1 10 3\n"
                                             ".loc 3 727 5, function_name $L, inlined_at 4 33 1\n"));
  EXPECT_EQ("/cuda/include/cuda_device_runtime_api.h:727:5",
            source_of_mark(".loc 3 727 5, function_name $L, inlined_at 4 33 1\n"))
      << "nothing is the user's";
}

TEST(SourceLines, DamagedDirectivesSayNothing) {
  EXPECT_EQ("/src/a.cu:9:1", source_of_mark(".loc 1 9 1\n.loc 1 10\n"));
  EXPECT_EQ("/src/work.h:5:2", source_of_mark(".loc 2 5 2, function_name $L, inlined_at 1\n"));
  EXPECT_EQ("-", source_of_mark(".loc 7 9 1\n")) << "there is no such file";
  EXPECT_EQ("-", source_of_mark(".loc 1 9 1\n", ""));
  EXPECT_EQ("-", source_of_mark(".loc 1 99999999999999999999 1\n"));
  EXPECT_EQ("/cuda/include/cuda_device_runtime_api.h:1:1",
            source_of_mark(".loc 3 1 1, function_name $L, inlined_at 3 1 1\n"))
      << "in a circle";
}

TEST(SourceLines, AFunctionHasNoLineOfTheOneBefore) {
  const Module module = parse(kHead +
                                  std::string(".visible .entry a()\n{\n.loc 1 9 1\nret;\n}\n"
                                              ".visible .entry b()\n{\nret;\n}\n") +
                                  kFiles,
                              "words");
  const SourceLines lines(module);
  EXPECT_EQ(9, lines.of({7, 1}).value_or(SourcePlace{}).line);
  EXPECT_FALSE(lines.of({11, 1}));
  EXPECT_FALSE(lines.of({1, 1}));
}

// The kernel's parameters as in `name`: an int*, an int and a structure of 40 bytes.
std::string words(std::string_view text, const std::string& name) {
  const Module module =
      parse(kHead + (".visible .entry " + name +
                     "(.param .u64 a, .param .u32 b, .param .align 8 .b8 c[40])\n{\nret;\n}\n"),
            "words");
  return in_cuda_words(text, module.functions.at(0));
}

constexpr char kVisit[] = "_Z5visitPii5Level";

TEST(ArgumentWords, HavePositionAndType) {
  EXPECT_EQ("threads with i < argument 2 of visit (int), 256 to a block",
            words("threads with i < p[8], 256 to a block", kVisit));
  EXPECT_EQ("argument 1 of visit (int*) and argument 3 of visit (Level), byte 16",
            words("p[0:8] and p[32:8]", kVisit));
  EXPECT_EQ("argument 1 of visit (int*), byte 4", words("p[4]", kVisit)) << "half of a pointer";
}

TEST(ArgumentWords, HaveTheSizeWhereTheTypeIsNotKnown) {
  EXPECT_EQ("i < argument 2 of visit (4 bytes)", words("i < p[8]", "visit"));
  EXPECT_EQ("argument 3 of f (40 bytes), byte 0", words("p[16]", "_Z1fPii")) << "of another number";
}

TEST(ArgumentWords, StandInBracketsInExpressions) {
  EXPECT_EQ("depends on 2*[argument 2 of visit (int)] + threadIdx.x",
            words("depends on 2*p[8] + tid.x", kVisit));
  EXPECT_EQ("([argument 2 of visit (int)] + 31)/32", words("(p[8] + 31)/32", kVisit));
  EXPECT_EQ("u64(blockIdx.x*blockDim.y) + gridDim.z", words("u64(ctaid.x*ntid.y) + nctaid.z", kVisit));
}

TEST(ArgumentWords, OtherTextStays) {
  for (const char* const text : {"", "p", "p[", "p[8", "p[x]", "p[8:]", "p[100]", "p[99999999999]", "sp[8]",
                                 "%tid.x", "a.tid.x", "tid.w"})
    EXPECT_EQ(text, words(text, kVisit));
}

}  // namespace
}  // namespace klap::ptx
