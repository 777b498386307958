// Damaged images of every sort: cut off anywhere, bits turned over anywhere. Whatever happens must be a
// result or an Error(Container); the sanitizers see to the rest. The bits are drawn from a fixed seed.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

#include "container/host_elf.h"
#include "support/file.h"
#include "synthetic.h"

namespace klap::container {
namespace {

// Bytes in an allocation of exactly their size, so that the address sanitizer notices a read past the end.
class Exact {
 public:
  explicit Exact(std::string_view bytes)
      : size_(bytes.size()), data_(std::make_unique<char[]>(bytes.size())) {
    std::memcpy(data_.get(), bytes.data(), size_);
  }
  [[nodiscard]] std::string_view view() const { return {data_.get(), size_}; }
  void flip(size_t bit) { data_[bit / 8] = static_cast<char>(data_[bit / 8] ^ (1 << (bit % 8))); }

 private:
  size_t size_;
  std::unique_ptr<char[]> data_;
};

// Everything that can be asked of a fatbin.
void exercise(const Fatbin& fatbin) {
  for (const FatbinEntry& entry : fatbin.entries) {
    try {
      static_cast<void>(entry.payload());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::Container) << e.what();
      EXPECT_TRUE(e.reason().starts_with("fatbin entry ")) << e.what();
    }
  }
  static_cast<void>(best_cubin(fatbin, 90));
  static_cast<void>(best_ptx(fatbin, 90));
  static_cast<void>(mentions_device_launch(fatbin));
  static_cast<void>(is_device_runtime(fatbin));
}

enum class Outcome { Accepted, Refused };

template <class Act>
Outcome outcome_of(Act act) {
  try {
    act();
    return Outcome::Accepted;
  } catch (const Error& e) {
    // 32-bit and big-endian files and foreign machines are one flipped bit away.
    EXPECT_TRUE(e.code() == ErrorCode::Container || e.code() == ErrorCode::Unsupported) << e.what();
    return Outcome::Refused;
  }
}

// A unit as the toolkit makes it (zstd, options), one with LZ4 and a name, one that is not compressed.
class DamagedUnit : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const File object = open_file(fixture(GetParam()));
    const auto bytes = object.images.at(0).units.at(0).bytes;
    bytes_.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::string bytes_;
};

TEST_P(DamagedUnit, CutOffAnywhereIsRefused) {
  for (size_t length = 0; length < bytes_.size(); ++length) {
    const Exact cut(std::string_view(bytes_).substr(0, length));
    EXPECT_NE(container_error([&] { parse(cut.view()); }), "") << "accepted at " << length;
  }
  EXPECT_EQ(container_error([&] { exercise(parse(bytes_)); }), "");
}

// The header agrees with the shorter length, so it is an entry that has too little, or the last one is
// missing whole.
TEST_P(DamagedUnit, EntriesThatEndEarlyAreRefused) {
  const size_t entries = parse(bytes_).entries.size();
  size_t accepted = 0;
  for (size_t length = 17; length < bytes_.size(); ++length) {
    std::string shorter = bytes_.substr(0, length);
    poke<uint64_t>(shorter, 8, length - 16);
    const Exact cut(shorter);
    const std::string message =
        container_error([&] { EXPECT_LT(parse(cut.view()).entries.size(), entries); });
    if (message.empty()) ++accepted;
    EXPECT_TRUE(message.empty() || message.starts_with("fatbin entry ")) << message;
  }
  EXPECT_EQ(accepted, entries - 1);
}

TEST_P(DamagedUnit, FlippedBitsAreSurvived) {
  const long before = peak_memory_kb();
  Exact image(bytes_);
  std::mt19937_64 random(20240611);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    // Half of the flips go where the headers are; up to three at a time.
    const size_t reach = round % 2 == 0 ? bytes_.size() : 256;
    std::vector<size_t> bits(1 + random() % 3);
    for (size_t& bit : bits) {
      bit = random() % (reach * 8);
      image.flip(bit);
    }
    if (outcome_of([&] { exercise(parse(image.view())); }) == Outcome::Refused) ++refused;
    for (const size_t bit : bits) image.flip(bit);
  }
  EXPECT_EQ(image.view(), bytes_);
  EXPECT_GT(refused, 300) << "the flips hit nothing that matters";
  EXPECT_LT(peak_memory_kb() - before, 300000);
}

INSTANTIATE_TEST_SUITE_P(Objects, DamagedUnit, testing::Values("parent.o", "helper.o", "apart.o"),
                         [](const auto& instance) {
                           return std::string(instance.param, strlen(instance.param) - 2);
                         });

// The symbol reader sees machine code that unpacked without complaint.
TEST(DamagedCubin, FlippedBitsAreSurvived) {
  const File object = open_file(fixture("parent.o"));
  SyntheticEntry entry = raw_entry(object.images.at(0).units.at(0).entries.at(0).payload());
  entry.kind = 2;
  const std::string bytes = fatbin_of({entry});
  constexpr size_t kCodeBegins = 16 + 64;
  Exact image(bytes);
  std::mt19937_64 random(7);
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    const size_t reach = round % 2 == 0 ? bytes.size() - kCodeBegins : 64;
    const size_t bit = (kCodeBegins + random() % reach) * 8 + random() % 8;
    image.flip(bit);
    if (outcome_of([&] { exercise(parse(image.view())); }) == Outcome::Refused) ++refused;
    image.flip(bit);
  }
  EXPECT_GT(refused, 300);
}

class DamagedHostFile : public testing::TestWithParam<const char*> {};

TEST_P(DamagedHostFile, CutOffAnywhereIsSurvived) {
  const std::string bytes = read_file(fixture(GetParam()));
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    const size_t length = round < 100 ? static_cast<size_t>(round) : random() % bytes.size();
    const Exact cut(std::string_view(bytes).substr(0, length));
    EXPECT_EQ(outcome_of([&] { find_images(cut.view()); }), Outcome::Refused) << length;
  }
}

TEST_P(DamagedHostFile, FlippedBitsAreSurvived) {
  const std::string bytes = read_file(fixture(GetParam()));
  uint64_t sections = 0;
  std::memcpy(&sections, bytes.data() + 40, sizeof sections);
  const size_t wrappers = bytes.find("\xB1\x43\x62\x46");
  ASSERT_NE(wrappers, std::string::npos);
  // Where the reader looks: headers, relocations and the like, the wrappers, the section table, then
  // anywhere.
  struct Region {
    size_t begin, size;
  };
  const std::vector<Region> regions = {
      {0, 1024}, {0, 16384}, {wrappers, 256}, {sections, bytes.size() - sections}, {0, bytes.size()}};
  Exact image(bytes);
  std::mt19937_64 random(11);
  int refused = 0;
  for (size_t round = 0; round < 5000; ++round) {
    const Region& region = regions[round % regions.size()];
    const size_t size = std::min(region.size, bytes.size() - region.begin);
    const size_t bit = (region.begin + random() % size) * 8 + random() % 8;
    image.flip(bit);
    if (outcome_of([&] { find_images(image.view()); }) == Outcome::Refused) ++refused;
    image.flip(bit);
  }
  EXPECT_GT(refused, 200);
}

INSTANTIATE_TEST_SUITE_P(Programs, DamagedHostFile, testing::Values("program", "program_two_links", "plain"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace klap::container
