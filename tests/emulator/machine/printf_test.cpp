// Device printf against the host's, argument buffers laid out as nvcc does.
#include "emulator/device_runtime/printf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <vector>

#include "support/error.h"

namespace klap::emulator {
namespace {

class Buffer {
 public:
  template <typename T>
  Buffer& add(T value) {
    used_ = (used_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    std::memcpy(bytes_.data() + used_, &value, sizeof(T));
    used_ += sizeof(T);
    return *this;
  }
  Buffer& text(const std::string& value) {
    const uint64_t address = 0x1000 + 0x100 * texts_.size();
    texts_[address] = value;
    return add(address);
  }
  [[nodiscard]] PrintfResult format(std::string_view format) const {
    return format_printf(format, {.argument =
                                      [this](uint64_t offset, std::span<std::byte> out) {
                                        ASSERT_LE(offset + out.size(), used_);
                                        std::memcpy(out.data(), bytes_.data() + offset, out.size());
                                      },
                                  .text = [this](uint64_t address) { return texts_.at(address); }});
  }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(1024);
  size_t used_ = 0;
  std::map<uint64_t, std::string> texts_;
};

TEST(Printf, MixesSizes) {
  const PrintfResult r =
      Buffer().add(7).add(1.5).add(-3).add(1ull << 40).text("text").format("%d %f %d %llu %s|");
  EXPECT_EQ(r.text, "7 1.500000 -3 1099511627776 text|");
  EXPECT_EQ(r.arguments, 5);
}

TEST(Printf, TakesWidthAndPrecisionFromArguments) {
  const PrintfResult r =
      Buffer().add(8).add(42).add(-6).add(7).add(10).add(2).add(3.14159).format("[%*d][%*d][%*.*f]");
  EXPECT_EQ(r.text, "[      42][7     ][      3.14]");
  EXPECT_EQ(r.arguments, 7);
  EXPECT_EQ(Buffer().add(-1).add(2.5).format("%.*f").text, "2.500000");
}

TEST(Printf, KnowsTheConversions) {
  EXPECT_EQ(Buffer().add(255u).add(255u).add(8u).format("%x %#X %o").text, "ff 0XFF 10");
  EXPECT_EQ(Buffer().add(-1ll).add(-1ll).format("%ld %lu").text, "-1 18446744073709551615");
  EXPECT_EQ(Buffer().add(300).add(70000).format("%hhd %hd").text, "44 4464");
  EXPECT_EQ(Buffer().add(int{'x'}).format("%c%%").text, "x%");
  EXPECT_EQ(Buffer().add(1e100).add(0.5).add(1.0).format("%e %g %a").text, "1.000000e+100 0.5 0x1p+0");
  EXPECT_EQ(Buffer().add(uint64_t{0x1234}).format("%p").text, "0x1234");
  EXPECT_EQ(Buffer().add(uint64_t{0}).format("%s").text, "(null)");
  EXPECT_EQ(Buffer().text("abcdef").format("%-8.3s|").text, "abc     |");
  EXPECT_EQ(Buffer().add(5).format("%+05i").text, "+0005");
  EXPECT_EQ(Buffer().add(uint64_t{9}).format("%zu").text, "9");
  EXPECT_EQ(Buffer().format("no arguments").arguments, 0);
}

TEST(Printf, WritesLongText) {
  const std::string text(5000, 'y');
  EXPECT_EQ(Buffer().text(text).format("<%s>").text, "<" + text + ">");
}

TEST(Printf, RefusesWhatCudaDoesNotHave) {
  for (const char* format : {"%n", "%ls", "%lc", "%y", "%hlhd", "100%"})
    EXPECT_THROW(Buffer().add(uint64_t{0x1000}).format(format), Error) << format;
}

}  // namespace
}  // namespace klap::emulator
