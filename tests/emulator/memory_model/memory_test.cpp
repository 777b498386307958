// The emulated device's memory: what is given out, what find() says of it, and how a wrong address is named.
#include "emulator/memory_model/memory.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "support/error.h"

namespace klap::emulator {
namespace {

using testing::HasSubstr;

std::byte* bytes_at(uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

TEST(Memory, GivesAlignedPiecesThatDoNotTouch) {
  Memory memory(1 << 20);
  std::mt19937 random(1);
  uint64_t last_end = 0;
  for (int i = 0; i < 200; ++i) {
    uint64_t align = 1ull << random() % 12, bytes = random() % 3000;
    auto address = memory.allocate(bytes, Owner::Host, align);
    ASSERT_TRUE(address);
    EXPECT_EQ(*address % align, 0u);
    EXPECT_GT(*address, last_end);
    last_end = *address + bytes;
  }
}

TEST(Memory, FindsExactlyTheLivingBytes) {
  Memory memory(1 << 20);
  uint64_t a = memory.allocate(100, Owner::Host).value(),
           b = memory.allocate(8, Owner::Module, 8, "x").value();
  ASSERT_NE(memory.find(a, 100), nullptr);
  EXPECT_EQ(memory.find(a + 99, 1)->address, a);
  EXPECT_EQ(memory.find(a, 101), nullptr);
  EXPECT_EQ(memory.find(a + 100, 1), nullptr);
  EXPECT_EQ(memory.find(a - 1, 1), nullptr);
  EXPECT_EQ(memory.find(b, 8)->name, "x");
  EXPECT_EQ(memory.find(a, ~0ull), nullptr);
  EXPECT_TRUE(memory.free(a, Owner::Host));
  EXPECT_EQ(memory.find(a, 1), nullptr);
  EXPECT_TRUE(memory.is_mapped(a, 1));
  EXPECT_FALSE(memory.is_mapped(0, 4));
  EXPECT_FALSE(memory.is_mapped(a, ~0ull));
}

TEST(Memory, FreesOnlyWhatLivesAndIsOfThatOwner) {
  Memory memory(1 << 20);
  uint64_t a = memory.allocate(100, Owner::DeviceHeap).value();
  EXPECT_FALSE(memory.free(a, Owner::Host));
  EXPECT_FALSE(memory.free(a + 4, Owner::DeviceHeap));
  EXPECT_TRUE(memory.free(a, Owner::DeviceHeap));
  EXPECT_FALSE(memory.free(a, Owner::DeviceHeap));
}

TEST(Memory, CountsTheDevicesMemoryAndRefusesMore) {
  Memory memory(1 << 20);
  uint64_t a = memory.allocate(600 << 10, Owner::Host).value();
  EXPECT_EQ(memory.used(), 600u << 10);
  EXPECT_FALSE(memory.allocate(600 << 10, Owner::Module));
  EXPECT_TRUE(memory.allocate(600 << 10, Owner::Pinned));
  EXPECT_FALSE(memory.allocate(~0ull, Owner::Host));
  EXPECT_TRUE(memory.free(a, Owner::Host));
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_TRUE(memory.allocate(1 << 20, Owner::Host));
}

TEST(Memory, ManagedMemoryCountsWhereItIsUsed) {
  constexpr uint64_t kPage = 4096;
  Memory memory(1 << 20);
  uint64_t a = memory.allocate(64 << 20, Owner::Managed, kPage).value();
  EXPECT_EQ(memory.used(), 0u);
  bytes_at(a)[10] = std::byte{7};
  bytes_at(a)[40 << 20] = std::byte{7};
  EXPECT_EQ(memory.used_of_managed(), 2 * kPage);
  EXPECT_EQ(memory.used(), 2 * kPage);
  EXPECT_FALSE(memory.allocate(1 << 20, Owner::Host));
  EXPECT_TRUE(memory.free(a, Owner::Managed));
  EXPECT_EQ(memory.used(), 0u);
}

TEST(Memory, NewManagedMemoryIsZeroWhereverItLies) {
  constexpr uint64_t kBytes = 1 << 20;
  Memory memory(1 << 20);
  uint64_t first = memory.allocate(kBytes, Owner::Managed).value();
  std::memset(bytes_at(first), 7, kBytes);
  ASSERT_TRUE(memory.free(first, Owner::Managed));
  uint64_t a = 0;
  for (int times = 0; a != first && times < 10000; ++times) {  // until places are used again
    a = memory.allocate(kBytes, Owner::Managed).value();
    ASSERT_EQ(bytes_at(a)[0], std::byte{0});
    ASSERT_EQ(bytes_at(a)[kBytes - 1], std::byte{0});
    std::memset(bytes_at(a), 7, kBytes);
    memory.free(a, Owner::Managed);
  }
  EXPECT_EQ(a, first);
}

TEST(Memory, NewMemoryHoldsThePattern) {
  Memory memory(1 << 20);
  uint64_t a = memory.allocate(64, Owner::Host).value();
  EXPECT_EQ(*bytes_at(a), Memory::kNew);
  EXPECT_EQ(*bytes_at(a + 63), Memory::kNew);
  memory.free(a, Owner::Host);
  EXPECT_EQ(*bytes_at(a + 63), Memory::kFreed);
}

TEST(Memory, FreedPlacesAreUsedAgainOnlyWhenNothingElseIsLeft) {
  constexpr uint64_t kBytes = 16 << 20;
  Memory memory(2 * kBytes);
  memory.set_fill_limit(0);
  uint64_t first = memory.allocate(kBytes, Owner::Host).value();
  ASSERT_TRUE(memory.free(first, Owner::Host));
  uint64_t keep = memory.allocate(1000, Owner::Host).value();
  std::memset(bytes_at(keep), 7, 1000);
  int times = 0;
  for (uint64_t a = 0; a != first && times < 1000;
       ++times) {  // 16 GB in all, in a range of 4 GB and a little
    a = memory.allocate(kBytes, Owner::Host).value();
    ASSERT_TRUE(a + kBytes <= keep || a >= keep + 1000);
    memory.free(a, Owner::Host);
  }
  EXPECT_GT(times, 200);
  EXPECT_LT(times, 1000);
  EXPECT_EQ(bytes_at(keep)[999], std::byte{7});
  EXPECT_NE(memory.find(keep, 1000), nullptr);
}

TEST(Memory, BlocksMemoryIsRecycledUnlessQuarantined) {
  Memory memory(1 << 20);
  uint64_t a = memory.allocate(1000, Owner::Shared).value();
  memory.free(a, Owner::Shared);
  EXPECT_EQ(memory.allocate(1020, Owner::Shared).value(), a);
  memory.quarantine_everything(true);
  memory.free(a, Owner::Shared);
  EXPECT_NE(memory.allocate(1000, Owner::Shared).value(), a);
}

TEST(Memory, PiecesNeverOverlapWhateverComesAndGoes) {
  Memory memory(1 << 20);
  memory.set_fill_limit(100);
  std::mt19937 random(2);
  std::map<uint64_t, std::pair<uint64_t, Owner>> living;
  constexpr Owner kOwners[] = {Owner::Host, Owner::Shared, Owner::Local, Owner::Pinned};
  for (int i = 0; i < 30000; ++i) {
    if (living.size() > 50 || (random() % 2 && !living.empty())) {
      auto one = std::next(living.begin(), static_cast<long>(random() % living.size()));
      ASSERT_TRUE(memory.free(one->first, one->second.second));
      living.erase(one);
      continue;
    }
    Owner owner = kOwners[random() % 4];
    uint64_t bytes = random() % (owner == Owner::Pinned ? 40 << 20 : 20000);
    auto a = memory.allocate(bytes, owner, 1ull << random() % 10);
    if (!a) continue;
    auto after = living.lower_bound(*a);
    ASSERT_TRUE(after == living.end() || *a + bytes < after->first);
    ASSERT_TRUE(after == living.begin() || std::prev(after)->first + std::prev(after)->second.first < *a);
    ASSERT_NE(memory.find(*a, bytes), nullptr);
    living[*a] = {bytes, owner};
  }
}

TEST(Memory, NamesAWrongAddress) {
  Memory memory(1 << 20);
  uint64_t a = memory.allocate(400, Owner::Host).value();
  uint64_t b = memory.allocate(16, Owner::Module, 16, "table").value();
  EXPECT_THAT(memory.describe(a + 404, 4),
              HasSubstr("4 bytes past the end of 400 bytes allocated by the host"));
  EXPECT_THAT(memory.describe(a + 396, 8), HasSubstr("ends 4 bytes past its end"));
  EXPECT_THAT(memory.describe(b - 1, 1), HasSubstr("1 byte before 16 bytes of variable table"));
  EXPECT_THAT(memory.describe(0, 4), HasSubstr("null pointer"));
  EXPECT_THAT(memory.describe(0x1234567, 4), HasSubstr("never allocated"));
  memory.free(a, Owner::Host);
  EXPECT_THAT(memory.describe(a + 8, 4), HasSubstr("inside freed 400 bytes allocated by the host"));
}

TEST(Memory, TakesTheHostsMemoryIn) {
  Memory memory(1 << 20);
  std::vector<std::byte> mine(64);
  auto address = reinterpret_cast<uint64_t>(mine.data());
  EXPECT_FALSE(memory.is_mapped(address, 64));
  memory.add_foreign(address, 64);
  EXPECT_TRUE(memory.is_mapped(address, 64));
  EXPECT_FALSE(memory.is_mapped(address, 65));
  ASSERT_NE(memory.find(address + 32, 32), nullptr);
  EXPECT_EQ(memory.find(address + 32, 32)->owner, Owner::Pinned);
  EXPECT_TRUE(memory.remove_foreign(address));
  EXPECT_EQ(memory.find(address + 32, 32), nullptr);
  EXPECT_FALSE(memory.remove_foreign(address));
}

TEST(Memory, RefusesARangeThatDoesNotExist) { EXPECT_THROW(Memory(1ull << 60), Error); }

}  // namespace
}  // namespace klap::emulator
