// Which pointers of a launch are shown to lie in different allocations, and that all others are not.
#include "runtime/parents/pointers_apart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tests/runtime/launch/fake_driver.h"

namespace klap::runtime {
namespace {

// Parameters: int*, {int, int*, int*}, int*, int.
constexpr std::array<uint32_t, 4> kOffsets = {0, 8, 32, 40};
constexpr ParameterLayout kLayout{kOffsets, 44};
constexpr uint32_t kFirst = 0, kInStruct = 16, kLast = 32, kInt = 40;
struct Pair {
  int number = 0;
  CUdeviceptr first = 0, second = 0;
};

class PointersApart : public FakeDriverTest {
 protected:
  PointersApart() { launch_.params = values_.data(); }

  CUdeviceptr allocate(size_t bytes = 512) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA_SUCCESS, driver()->mem_alloc(&address, bytes));
    return address;
  }
  CUdeviceptr allocate_from(CUmemoryPool pool) {
    CUdeviceptr address = 0;
    EXPECT_EQ(CUDA_SUCCESS, driver()->mem_alloc_from_pool_async(&address, 512, pool, nullptr));
    return address;
  }

  // Whether the first and the last pointer are apart where the launch passes these values.
  bool apart(CUdeviceptr first, CUdeviceptr last, bool only_upwards = false) {
    return is_apart({{kFirst, only_upwards}, {kLast, only_upwards}}, first, 0, last);
  }
  bool is_apart(const ApartPair& pair, CUdeviceptr first, CUdeviceptr in_struct, CUdeviceptr last) {
    first_ = first;
    pair_.first = in_struct;
    last_ = last;
    const std::array pairs = {pair};
    return look(pairs);
  }
  bool apart_from_symbol(CUdeviceptr pointer, CUdeviceptr symbol, size_t bytes) {
    first_ = pointer;
    const std::array pairs = {ApartFromSymbol{{kFirst}, symbol, bytes}};
    KnownAllocations allocations;
    return are_apart({}, pairs, launch_, kLayout, allocations);
  }
  bool look(std::span<const ApartPair> pairs) {
    KnownAllocations allocations;
    return are_apart(pairs, {}, launch_, kLayout, allocations);
  }

  CUdeviceptr first_ = 0, last_ = 0;
  Pair pair_;
  int number_ = 0;
  std::array<void*, 4> values_ = {&first_, &pair_, &last_, &number_};
  Launch launch_;
};

TEST_F(PointersApart, TwoAllocations) {
  const CUdeviceptr one = allocate(), other = allocate();
  EXPECT_TRUE(apart(one + 64, other + 64));
  EXPECT_FALSE(apart(one + 64, one + 256));
  EXPECT_FALSE(apart(one + 64, one + 64));
}

TEST_F(PointersApart, FreedMemoryIsNotKnown) {
  const CUdeviceptr one = allocate(), other = allocate();
  EXPECT_TRUE(apart(one + 64, other + 64));
  fake<PFN_cuMemFree_v3020>("cuMemFree_v2")(other);
  EXPECT_FALSE(apart(one + 64, other + 64));
}

TEST_F(PointersApart, NullIsApartFromAll) {
  const CUdeviceptr one = allocate();
  EXPECT_TRUE(apart(one, 0));
  EXPECT_TRUE(apart(0, 0));
  EXPECT_TRUE(apart(0, reinterpret_cast<CUdeviceptr>(&pair_)));
}

TEST_F(PointersApart, WhatTheDriverDoesNotKnowIsNot) {
  const CUdeviceptr one = allocate();
  EXPECT_FALSE(apart(one + 64, reinterpret_cast<CUdeviceptr>(&pair_)));
  setenv("FAKE_CUDA_FAIL", "cuPointerGetAttributes=999", 1);
  EXPECT_FALSE(apart(one + 64, allocate() + 64));
}

TEST_F(PointersApart, MemoryThatMayHaveTwoAddressesIsNot) {
  CUmemoryPool own = nullptr, usual = nullptr;
  const CUmemPoolProps properties{};
  ASSERT_EQ(CUDA_SUCCESS, driver()->mem_pool_create(&own, &properties));
  ASSERT_EQ(CUDA_SUCCESS, driver()->device_get_default_mem_pool(&usual, 0));
  EXPECT_FALSE(apart(allocate() + 64, allocate_from(own) + 64));
  EXPECT_TRUE(apart(allocate() + 64, allocate_from(usual) + 64));
}

TEST_F(PointersApart, EndOfOneAllocationMayBeTheNext) {
  const CUdeviceptr lower = allocate(2 * 4096);
  fake<void (*)(CUdeviceptr, size_t)>("fakeSplitAllocation")(lower, 4096);
  EXPECT_TRUE(apart(lower + 64, lower + 4096 + 64));
  EXPECT_FALSE(apart(lower + 64, lower + 4096)) << "its end";
  EXPECT_TRUE(apart(lower + 64, lower + 4096, true)) << "not where nothing below is used";
  EXPECT_FALSE(apart(lower + 4092, lower + 4096, true)) << "an array counted from one";
}

