// Names read from the beginning of machine code must give the answer that the whole file gives.
#include "container/first_names.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "synthetic.h"

namespace klap::container {
namespace {

using namespace std::string_view_literals;

constexpr std::array kWords = {"LaunchDevice"sv, "GetParameterBuffer"sv};
constexpr auto kTables = "\0.shstrtab\0.strtab\0.symtab\0"sv;

std::string code_of(size_t bytes) {
  std::mt19937 random(1);
  std::string code;
  while (code.size() < bytes) code += static_cast<char>(random());
  return code;
}

// Begins as the toolkits' machine code does.
std::string cubin_with(std::string_view names, size_t code_bytes = 1 << 20) {
  std::string cubin =
      "\x7f"
      "ELF";
  cubin.resize(64);
  return cubin.append(kTables).append(names) + code_of(code_bytes);
}

std::string many_names(size_t bytes) {
  std::string names;
  for (int i = 0; names.size() < bytes; ++i) names += "_Z6kernel" + std::to_string(i) + '\0';
  return names;
}

SyntheticEntry as_cubin(SyntheticEntry entry) {
  entry.kind = static_cast<uint16_t>(EntryKind::Cubin);
  return entry;
}

std::vector<SyntheticEntry> in_each_form(const std::string& cubin) {
  return {as_cubin(raw_entry(cubin)), as_cubin(lz4_entry(cubin)), as_cubin(zstd_entry(cubin)),
          as_cubin(zstd_entry(cubin, false))};
}

bool may_name_launches(const std::string& fatbin) { return may_name(parse(fatbin).entries.at(0), kWords); }

TEST(Beginning, IsThatOfThePayload) {
  const std::string payload = cubin_with(many_names(300'000));
  for (const SyntheticEntry& entry : in_each_form(payload)) {
    const std::string bytes = fatbin_of({entry});
    for (const size_t count : {size_t{1}, size_t{64}, size_t{4096}, size_t{200'001}, payload.size() - 1})
      EXPECT_EQ(parse(bytes).entries.at(0).beginning(count), payload.substr(0, count)) << count;
    EXPECT_EQ(parse(bytes).entries.at(0).beginning(payload.size() + 9).substr(0, payload.size()), payload);
  }
}

TEST(FirstNames, AreReadToTheirEnd) {
  for (const size_t names : {10, 5'000, 70'000, 3'000'000}) {
    for (const SyntheticEntry& entry : in_each_form(cubin_with(many_names(names))))
      EXPECT_FALSE(may_name_launches(fatbin_of({entry}))) << names;
    const std::string launching = many_names(names) + "cudaLaunchDeviceV2" + '\0';
    for (const SyntheticEntry& entry : in_each_form(cubin_with(launching)))
      EXPECT_TRUE(may_name_launches(fatbin_of({entry}))) << names;
  }
}

// Linkers leave room between the tables.
TEST(FirstNames, MayHaveGaps) {
  const std::string names =
      many_names(70'000) + std::string(500, '\0') + many_names(70'000) + "cudaLaunchDeviceV2" + '\0';
  EXPECT_TRUE(may_name_launches(fatbin_of({as_cubin(zstd_entry(cubin_with(names)))})));
}

TEST(FirstNames, EndWhereTheFileDoes) {
  EXPECT_FALSE(may_name_launches(fatbin_of({as_cubin(lz4_entry(cubin_with(many_names(100'000), 0)))})));
}

TEST(FirstNames, OfAnotherLayoutMayBeAnything) {
  std::string late = cubin_with(many_names(100));
  late.replace(64, kTables.size(), std::string(kTables.size(), '\0'));
  EXPECT_TRUE(may_name_launches(fatbin_of({as_cubin(zstd_entry(late))})));
  EXPECT_TRUE(may_name_launches(fatbin_of({as_cubin(raw_entry("no ELF file"))})));
  EXPECT_TRUE(may_name_launches(fatbin_of({as_cubin(raw_entry(""))})));
}

TEST(FirstNames, CostNothingBehindThem) {
  SyntheticEntry cut = as_cubin(zstd_entry(cubin_with(many_names(100))));
  cut.compressed_size = 300'000;
  cut.payload.resize(cut.compressed_size);
  const std::string bytes = fatbin_of({cut});
  EXPECT_FALSE(may_name_launches(bytes));
  EXPECT_EQ(container_error([&] { static_cast<void>(parse(bytes).entries.at(0).payload()); }),
            "fatbin entry 0 (cubin for sm_90): the zstd frame ends too early");
}

TEST(FirstNames, OfADamagedPayloadAreAnError) {
  for (SyntheticEntry& entry : in_each_form(cubin_with(many_names(100)))) {
    if (entry.compressed_size == 0) continue;
    entry.compressed_size = 1000;
    entry.payload.resize(entry.compressed_size);
    EXPECT_NE(container_error([&] { may_name_launches(fatbin_of({entry})); }), "");
  }
}

// A file in memory, which counts what is read of it.
class CountedFile {
 public:
  explicit CountedFile(std::string bytes) : bytes_(std::move(bytes)) {}
  bool may_name_launches(uint32_t sm = 90) {
    const auto read = [this](uint64_t offset, uint64_t count) {
      std::string part = offset < bytes_.size() ? bytes_.substr(offset, count) : "";
      read_ += part.size();
      return part;
    };
    return file_may_name({bytes_.size(), read}, sm, launch_words());
  }
  [[nodiscard]] size_t read() const { return read_; }

 private:
  std::string bytes_;
  size_t read_ = 0;
};

TEST(FirstNames, OfFilesAreReadWithoutTheRest) {
  const std::string quiet = cubin_with(many_names(20'000), 4 << 20);
  const std::string launching = cubin_with(many_names(20'000) + "cudaLaunchDeviceV2" + '\0', 4 << 20);
  for (const SyntheticEntry& entry : in_each_form(quiet)) {
    SyntheticEntry other = as_cubin(raw_entry(launching));
    other.arch = 80;
    CountedFile file(fatbin_of({other, entry}));
    EXPECT_FALSE(file.may_name_launches());
    EXPECT_LT(file.read(), 400'000U);
    EXPECT_TRUE(file.may_name_launches(80)) << "the driver takes another entry there";
    EXPECT_TRUE(file.may_name_launches(100)) << "the driver takes none";
  }
  for (const SyntheticEntry& entry : in_each_form(launching))
    EXPECT_TRUE(CountedFile(fatbin_of({entry})).may_name_launches());
  CountedFile cubin(quiet);
  EXPECT_FALSE(cubin.may_name_launches());
  EXPECT_LT(cubin.read(), 400'000U);
  EXPECT_TRUE(CountedFile(launching).may_name_launches());
}

TEST(FirstNames, OfOtherFilesMayBeAnything) {
  for (const std::string& bytes : {std::string(), std::string(".version 9.0\n"), std::string("!<arch>\n"),
                                   cubin_with(many_names(3'000'000)), fatbin_of({raw_entry("ptx")})})
    EXPECT_TRUE(CountedFile(bytes).may_name_launches()) << bytes.size();
}

TEST(FirstNames, OfADamagedFileAreAnErrorOrAnything) {
  const std::string whole = fatbin_of({as_cubin(zstd_entry(cubin_with(many_names(20'000))))});
  for (size_t bytes = 0; bytes < 200; ++bytes) {
    try {
      EXPECT_TRUE(CountedFile(whole.substr(0, bytes)).may_name_launches()) << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Container) << bytes;
    }
  }
  std::string endless = whole;
  poke(endless, 8, ~uint64_t{0} - 8);
  EXPECT_TRUE(CountedFile(endless).may_name_launches());
  endless = whole;
  poke(endless, 16 + 8, ~uint64_t{0} - 100);
  EXPECT_TRUE(CountedFile(endless).may_name_launches());
}

// Units with launches, without, and the device runtime, as three modes of compression store them.
TEST(FirstNames, TellOfRealCodeWhatTheWholeFileTells) {
  int cubins = 0, launching = 0;
  for (const char* const name : {"program", "program_two_links", "plain", "parent.o", "helper.o"}) {
    const File file = open_file(fixture(name));
    for (const FileImage& image : file.images)
      for (const Fatbin& unit : image.units)
        for (const FatbinEntry& entry : unit.entries) {
          if (entry.kind != EntryKind::Cubin) continue;
          const bool names = entry.payload().find("LaunchDevice") != std::string::npos;
          EXPECT_EQ(may_name(entry, kWords), names) << name << ": " << entry.describe();
          ++cubins, launching += names;
        }
  }
  EXPECT_GT(launching, 2);
  EXPECT_GT(cubins - launching, 2);
}

}  // namespace
}  // namespace klap::container
