// The added parameter, in both forms and for kernels with more parameters than the usual buffers hold.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/launch/launch_params.h"

namespace klap::runtime {
namespace {

constexpr CUdeviceptr kQueue = 0x7f00aabbccdd00;
std::vector<CUdeviceptr> queues = {kQueue, kQueue + 0x100};

jit::Variant variant(uint32_t count, uint32_t bytes, uint32_t queue_offset) {
  jit::Variant made;
  made.parent_param_count = count;
  made.parent_param_bytes = bytes;
  made.queue_param_offset = queue_offset;
  return made;
}

TEST(ExtendedParams, ArrayOfAnyLength) {
  for (const uint32_t count : {0u, 1u, 63u, 64u, 1000u}) {
    std::vector<int> values(count);
    std::vector<void*> params;
    params.reserve(count);
    for (int& value : values) params.push_back(&value);
    ExtendedParams extended;
    ASSERT_EQ(nullptr, extended.extend(variant(count, 4 * count, 4 * count), params.data(), nullptr, queues));
    ASSERT_EQ(nullptr, extended.extra());
    for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(params[i], extended.params()[i]);
    CUdeviceptr queue = 0;
    std::memcpy(&queue, extended.params()[count], sizeof queue);
    EXPECT_EQ(kQueue, queue);
    EXPECT_EQ(kQueue + 0x100, *static_cast<CUdeviceptr*>(extended.params()[count + 1]));
  }
}

TEST(ExtendedParams, NoParametersAtAll) {
  ExtendedParams extended;
  EXPECT_EQ(nullptr, extended.extend(variant(0, 0, 0), nullptr, nullptr, queues));
  ASSERT_NE(nullptr, extended.params());
  EXPECT_EQ(kQueue, *static_cast<CUdeviceptr*>(extended.params()[0]));
}

TEST(ExtendedParams, BufferOfAnySize) {
  for (const uint32_t bytes : {0u, 1u, 12u, 503u, 504u, 505u, 4000u}) {
    std::vector<unsigned char> buffer(bytes + 1, 0xee);
    size_t size = bytes;
    const uint32_t offset = (bytes + 7) / 8 * 8;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_BUFFER_POINTER, buffer.data(),
                     CU_LAUNCH_PARAM_END};
    ExtendedParams extended;
    ASSERT_EQ(nullptr, extended.extend(variant(1, bytes, offset), nullptr, extra, queues));
    ASSERT_EQ(nullptr, extended.params());
    const auto* const copy = static_cast<const unsigned char*>(extended.extra()[1]);
    ASSERT_EQ(offset + 16, *static_cast<const size_t*>(extended.extra()[3]));
    EXPECT_EQ(0, std::memcmp(copy, buffer.data(), bytes));
    for (uint32_t i = bytes; i < offset; ++i) EXPECT_EQ(0, copy[i]);
    EXPECT_EQ(0, std::memcmp(copy + offset, queues.data(), 16));
    EXPECT_EQ(CU_LAUNCH_PARAM_END, extended.extra()[4]);
  }
}

}  // namespace
}  // namespace klap::runtime
