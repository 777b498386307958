// Clocks against plain sets of numbers.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "emulator/memory_model/model_clock.h"

namespace klap::emulator {
namespace {

struct Plain {
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> agents;
  std::map<uint32_t, uint64_t> blocks;
  std::set<uint32_t> whole;
  void join(const Plain& other) {
    for (auto& [agent, time] : other.agents) agents[agent] = std::max(agents[agent], time);
    for (auto& [block, time] : other.blocks) blocks[block] = std::max(blocks[block], time);
    whole.insert(other.whole.begin(), other.whole.end());
  }
  bool covers(const Stamp& s) {
    return whole.count(s.block) || s.time <= blocks[s.block] || s.time <= agents[{s.block, s.agent}];
  }
};

TEST(Clock, AgreesWithPlainSets) {
  std::mt19937 random(7);
  for (uint32_t blocks : {3u, 40u, 5000u}) {
    std::array<Clock, 6> clocks;
    std::array<Plain, 6> plain;
    for (uint64_t time = 1; time < 1500; ++time) {
      size_t to = random() % 6, from = random() % 6;
      uint32_t block = random() % blocks, agent = random() % 4;
      switch (random() % 8) {
        case 0:
          clocks[to].include_all_of(block);
          plain[to].whole.insert(block);
          break;
        case 1:
          clocks[to].join(block, ViewRef(new View(time, {})));
          plain[to].blocks[block] = time;
          break;
        case 2:
        case 3:
          clocks[to] = clocks[from];
          plain[to] = plain[from];
          break;
        case 4:
          clocks[to].join(clocks[from]);
          plain[to].join(plain[from]);
          break;
        case 5:
          if (random() % 20 == 0) {
            clocks[to] = Clock();
            plain[to] = Plain();
          }
          break;
        default:
          clocks[to].join(block, ViewRef(new View(0, {{agent, time}})));
          plain[to].agents[{block, agent}] = std::max(plain[to].agents[{block, agent}], time);
      }
      for (int i = 0; i < 10; ++i) {
        Stamp stamp{static_cast<uint32_t>(random() % blocks), static_cast<uint32_t>(random() % 4),
                    random() % time + 1};
        ASSERT_EQ(clocks[to].covers(stamp), plain[to].covers(stamp));
      }
    }
  }
}

TEST(Clock, ReachesToTheLargestBlockNumber) {
  Clock clock, other;
  clock.join(5, ViewRef(new View(9, {})));
  other.include_all_of(UINT32_MAX);
  EXPECT_FALSE(clock.covers({UINT32_MAX, 0, 1}));
  clock.join(other);
  EXPECT_TRUE(clock.covers({UINT32_MAX, 0, 1}));
  EXPECT_TRUE(clock.covers({5, 3, 9}));
  EXPECT_FALSE(clock.covers({5, 3, 10}));
  EXPECT_FALSE(clock.covers({6, 3, 1}));
}

TEST(Clock, BlocksThatEndedTakeNoRoom) {
  Clock clock;
  for (uint32_t block = 0; block < 1 << 16; ++block) clock.include_all_of(block);
  EXPECT_TRUE(clock.covers({12345, 1, 1}));
  EXPECT_FALSE(clock.covers({1 << 16, 1, 1}));
  Clock same;
  for (uint32_t block = 1 << 16; block-- > 0;) same.include_all_of(block);
  EXPECT_TRUE(same.has_same_root(clock));
}

}  // namespace
}  // namespace klap::emulator
