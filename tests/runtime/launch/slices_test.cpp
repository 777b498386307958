// Parents whose queue has no room for the whole grid: how the grid is cut, and what is launched.
#include "runtime/launch/slices.h"

#include <nlohmann/json.hpp>

#include "fake_driver.h"
#include "ptx-patterns/templates/common/queue.h"
#include "runtime/stats.h"

namespace klap::runtime {
namespace {

// ---- cutting ----

using Extents = std::array<unsigned, 3>;

// Every block of the grid is in one slice; none is larger than allowed, and the first is the largest.
void expect_cover(const Extents& grid, uint64_t most) {
  SCOPED_TRACE(testing::Message() << grid[0] << "x" << grid[1] << "x" << grid[2] << " by " << most);
  const GridSlices slices(grid, most);
  std::vector<int> covered(grid[0] * grid[1] * grid[2], 0);
  EXPECT_LE(slices.most_blocks(), most);
  for (uint64_t i = 0; i < slices.count(); ++i) {
    const GridSlices::Slice slice = slices.at(i);
    const uint64_t blocks = uint64_t{slice.grid[0]} * slice.grid[1] * slice.grid[2];
    EXPECT_LE(blocks, slices.most_blocks());
    EXPECT_TRUE(i != 0 || blocks == slices.most_blocks());
    EXPECT_EQ(grid, (Extents{slice.place.whole[0], slice.place.whole[1], slice.place.whole[2]}));
    for (unsigned z = 0; z < slice.grid[2]; ++z)
      for (unsigned y = 0; y < slice.grid[1]; ++y)
        for (unsigned x = 0; x < slice.grid[0]; ++x)
          ++covered.at(((z + slice.place.first[2]) * grid[1] + y + slice.place.first[1]) * grid[0] + x +
                       slice.place.first[0]);
  }
  for (const int times : covered) EXPECT_EQ(1, times);
}

TEST(GridSlices, CoverTheGridOnce) {
  for (const Extents& grid : {Extents{1, 1, 1}, Extents{17, 1, 1}, Extents{1, 9, 1}, Extents{1, 1, 6},
                              Extents{5, 4, 1}, Extents{3, 1, 4}, Extents{4, 3, 5}}) {
    for (uint64_t most = 1; most <= uint64_t{grid[0]} * grid[1] * grid[2] + 1; ++most)
      expect_cover(grid, most);
  }
}

TEST(GridSlices, AreWholeLayersOrRowsWhereTheyCan) {
  const Extents grid{10, 10, 10};
  EXPECT_EQ(1u, GridSlices(grid, 1000).count());
  EXPECT_EQ(2u, GridSlices(grid, 999).count());
  EXPECT_EQ(900u, GridSlices(grid, 999).most_blocks());
  EXPECT_EQ(90u, GridSlices(grid, 99).most_blocks());
  EXPECT_EQ(20u, GridSlices(grid, 99).count());
  EXPECT_EQ(9u, GridSlices(grid, 9).most_blocks());
  EXPECT_EQ(200u, GridSlices(grid, 9).count());
}

TEST(GridSlices, OfTheLargestGridAreCounted) {
  const Extents grid{0x7fffffffu, 65535, 65535};
  EXPECT_EQ(1u, GridSlices(grid, ~uint64_t{0}).count());
  EXPECT_EQ(uint64_t{0x7fffffffu} * 65535 * 65535, GridSlices(grid, 1).count());
  const GridSlices::Slice last = GridSlices(grid, 1).at(GridSlices(grid, 1).count() - 1);
  EXPECT_EQ(0x7ffffffeu, last.place.first[0]);
  EXPECT_EQ(65534u, last.place.first[2]);
}

// ---- launching ----

class SlicesTest : public FakeDriverTest {
 protected:
  ~SlicesTest() override {
    if (!limited_) return;
    Registry::instance().remove_library(limited_);
    driver()->library_unload(limited_);
  }
  void limit(const std::string& parent, uint64_t pool_bytes) {
    load_library({{parent, pool_bytes}}, limited_);
  }

