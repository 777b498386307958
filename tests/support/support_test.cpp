// Errors, files, names and the log's levels: what every layer relies on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "support/demangle.h"
#include "support/error.h"
#include "support/file.h"
#include "support/log.h"

namespace klap {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Error, SaysWhereWhyAndWhatMendsIt) {
  const Error error = Error(ErrorCode::Parse, "unexpected byte")
                          .at("a.ptx", 3, 5)
                          .source_line("  ld.x")
                          .kernel("k")
                          .fix("check the file");
  EXPECT_STREQ("a.ptx:3:5: unexpected byte [in kernel k] (fix: check the file)\n      ld.x\n        ^",
               error.what());
  EXPECT_EQ("unexpected byte", error.reason());
  EXPECT_STREQ("plain", Error(ErrorCode::Io, "plain").what());
}

TEST(Error, HasANameForEveryCode) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::Internal); ++code) {
    EXPECT_STRNE("unknown", to_string(static_cast<ErrorCode>(code)));
  }
}

template <typename Action>
std::string io_error(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(ErrorCode::Io, error.code());
    return error.what();
  }
  return "no error";
}

TEST(Files, AreReadAndWrittenWhole) {
  const fs::path folder = fs::path(testing::TempDir()) / "klap_support", file = folder / "file";
  const std::string bytes("a\0b\n", 4);
  make_folder(folder);
  make_folder(folder);
  write_file(file, bytes);
  EXPECT_EQ(bytes, read_file(file));
  fs::remove_all(folder);
}

TEST(Files, NeedTheFolderAroundThem) {
  const fs::path folder = fs::path(testing::TempDir()) / "klap_no_folder";
  EXPECT_THAT(io_error([&] { write_file(folder / "file", "a"); }),
              HasSubstr("cannot create: there is no folder " + folder.string()));
  EXPECT_THAT(io_error([&] { make_folder(folder / "deep"); }), HasSubstr("cannot make the folder"));
  EXPECT_FALSE(fs::exists(folder));
}

TEST(Files, NameWhatIsWrong) {
  EXPECT_THAT(io_error([] { read_file("/no/such/file"); }),
              HasSubstr("/no/such/file: cannot open: No such file"));
  EXPECT_THAT(io_error([] { read_file("/tmp"); }), HasSubstr("/tmp: is a folder"));
  EXPECT_THAT(io_error([] { write_file("/dev/null/x", "a"); }), HasSubstr("/dev/null/x: cannot create"));
}

TEST(Files, ReportAFullDiskAndLeaveDevicesAlone) {
  EXPECT_THAT(io_error([] { write_file("/dev/full", "a"); }),
              HasSubstr("/dev/full: cannot write: No space left"));
  EXPECT_TRUE(fs::exists("/dev/full"));
}

TEST(Files, AreNamedAfterTheProcess) {
  const std::string id = std::to_string(getpid());
  for (const char* const variable :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"})
    unsetenv(variable);
  EXPECT_EQ("a" + id + "-" + id, with_process("a%p-%r"));
  setenv("SLURM_PROCID", "12", 1);
  EXPECT_EQ("a" + id + "-12", with_process("a%p-%r"));
  setenv("PMI_RANK", "../b", 1);  // a name of a file stays in its folder
  EXPECT_EQ("12", with_process("%r"));
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  EXPECT_EQ("3 3", with_process("%r %r"));
}

TEST(Names, AreDemangled) {
  EXPECT_EQ("child(int*)", demangle("_Z5childPi"));
  EXPECT_EQ("plain", demangle("plain"));
  EXPECT_EQ("_Zwrong", demangle("_Zwrong"));
  // As nvcc names kernels that other units cannot see.
  EXPECT_EQ("one(int*)", demangle("__nv_static_28__dc4345b2_7_dead_cu_bcd96006__Z3onePi"));
  EXPECT_EQ("(anonymous namespace)::one(int*)",
            demangle("__nv_static_28__dc4345b2_7_dead_cu_bcd96006__ZN39_GLOBAL__N__dc4345b2_7_dead_cu_"
                     "bcd960063oneEPi"));
  EXPECT_EQ("plain", demangle("__nv_static_28__dc4345b2_7_dead_cu_bcd96006_plain"));
  for (const char* name :
       {"__nv_static_", "__nv_static_x", "__nv_static_9", "__nv_static_9_", "__nv_static_2_abc",
        "__nv_static_99999999999999999999_a_b", "__nv_static_18446744073709551615_a_b"})
    EXPECT_EQ(name, demangle(name));
}

TEST(Log, TakesLevelsByName) {
  set_log_level("info");
  EXPECT_TRUE(log().should_log(spdlog::level::info));
  set_log_level("off");
  EXPECT_FALSE(log().should_log(spdlog::level::critical));
  EXPECT_THROW(set_log_level("loud"), Error);
}

}  // namespace
}  // namespace klap