TEST_F(PointersApart, PointersInStructs) {
  const CUdeviceptr one = allocate(), other = allocate();
  EXPECT_TRUE(is_apart({{kInStruct}, {kLast}}, 0, one + 64, other + 64));
  EXPECT_FALSE(is_apart({{kInStruct}, {kLast}}, 0, one + 64, one + 128));
}

TEST_F(PointersApart, SymbolsOfTheModule) {
  const CUdeviceptr one = allocate(), symbol = allocate();
  EXPECT_TRUE(apart_from_symbol(one + 64, symbol, 512));
  EXPECT_FALSE(apart_from_symbol(symbol + 64, symbol, 512));
  EXPECT_FALSE(apart_from_symbol(one + 64, 0, 512)) << "not known where it lies";
  EXPECT_FALSE(apart_from_symbol(one + 64, symbol, 0));
}

TEST_F(PointersApart, WhatWasFoundHoldsUntilMemoryIsFreed) {
  first_ = allocate() + 64;
  last_ = allocate() + 64;
  const std::array pairs = {ApartPair{{kFirst}, {kLast}}};
  PointersFoundApart found;
  const auto is_found = [&](uint64_t context_id) {
    const std::array pointers = {first_, last_};
    return found.are_apart(pointers, context_id, [&](KnownAllocations& known) {
      return are_apart(pairs, {}, launch_, kLayout, known);
    });
  };
  const auto asks = [&](uint64_t context_id = 1) {
    forget_calls();
    EXPECT_TRUE(is_found(context_id));
    return !calls("cuPointerGetAttributes").empty();
  };
  EXPECT_TRUE(asks());
  EXPECT_FALSE(asks());
  EXPECT_TRUE(asks(2)) << "another context";
  EXPECT_FALSE(asks(1));
  first_ += 8;
  EXPECT_TRUE(asks()) << "the other context's allocations are known";
  first_ += 8;
  EXPECT_FALSE(asks()) << "other addresses in the same allocations";
  std::swap(first_, last_);
  EXPECT_FALSE(asks());
  forget_allocations();
  EXPECT_TRUE(asks());
  // The same addresses, in one allocation.
  const CUdeviceptr both = allocate(4096);
  first_ = both + 64;
  last_ = both + 128;
  EXPECT_FALSE(is_found(1));
  EXPECT_FALSE(is_found(1));
}

TEST_F(PointersApart, MorePointersAreRememberedThanAProgramSwaps) {
  const CUdeviceptr one = allocate(), other = allocate();
  PointersFoundApart found;
  int looks = 0;
  for (int round = 0; round < 2; ++round) {
    for (CUdeviceptr i = 0; i < 16; ++i) {
      const std::array pointers = {one + 8 * i, other};
      EXPECT_TRUE(found.are_apart(pointers, 1, [&](KnownAllocations&) { return ++looks > 0; }));
    }
  }
  EXPECT_EQ(16, looks);
}

TEST_F(PointersApart, EachLaunchAsksAgainAboutAddressesWithoutMemory) {
  const CUdeviceptr lower = allocate(2 * 4096);
  KnownAllocations allocations;
  EXPECT_EQ(lower, allocations.around(lower + 8).begin);
  EXPECT_FALSE(allocations.around(1).is_known());
  forget_calls();
  EXPECT_FALSE(allocations.around(1).is_known());
  EXPECT_EQ(0u, calls("cuPointerGetAttributes").size());
  allocations.begin_launch();
  EXPECT_FALSE(allocations.around(1).is_known());
  EXPECT_EQ(lower, allocations.around(lower + 64).begin);
  EXPECT_EQ(1u, calls("cuPointerGetAttributes").size());
}

TEST_F(PointersApart, EveryPairCounts) {
  first_ = allocate() + 64;
  last_ = allocate() + 64;
  pair_.first = last_;
  const std::array pairs = {ApartPair{{kFirst}, {kLast}}, ApartPair{{kInStruct}, {kLast}}};
  EXPECT_TRUE(look(std::span(pairs).first(1)));
  EXPECT_FALSE(look(pairs));
  EXPECT_TRUE(look({}));
}

TEST_F(PointersApart, AsksOnceAboutEachAddress) {
  first_ = allocate() + 64;
  last_ = allocate() + 64;
  pair_.first = allocate() + 64;
  const std::array pairs = {ApartPair{{kFirst}, {kLast}}, ApartPair{{kFirst}, {kInStruct}},
                            ApartPair{{kInStruct}, {kLast}}};
  EXPECT_TRUE(look(pairs));
  EXPECT_EQ(3u, calls("cuPointerGetAttributes").size());
}

