// A launch on the fake driver that is redirected, or left for a reason that is counted.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fake_driver.h"
#include "ptx-patterns/templates/common/queue.h"
#include "runtime/stats.h"

namespace klap::runtime {

using Names = std::vector<std::string>;

// The head of a queue, from the bytes in the log of the driver.
inline KlapQueue decoded(const std::string& hex) {
  KlapQueue queue{};
  auto* const bytes = reinterpret_cast<unsigned char*>(&queue);
  for (size_t i = 0; i < sizeof queue && 2 * i + 1 < hex.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return queue;
}

class RedirectTest : public FakeDriverTest {
 protected:
  // Redirects, expecting success.
  void expect_redirected(const Launch& launch) {
    const auto result = redirect_launch(launch);
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(CUDA_SUCCESS, *result);
  }
  CUstream new_stream(unsigned flags = 0) {
    CUstream stream = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, fake<PFN_cuStreamCreate_v2000>("cuStreamCreate")(&stream, flags));
    return stream;
  }
};

}  // namespace klap::runtime
