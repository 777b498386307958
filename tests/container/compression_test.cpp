// Unpacking: both methods, sizes that lie, and the conditions of a preloaded library.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <random>

#include "synthetic.h"

namespace klap::container {
namespace {

std::string text_of(size_t size) {
  std::mt19937 random(1);
  std::string text;
  while (text.size() < size) text += "add.s32 %r" + std::to_string(random() % 1000) + ", %r1, %r2;\n";
  text.resize(size);
  return text;
}

std::string payload_of(const SyntheticEntry& entry) {
  const std::string bytes = fatbin_of({entry});
  return parse(bytes).entries.at(0).payload();
}

std::string payload_error(const SyntheticEntry& entry) {
  return container_error([&] { payload_of(entry); });
}

TEST(Compression, ComesBackAsItWas) {
  for (const size_t size : {1, 7, 100, 65536, 3000000}) {
    const std::string text = text_of(size);
    EXPECT_EQ(payload_of(lz4_entry(text)), text) << size;
    EXPECT_EQ(payload_of(zstd_entry(text)), text) << size;
    EXPECT_EQ(payload_of(zstd_entry(text, false)), text) << size;
  }
}

// Packs far better than the first guess at the buffer assumes.
TEST(Compression, ZstdBufferGrowsAsNeeded) {
  std::string text;
  text.resize(20000000, 'a');
  ASSERT_LT(zstd_entry(text).payload.size() * 1000, text.size());
  EXPECT_EQ(payload_of(zstd_entry(text)), text);
  EXPECT_EQ(payload_of(zstd_entry(text, false)), text);
}

TEST(Compression, StatedSizeMustBeRight) {
  for (const bool state_size : {true, false}) {
    SyntheticEntry entry = zstd_entry(text_of(5000), state_size);
    entry.uncompressed_size = 4999;
    EXPECT_EQ(payload_error(entry), std::string("fatbin entry 0 (PTX for sm_90): uncompressed size 4999 is "
                                                "stated, but the zstd frame holds 5000") +
                                        (state_size ? "" : " or more"));
    entry.uncompressed_size = 5001;
    EXPECT_EQ(
        payload_error(entry),
        "fatbin entry 0 (PTX for sm_90): uncompressed size 5001 is stated, but the zstd frame holds 5000");
  }
  SyntheticEntry entry = lz4_entry(text_of(5000));
  entry.uncompressed_size = 4999;
  EXPECT_EQ(payload_error(entry), "fatbin entry 0 (PTX for sm_90): the LZ4 block is damaged");
}

TEST(Compression, FrameThatEndsTooEarlyIsNoticed) {
  for (const bool state_size : {true, false}) {
    SyntheticEntry entry = zstd_entry(text_of(5000), state_size);
    entry.compressed_size -= 3;
    EXPECT_EQ(payload_error(entry), "fatbin entry 0 (PTX for sm_90): the zstd frame ends too early");
  }
}

TEST(Compression, SizesBeyondBeliefAreRefused) {
  SyntheticEntry entry = zstd_entry("x");
  entry.uncompressed_size = kMaxPayloadBytes + 1;
  EXPECT_EQ(payload_error(entry),
            "fatbin entry 0 (PTX for sm_90): uncompressed size 1073741825 is more than the 1073741824 bytes "
            "believed");
  entry = lz4_entry("x");
  entry.uncompressed_size = 1 << 29;
  EXPECT_EQ(payload_error(entry),
            "fatbin entry 0 (PTX for sm_90): uncompressed size 536870912 is impossible for 2 bytes of LZ4");
}

// A header that promises 900 MB must not cost 900 MB.
TEST(Compression, LyingSizeCostsNoMemory) {
  SyntheticEntry entry = zstd_entry(text_of(5000), false);
  entry.uncompressed_size = 900000000;
  const long before = peak_memory_kb();
  EXPECT_EQ(
      payload_error(entry),
      "fatbin entry 0 (PTX for sm_90): uncompressed size 900000000 is stated, but the zstd frame holds 5000");
  EXPECT_LT(peak_memory_kb() - before, 100000);
}

// libzstd.a crashes in a shared library whose calls are bound lazily, unless its symbols are hidden: the
// reason is in src/container/CMakeLists.txt, which hides them.
TEST(Compression, WorksInALibraryUnderLazyBinding) {
  ASSERT_EQ(getenv("LD_BIND_NOW"), nullptr) << "unset it: this test is about lazy binding";
  void* library = dlopen(KLAP_PROBE, RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* unpack = reinterpret_cast<long (*)(const char*)>(dlsym(library, "klap_probe_unpack"));
  ASSERT_NE(unpack, nullptr);
  EXPECT_GT(unpack(fixture("program").c_str()), 100000);
  EXPECT_EQ(dlsym(library, "ZSTD_decompressStream"), nullptr);
  EXPECT_EQ(dlsym(library, "LZ4_decompress_safe"), nullptr);
  dlclose(library);
}

}  // namespace
}  // namespace klap::container
