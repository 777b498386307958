// open_file on what the installed toolkit and linker really make.
#include "support/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "synthetic.h"

namespace klap::container {
namespace {

// A file that goes away with the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view bytes) : path_(unused_path()) { write_file(path_, bytes); }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  static std::filesystem::path unused_path() {
    static int count = 0;
    return testing::TempDir() + "klap_container_" + std::to_string(getpid()) + "_" + std::to_string(count++);
  }

  std::filesystem::path path_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_parent_unit(const Fatbin& unit) {
  ASSERT_EQ(unit.entries.size(), 2);
  const FatbinEntry& cubin = unit.entries[0];
  const FatbinEntry& ptx = unit.entries[1];
  EXPECT_EQ(cubin.kind, EntryKind::Cubin);
  EXPECT_EQ(cubin.compression, Compression::Zstd);
  EXPECT_TRUE(
      cubin.payload().starts_with("\x7f"
                                  "ELF"));
  EXPECT_EQ(ptx.kind, EntryKind::Ptx);
  EXPECT_EQ(ptx.arch, 90);
  EXPECT_EQ(ptx.options, "-dlcm=cg -maxrregcount=64");
  EXPECT_TRUE(contains(ptx.payload(), "_Z6parentPii"));
  EXPECT_TRUE(contains(ptx.payload(), "__cudaCDP2LaunchDeviceV2"));
  EXPECT_EQ(ptx.payload().back(), '\n');
}

void expect_helper_unit(const Fatbin& unit) {
  ASSERT_EQ(unit.entries.size(), 2);
  const FatbinEntry& ptx = unit.entries[1];
  EXPECT_EQ(ptx.compression, Compression::Lz4);
  EXPECT_EQ(ptx.options, "--generate-line-info");
  EXPECT_TRUE(ptx.name.ends_with("fixtures/helper.cu")) << ptx.name;  // as nvcc was told
  EXPECT_TRUE(contains(ptx.payload(), "_Z5scalei"));
  EXPECT_TRUE(
      unit.entries[0].payload().starts_with("\x7f"
                                            "ELF"));
}

void expect_program(const File& file) {
  ASSERT_EQ(file.images.size(), 1);
  const FileImage& image = file.images[0];
  EXPECT_EQ(image.kind, ImageKind::WrapperV2);
  EXPECT_TRUE(image.where.starts_with("wrapper ")) << image.where;
  ASSERT_EQ(image.units.size(), 3);
  expect_parent_unit(image.units[0]);
  expect_helper_unit(image.units[1]);
  EXPECT_TRUE(is_device_runtime(image.units[2]));
}

class LinkedProgram : public testing::TestWithParam<const char*> {};

TEST_P(LinkedProgram, HasOneWrapperWithTheUnits) { expect_program(open_file(fixture(GetParam()))); }

INSTANTIATE_TEST_SUITE_P(OpenFile, LinkedProgram,
                         testing::Values("program", "program_fixed", "program_packed", "library.so"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(OpenFile, ProgramWithoutRelocatableCodeHasItsPlainWrapperOnly) {
  const File file = open_file(fixture("plain"));
  ASSERT_EQ(file.images.size(), 1);
  EXPECT_EQ(file.images[0].kind, ImageKind::WrapperV1);
  ASSERT_EQ(file.images[0].units.size(), 1);
  const FatbinEntry* ptx = best_ptx(file.images[0].units[0], 90);
  ASSERT_NE(ptx, nullptr);
  EXPECT_EQ(ptx->options, "");
  EXPECT_TRUE(contains(ptx->payload(), "_Z5plainPi"));
  EXPECT_FALSE(mentions_device_launch(file.images[0].units[0]));
}

TEST(OpenFile, EachDeviceLinkHasItsOwnUnits) {
  const File file = open_file(fixture("program_two_links"));
  ASSERT_EQ(file.images.size(), 2);
  EXPECT_EQ(file.images[0].kind, ImageKind::WrapperV2);
  EXPECT_EQ(file.images[1].kind, ImageKind::WrapperV2);
  ASSERT_EQ(file.images[0].units.size(), 3);
  expect_parent_unit(file.images[0].units[0]);
  EXPECT_TRUE(is_device_runtime(file.images[0].units[2]));
  ASSERT_EQ(file.images[1].units.size(), 1);
  EXPECT_TRUE(contains(file.images[1].units[0].entries.at(0).payload(), "_Z5apartPi"));
}

// Without the strings that tell units apart no unit may be lost.
TEST(OpenFile, UnitsOfUnknownDeviceLinkGoToTheFirst) {
  std::string bytes = read_file(fixture("program_two_links"));
  for (size_t at = bytes.find("def _"); at != std::string::npos; at = bytes.find("def _", at))
    bytes[at] = 'x';
  const TemporaryFile file(bytes);
  const File opened = open_file(file.path());
  ASSERT_EQ(opened.images.size(), 1);
  EXPECT_EQ(opened.images[0].where, open_file(fixture("program_two_links")).images[0].where);
  EXPECT_EQ(opened.images[0].units.size(), 4);
}

TEST(OpenFile, ObjectFileIsWalkedBySection) {
  const File file = open_file(fixture("parent.o"));
  ASSERT_EQ(file.images.size(), 1);
  EXPECT_EQ(file.images[0].kind, ImageKind::Fatbin);
  EXPECT_TRUE(file.images[0].where.starts_with("section __nv_relfatbin at 0x")) << file.images[0].where;
  ASSERT_EQ(file.images[0].units.size(), 1);
  expect_parent_unit(file.images[0].units[0]);
}

TEST(OpenFile, ObjectFileForPtxOnly) {
  const File file = open_file(fixture("apart.o"));
  const Fatbin& unit = file.images.at(0).units.at(0);
  ASSERT_EQ(unit.entries.size(), 1);
  EXPECT_EQ(unit.entries[0].compression, Compression::None);
  EXPECT_TRUE(contains(unit.entries[0].payload(), "_Z5apartPi"));
  EXPECT_EQ(unit.entries[0].payload().back(), '\n');
  EXPECT_EQ(best_cubin(unit, 90), nullptr);
}

TEST(OpenFile, HostFileWithoutDeviceCodeHasNoImages) {
  EXPECT_TRUE(open_file("/proc/self/exe").images.empty());
}

TEST(OpenFile, BareFatbinPtxAndCubin) {
  const File object = open_file(fixture("parent.o"));
  const Fatbin& unit = object.images.at(0).units.at(0);

  const TemporaryFile fatbin({reinterpret_cast<const char*>(unit.bytes.data()), unit.bytes.size()});
  const File from_fatbin = open_file(fatbin.path());
  ASSERT_EQ(from_fatbin.images.size(), 1);
  EXPECT_EQ(from_fatbin.images[0].kind, ImageKind::Fatbin);
  EXPECT_EQ(from_fatbin.images[0].where, "whole file");
  expect_parent_unit(from_fatbin.images[0].units.at(0));

  const std::string ptx_text = unit.entries[1].payload();
  const TemporaryFile ptx(ptx_text);
  const File from_ptx = open_file(ptx.path());
  ASSERT_EQ(from_ptx.images.size(), 1);
  EXPECT_EQ(from_ptx.images[0].kind, ImageKind::Ptx);
  EXPECT_EQ(from_ptx.images[0].text, ptx_text);

  const std::string machine_code = unit.entries[0].payload();
  const TemporaryFile cubin(machine_code);
  const File from_cubin = open_file(cubin.path());
  ASSERT_EQ(from_cubin.images.size(), 1);
  EXPECT_EQ(from_cubin.images[0].kind, ImageKind::Cubin);
  EXPECT_EQ(from_cubin.images[0].text, machine_code);
}

TEST(OpenFile, OtherFilesAreErrorsThatNameThem) {
  const TemporaryFile empty("");
  EXPECT_EQ(container_error([&] { open_file(empty.path()); }), empty.path().string() + ": the file is empty");
  for (const char* text : {"hello", "int main() { return 0; }", "\xB1\x43\x62\x46\1\0\0\0"}) {
    const TemporaryFile file(text);
    EXPECT_EQ(container_error([&] { open_file(file.path()); }),
              file.path().string() +
                  ": is neither PTX, fatbin, cubin nor a host ELF file (fix: name the program, "
                  "or what nvcc makes of its kernels)");
  }
  try {
    open_file("/nonexistent/program");
    FAIL() << "opened";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Io);
  }
  const TemporaryFile archive("!<arch>\nobject.o/");
  try {
    open_file(archive.path());
    FAIL() << "opened";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::Unsupported);
  }
}

// The damage is in the program's second wrapper; the message leads there.
TEST(OpenFile, ErrorsSayWhereInTheFile) {
  std::string bytes = read_file(fixture("program"));
  const std::string_view unit_magic("\x50\xED\x55\xBA\x01\x00\x10\x00", 8);
  size_t at = bytes.find(unit_magic);   // the linked code
  at = bytes.find(unit_magic, at + 1);  // the first unit
  poke<uint64_t>(bytes, at + 8, uint64_t{1} << 40);
  const TemporaryFile file(bytes);
  const std::string message = container_error([&] { open_file(file.path()); });
  EXPECT_TRUE(message.starts_with(file.path().string() + ": wrapper ")) << message;
  EXPECT_TRUE(contains(message, ": fatbin: entries at 0x10 (1099511627776 bytes) would reach beyond the "))
      << message;
}

}  // namespace
}  // namespace klap::container