// A kernel that reads `last` at 4*number + i.
TEST_F(PointersApart, NumbersMayLeadToAnotherAllocation) {
  std::array<CUdeviceptr, 9> places{};
  for (CUdeviceptr& place : places) place = allocate();
  const CUdeviceptr low = *std::ranges::min_element(places), high = *std::ranges::max_element(places);
  const jit::Distance to_high{{{4, {{kInt, 4, true}}}}};
  const std::array distances = {to_high};
  const ApartPair pair{{kFirst, true, {}}, {kLast, true, distances}};
  number_ = 10;
  EXPECT_TRUE(is_apart(pair, high, 0, low));
  number_ = static_cast<int>((high - low) / 4);
  EXPECT_FALSE(is_apart(pair, high, 0, low));
  number_ = -number_;
  EXPECT_FALSE(is_apart(pair, low, 0, high));
  number_ = 1 << 30;
  EXPECT_TRUE(is_apart(pair, high, 0, low)) << "no array is there";
  EXPECT_TRUE(is_apart(pair, high, 0, 0)) << "a null pointer is tested for";
  const std::array third = {jit::Distance{{{-4ULL, {{kInt, 4, true}}}, {2, {}}}, 3}};
  number_ = -3 * static_cast<int>((high - low) / 4);
  EXPECT_FALSE(is_apart({{kFirst, true, {}}, {kLast, true, third}}, high, 0, low));
  number_ = 30;
  EXPECT_TRUE(is_apart({{kFirst, true, {}}, {kLast, false, third}}, high, 0, low + 256));
  CUdeviceptr last = allocate(512);
  for (int tries = 0; last < low && tries < 100; ++tries) last = allocate(512);
  ASSERT_LT(low, last);
  number_ = static_cast<int>((last + 512 - low) / 4);
  EXPECT_TRUE(is_apart({{kFirst, true, {}}, {kLast, true, distances}}, last, 0, low));
  EXPECT_FALSE(is_apart({{kFirst, true, {}}, {kLast, false, distances}}, last, 0, low))
      << "counted from its end";
  const std::array missing = {jit::Distance{{{1, {{kInt, 8, true}}}}}};
  EXPECT_FALSE(is_apart({{kFirst, true, {}}, {kLast, true, missing}}, high, 0, low)) << "an int";
  const std::array constant = {jit::Distance{{{high - low, {}}}}};
  EXPECT_FALSE(is_apart({{kFirst, true, {}}, {kLast, true, constant}}, high, 0, low));
}

TEST_F(PointersApart, PackedParameters) {
  std::array<unsigned char, 44> buffer{};
  const CUdeviceptr one = allocate() + 64, other = allocate() + 64;
  std::memcpy(&buffer[kInStruct], &one, sizeof one);
  std::memcpy(&buffer[kLast], &other, sizeof other);
  size_t size = buffer.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  Launch launch;
  launch.extra = extra;
  const std::array pairs = {ApartPair{{kInStruct}, {kLast}}};
  KnownAllocations known;
  EXPECT_TRUE(are_apart(pairs, {}, launch, kLayout, known));
  size = kLast + 7;
  EXPECT_FALSE(are_apart(pairs, {}, launch, kLayout, known)) << "not all of it is given";
}

TEST_F(PointersApart, OffsetsThatAreNoPointers) {
  EXPECT_EQ(std::nullopt, pointer_parameter(launch_, kLayout, 4)) << "it would reach into the next one";
  EXPECT_EQ(std::nullopt, pointer_parameter(launch_, kLayout, 40)) << "an int";
  EXPECT_EQ(std::nullopt, pointer_parameter(launch_, kLayout, 400));
  EXPECT_EQ(std::nullopt, pointer_parameter(launch_, {}, 0));
  EXPECT_EQ(std::nullopt, pointer_parameter(Launch(), kLayout, 0));
  pair_.second = 17;
  EXPECT_EQ(CUdeviceptr{17}, pointer_parameter(launch_, kLayout, 24));
}

TEST_F(PointersApart, NumbersThatAreNotNegative) {
  number_ = 3;
  EXPECT_TRUE(is_not_negative(launch_, kLayout, kInt, 4));
  number_ = -3;
  EXPECT_FALSE(is_not_negative(launch_, kLayout, kInt, 4));
  EXPECT_TRUE(is_not_negative(launch_, kLayout, kFirst, 8));
  EXPECT_FALSE(is_not_negative(launch_, kLayout, kInt, 8)) << "an int";
  EXPECT_FALSE(is_not_negative(Launch(), kLayout, kInt, 4)) << "nothing is passed";
}

}  // namespace
}  // namespace klap::runtime