  static nlohmann::json launches(const std::string& kind, const std::string& parent) {
    return Stats::instance().to_json()["launches"][kind].value(parent, nlohmann::json());
  }

  // The launches of the variant, in order.
  [[nodiscard]] std::vector<Call> parts(const std::string& variant) const {
    std::vector<Call> found = calls("cuLaunchKernel");
    std::erase_if(found, [&](const Call& call) { return call["kernel"] != variant; });
    return found;
  }
  // The last parameter: first block and whole grid.
  static std::string place(const Call& part) {
    const std::string params = part["params"];
    const size_t end = params.size() - 1;  // each ends in a colon
    return params.substr(params.rfind(':', end - 1) + 1, end - params.rfind(':', end - 1) - 1);
  }

  CUlibrary limited_ = nullptr;
};

constexpr uint64_t kPool = uint64_t{52} << 10;  // 25 blocks of 64 threads: 1,600 records of 32 bytes

TEST_F(SlicesTest, GridsThatFitAreLaunchedWhole) {
  limit("sliced", kPool);
  Launch launch = launch_of(sliced_);
  launch.grid[0] = 25;
  ASSERT_EQ(CUDA_SUCCESS, redirect_launch(launch));
  const auto found = parts("__klap_sliced");
  ASSERT_EQ(1u, found.size());
  EXPECT_EQ("000000000000000000000000190000000100000001000000", place(found[0]));
  EXPECT_TRUE(launches("sliced", "sliced").is_null());
}

TEST_F(SlicesTest, EachIsFollowedByItsConsumer) {
  limit("sliced", kPool);
  Launch launch = launch_of(sliced_);
  launch.grid[0] = 60;
  ASSERT_EQ(CUDA_SUCCESS, redirect_launch(launch));
  EXPECT_EQ((std::vector<std::string>{"__klap_consumer", "__klap_sliced", "__klap_consumer", "__klap_sliced",
                                      "__klap_consumer", "__klap_sliced", "__klap_consumer"}),
            launched());
  const auto found = parts("__klap_sliced");
  ASSERT_EQ(3u, found.size());
  EXPECT_EQ("25,1,1", found[0]["grid"]);
  EXPECT_EQ("25,1,1", found[1]["grid"]);
  EXPECT_EQ("10,1,1", found[2]["grid"]);
  EXPECT_EQ("0000000000000000000000003c0000000100000001000000", place(found[0]));
  EXPECT_EQ("1900000000000000000000003c0000000100000001000000", place(found[1]));
  EXPECT_EQ("3200000000000000000000003c0000000100000001000000", place(found[2]));
  EXPECT_EQ(1u, calls("cuMemAlloc_v2").size()) << "one queue serves all";
  for (const Call& call : calls("cuMemAlloc_v2")) EXPECT_LE(std::stoull(call["bytes"]), kPool);
  EXPECT_EQ((nlohmann::json{{"launches", 1}, {"slices", 3}}), launches("sliced", "sliced"));
}

TEST_F(SlicesTest, PackedParametersSayWhichOne) {
  limit("sliced", kPool);
  unsigned char buffer[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  size_t bytes = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  Launch launch = launch_of(sliced_);
  launch.grid[0] = 1;
  launch.grid[1] = 30;
  launch.params = nullptr;
  launch.extra = extra;
  ASSERT_EQ(CUDA_SUCCESS, redirect_launch(launch));
  const auto found = parts("__klap_sliced");
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ("1,25,1", found[0]["grid"]);
  EXPECT_EQ("1,5,1", found[1]["grid"]);
  EXPECT_EQ("000000000000000000000000010000001e00000001000000", place(found[0]));
  EXPECT_EQ("000000001900000000000000010000001e00000001000000", place(found[1]));
  EXPECT_EQ("0102030405060708:090a0b0c", found[1]["params"].substr(0, 25));
}

TEST_F(SlicesTest, GroupsLaunchWithinTheirs) {
  limit("sliced_groups", kPool);
  Launch launch = launch_of(sliced_groups_);
  launch.grid[0] = 3;
  launch.grid[1] = 5;
  launch.grid[2] = 2;
  ASSERT_EQ(CUDA_SUCCESS, redirect_launch(launch));
  // 11 blocks fit the queue of the larger records: three rows, then two, of each layer.
  const auto found = parts("__klap_sliced_groups");
  ASSERT_EQ(4u, found.size());
  EXPECT_EQ(4u, launched().size()) << "nothing is enqueued behind them";
  EXPECT_EQ("3,3,1", found[0]["grid"]);
  EXPECT_EQ("3,2,1", found[1]["grid"]);
  EXPECT_EQ("000000000300000001000000030000000500000002000000", place(found[3]));
}

TEST_F(SlicesTest, WhereNotOneBlockFitsTheOriginalRuns) {
  limit("sliced", 1024);
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of(sliced_)));
  EXPECT_EQ(1, launches("left", "sliced")["queue over pool_bytes"]);
  Launch launch = launch_of(sliced_);
  launch.block[0] = 8;
  EXPECT_EQ(CUDA_SUCCESS, redirect_launch(launch));
}

TEST_F(SlicesTest, MoreThreadsThanAQueueCanIndex) {
  Launch launch = launch_of(sliced_);
  launch.grid[0] = 1 << 20;
  ASSERT_EQ(CUDA_SUCCESS, redirect_launch(launch));
  const auto found = parts("__klap_sliced");
  ASSERT_EQ(5u, found.size());
  EXPECT_EQ(std::to_string(KLAP_MAX_RECORDS / 64) + ",1,1", found[0]["grid"]);
  const auto refused = [] {
    const nlohmann::json left = launches("left", "sliced");
    return left.is_null() ? 0 : left.value("too many threads", 0);
  };
  const int before = refused();
  launch.grid[0] = launch.grid[1] = launch.grid[2] = 0xffffffffu;  // the driver refuses it
  EXPECT_EQ(std::nullopt, redirect_launch(launch));
  launch.grid[0] = launch.grid[1] = launch.grid[2] = 1;
  launch.block[0] = launch.block[1] = launch.block[2] = 0xffffffffu;
  EXPECT_EQ(std::nullopt, redirect_launch(launch));
  EXPECT_EQ(before + 2, refused());
}

TEST_F(SlicesTest, AreHalvedWhereTheDeviceHasNoMemory) {
  limit("sliced", kPool);
  setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2@1,", 1);  // a list that is new, and counts from nought
  Launch launch = launch_of(sliced_);
  launch.grid[0] = 21;
  ASSERT_EQ(CUDA_SUCCESS, redirect_launch(launch));
  const auto found = parts("__klap_sliced");
  ASSERT_EQ(3u, found.size());
  EXPECT_EQ("10,1,1", found[0]["grid"]);
  EXPECT_EQ("1,1,1", found[2]["grid"]);
}

TEST_F(SlicesTest, WithoutAnyMemoryTheOriginalRuns) {
  setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2=2", 1);
  EXPECT_EQ(std::nullopt, redirect_launch(launch_of(sliced_)));
  EXPECT_EQ(std::vector<std::string>{}, launched());
}

// The first slice may still give way to the original; behind it the children of others have run.
TEST_F(SlicesTest, FailureOfALaterOneIsTheLaunchsResult) {
  limit("sliced", kPool);
  Launch launch = launch_of(sliced_);
  launch.grid[0] = 60;
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_sliced=701@1", 1);
  EXPECT_EQ(std::nullopt, redirect_launch(launch));
  setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:__klap_sliced=700@2", 1);
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, redirect_launch(launch));
  EXPECT_EQ("__klap_consumer", launched().back());
}

}  // namespace
}  // namespace klap::runtime
