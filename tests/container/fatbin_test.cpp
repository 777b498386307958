// The fatbin reader against bytes made up by the tests; file_test.cpp checks it against the toolkit's.
#include <gtest/gtest.h>

#include <ostream>

#include "synthetic.h"

namespace klap::container {
namespace {

constexpr const char* kPtx = ".version 9.0\n.target sm_90\n.address_size 64\n";

TEST(Fatbin, ReadsEveryField) {
  SyntheticEntry entry = raw_entry(kPtx);
  entry.name = "kernel.cu";
  entry.options = "-dlcm=cg --compile-only  -maxrregcount=64 ";
  const std::string bytes = fatbin_of({entry, raw_entry("x")});
  const Fatbin fatbin = parse(bytes);

  ASSERT_EQ(fatbin.entries.size(), 2);
  EXPECT_EQ(fatbin.bytes.size(), bytes.size());
  const FatbinEntry& first = fatbin.entries[0];
  EXPECT_EQ(first.kind, EntryKind::Ptx);
  EXPECT_TRUE(first.is_ptx());
  EXPECT_EQ(first.index, 0);
  EXPECT_EQ(first.arch, 90);
  EXPECT_EQ(first.flags, 0x11);
  EXPECT_EQ(first.compression, Compression::None);
  EXPECT_EQ(first.name, "kernel.cu");
  EXPECT_EQ(first.options, "-dlcm=cg -maxrregcount=64");
  EXPECT_EQ(first.payload(), kPtx);
  EXPECT_EQ(fatbin.entries[1].describe(), "fatbin entry 1 (PTX for sm_90)");
  EXPECT_EQ(fatbin.entries[1].options, "");
}

TEST(Fatbin, MayBeEmpty) { EXPECT_TRUE(parse(fatbin_of({})).entries.empty()); }

TEST(Fatbin, IsReadAtAnyAlignment) {
  const std::string shifted = "x" + fatbin_of({raw_entry(kPtx)});
  EXPECT_EQ(parse_fatbin(shifted.data() + 1, shifted.size() - 1).entries.at(0).payload(), kPtx);
}

TEST(Fatbin, StopsAtItsOwnSizeWhateverFollows) {
  const std::string bytes = fatbin_of({raw_entry(kPtx)});
  EXPECT_EQ(parse(bytes + "rubbish").bytes.size(), bytes.size());
}

TEST(Fatbin, OptionsAreTidiedButKeptInOrder) {
  const auto options_of = [](const std::string& text) {
    SyntheticEntry entry = raw_entry(kPtx);
    entry.options = text;
    return parse(fatbin_of({entry})).entries.at(0).options;
  };
  EXPECT_EQ(options_of("--compile-only  "), "");
  EXPECT_EQ(options_of("--compile-only  -g --dont-merge-basicblocks --return-at-end "),
            "-g --dont-merge-basicblocks --return-at-end");
  EXPECT_EQ(options_of("-O1 -dlcm=cg --compile-only  --fmad false "), "-O1 -dlcm=cg --fmad false");
  EXPECT_EQ(options_of("--compile-only-not"), "--compile-only-not");
}

// In machine code and LTO-IR the field means something else.
TEST(Fatbin, OptionsAreReadFromPtxOnly) {
  SyntheticEntry cubin = raw_entry("machine code");
  cubin.kind = 2;
  cubin.options = std::string("\x00\x02\x09\x00", 4);
  SyntheticEntry lto = raw_entry("BC");
  lto.kind = 8;
  lto.options = "-ftz=0 ";
  SyntheticEntry relocatable = raw_entry(kPtx);
  relocatable.kind = 64;
  relocatable.options = "-v";
  const std::string bytes = fatbin_of({cubin, lto, relocatable});
  const Fatbin fatbin = parse(bytes);
  EXPECT_EQ(fatbin.entries.at(0).options, "");
  EXPECT_EQ(fatbin.entries.at(1).options, "");
  EXPECT_EQ(fatbin.entries.at(2).options, "-v");
  EXPECT_TRUE(fatbin.entries[2].is_ptx());
}

TEST(Fatbin, UnknownKindsAreCarriedAlong) {
  SyntheticEntry entry = raw_entry("?");
  entry.kind = 4711;
  entry.arch = 103;
  entry.flags = 0x11 | kFlagFamilySpecific;
  const std::string bytes = fatbin_of({entry});
  EXPECT_EQ(parse(bytes).entries.at(0).describe(), "fatbin entry 0 (kind 4711 for sm_103f)");
  EXPECT_FALSE(parse(bytes).entries.at(0).is_ptx());
}

TEST(Fatbin, PtxLosesItsPaddingAndMachineCodeKeepsIt) {
  SyntheticEntry cubin = raw_entry("abc");
  cubin.kind = 2;
  const std::string bytes = fatbin_of({raw_entry("abc"), cubin});
  EXPECT_EQ(parse(bytes).entries.at(0).payload(), "abc");
  EXPECT_EQ(parse(bytes).entries.at(1).payload(), std::string("abc\0\0\0\0\0", 8));
}

// One damaged field each; the message says which.
struct Damage {
  const char* what;
  size_t offset;
  uint64_t value;
  int bytes;
  const char* message;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.what; }

class DamagedField : public testing::TestWithParam<Damage> {};

TEST_P(DamagedField, IsNamed) {
  SyntheticEntry entry = lz4_entry(std::string(1000, 'a'));
  entry.options = "-v";
  entry.name = "a.cu";
  std::string bytes = fatbin_of({raw_entry("first"), entry});
  bytes.replace(GetParam().offset, static_cast<size_t>(GetParam().bytes),
                reinterpret_cast<const char*>(&GetParam().value), static_cast<size_t>(GetParam().bytes));
  const std::string message = container_error([&] {
    for (const FatbinEntry& e : parse(bytes).entries) static_cast<void>(e.payload());
  });
  EXPECT_EQ(message, GetParam().message);
}

constexpr size_t kSecond = 16 + 64 + 8;  // where the second entry's header begins

INSTANTIATE_TEST_SUITE_P(
    Fatbin, DamagedField,
    testing::Values(
        Damage{"magic", 0, 0x12345678, 4, "fatbin: magic 12345678, expected BA55ED50"},
        Damage{"version", 4, 2, 2, "fatbin: version 2, known is 1"},
        Damage{"header_size", 6, 8, 2, "fatbin: header size 8 is too small"},
        Damage{"total_size", 8, 1 << 20, 8,
               "fatbin: entries at 0x10 (1048576 bytes) would reach beyond the 192 bytes there are"},
        Damage{"total_size_overflow", 8, ~uint64_t{0}, 8,
               "fatbin: entries at 0x10 (18446744073709551615 bytes) would reach beyond the 192 bytes there "
               "are"},
        Damage{"cut_in_header", 8, 100, 8,
               "fatbin entry 1: header at 0x0 (64 bytes) would reach beyond the 28 bytes there are"},
        Damage{"entry_version", kSecond + 2, 0x201, 2,
               "fatbin entry 1 (PTX for sm_90): header version 0x201, known is 0x101"},
        Damage{"entry_header_size", kSecond + 4, 63, 4,
               "fatbin entry 1 (PTX for sm_90): header size 63 is too small"},
        Damage{"entry_header_far", kSecond + 4, 0xFFFFFFFF, 4,
               "fatbin entry 1 (PTX for sm_90): header at 0x0 (4294967295 bytes) would reach beyond the 104 "
               "bytes there are"},
        Damage{
            "payload_size", kSecond + 8, ~uint64_t{0}, 8,
            "fatbin entry 1 (PTX for sm_90): padded payload at 0x58 (18446744073709551615 bytes) would reach "
            "beyond the "
            "104 bytes there are"},
        Damage{"compressed_size", kSecond + 16, 0xFFFFFF, 4,
               "fatbin entry 1 (PTX for sm_90): payload at 0x58 (16777215 bytes) would reach beyond the 104 "
               "bytes there are"},
        Damage{"not_compressed", kSecond + 16, 0, 4,
               "fatbin entry 1 (PTX for sm_90): compressed size 0 does not go with flags 0x2011"},
        Damage{"compressed_unsaid", kSecond + 40, 0x11, 8,
               "fatbin entry 1 (PTX for sm_90): compressed size 14 does not go with flags 0x11"},
        Damage{"options_record", kSecond + 20, 84, 4,
               "fatbin entry 1 (PTX for sm_90): options record at 0x54 (8 bytes) would reach beyond the 88 "
               "bytes "
               "there are"},
        Damage{
            "options_text", kSecond + 72 + 4, 9, 4,
            "fatbin entry 1 (PTX for sm_90): options text at 0x50 (9 bytes) would reach beyond the 88 bytes "
            "there are"},
        Damage{"name", kSecond + 32, 0x80000000, 4,
               "fatbin entry 1 (PTX for sm_90): name at 0x80000000 (4 bytes) would reach beyond the 88 bytes "
               "there are"},
        Damage{
            "uncompressed_size", kSecond + 56, 1001, 8,
            "fatbin entry 1 (PTX for sm_90): uncompressed size 1001 is stated, but the LZ4 block holds 1000"},
        Damage{"wrong_method", kSecond + 40, 0x8011, 8,
               "fatbin entry 1 (PTX for sm_90): the flags say zstd, but the payload does not begin with a "
               "zstd frame"}),
    [](const auto& instance) { return instance.param.what; });

}  // namespace
}  // namespace klap::container
