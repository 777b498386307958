// Memory, copies and sets.
#include <algorithm>
#include <numeric>

#include "driver_fixture.h"

namespace klap::emulator::driver_test {
namespace {

using testing::Each;
using testing::ElementsAre;

class MemoryTest : public DriverTest {};

TEST_F(MemoryTest, CountsWhatIsUsed) {
  size_t free_before = 0, free_after = 0, total = 0, whole = 0;
  OK(cuMemGetInfo(&free_before, &total));
  OK(cuDeviceTotalMem(&whole, 0));
  EXPECT_EQ(whole, total);
  CUdeviceptr memory = 0;
  OK(cuMemAlloc(&memory, 1 << 20));
  OK(cuMemGetInfo(&free_after, &total));
  EXPECT_LE(free_after + (1 << 20), free_before);
  OK(cuMemFree(memory));
  OK(cuMemGetInfo(&free_after, &total));
  EXPECT_EQ(free_before, free_after);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
  EXPECT_RESULT(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&memory, whole + 1));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&memory, 0));
}

TEST_F(MemoryTest, CopiesInAllDirections) {
  const std::vector<int> values{1, 2, 3, 4};
  const CUdeviceptr a = device_array(values), b = device_array({0, 0, 0, 0});
  OK(cuMemcpyDtoD(b, a + 4, 12));
  EXPECT_THAT(host_array(b, 4), ElementsAre(2, 3, 4, 0));
  OK(cuMemcpy(b, reinterpret_cast<CUdeviceptr>(values.data()), 8));
  EXPECT_THAT(host_array(b, 4), ElementsAre(1, 2, 4, 0));
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::vector<int> back(4);
  OK(cuMemcpyHtoDAsync(a, back.data(), 4, stream));
  OK(cuMemcpyDtoDAsync(b, a, 16, stream));
  OK(cuMemcpyDtoHAsync(back.data(), b, 16, stream));
  OK(cuStreamSynchronize(stream));
  EXPECT_THAT(back, ElementsAre(0, 2, 3, 4));
}

// Pinned memory is read when the copy is done, pageable memory when it is asked for.
TEST_F(MemoryTest, ReadsPinnedMemoryLate) {
  int* pinned = nullptr;
  int pageable = 1;
  OK(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), sizeof(int), 0));
  *pinned = 1;
  const CUdeviceptr data = device_array({0, 0});
  OK(cuMemcpyHtoDAsync(data, pinned, 4, nullptr));
  OK(cuMemcpyHtoDAsync(data + 4, &pageable, 4, nullptr));
  *pinned = pageable = 2;
  EXPECT_THAT(host_array(data, 2), ElementsAre(2, 1));
}

TEST_F(MemoryTest, RefusesCopiesPastTheEnd) {
  const CUdeviceptr data = device_array({1, 2});
  std::vector<int> host(16);
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host.data(), data, 12));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(data + 4, host.data(), 8));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(data, 0, 9));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host.data(), 64, 4));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("inside 8 bytes allocated by the host"));
}

TEST_F(MemoryTest, CopiesBoxes) {
  CUdeviceptr device = 0;
  size_t pitch = 0;
  OK(cuMemAllocPitch(&device, &pitch, 3 * sizeof(int), 4, 4));
  EXPECT_GE(pitch, 3 * sizeof(int));
  std::vector<int> host(5 * 4);
  std::iota(host.begin(), host.end(), 0);
  CUDA_MEMCPY2D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST;
  in.srcHost = host.data();
  in.srcPitch = 5 * sizeof(int);
  in.srcXInBytes = sizeof(int);
  in.srcY = 1;
  in.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  in.dstDevice = device;
  in.dstPitch = pitch;
  in.WidthInBytes = 3 * sizeof(int);
  in.Height = 3;
  OK(cuMemcpy2D(&in));
  EXPECT_THAT(host_array(device + pitch, 3), ElementsAre(11, 12, 13));
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  out.srcDevice = device;
  out.srcPitch = pitch;
  out.srcHeight = 1;
  out.dstMemoryType = CU_MEMORYTYPE_HOST;
  std::vector<int> back(6, -1);
  out.dstHost = back.data();
  out.dstPitch = 2 * sizeof(int);
  out.dstHeight = 1;
  out.WidthInBytes = 2 * sizeof(int);
  out.Height = 1;
  out.Depth = 3;
  OK(cuMemcpy3D(&out));
  EXPECT_THAT(back, ElementsAre(6, 7, 11, 12, 16, 17));
  in.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED, cuMemcpy2D(&in));
}

TEST_F(MemoryTest, SetsMemory) {
  const CUdeviceptr data = device_array({0, 0, 0, 0});
  OK(cuMemsetD32(data, 0x01020304, 4));
  OK(cuMemsetD16(data + 4, 0xffff, 1));
  OK(cuMemsetD8Async(data + 8, 0, 2, nullptr));
  EXPECT_THAT(host_array(data, 4), ElementsAre(0x01020304, 0x0102ffff, 0x01020000, 0x01020304));
  OK(cuMemsetD2D32(data, 8, 7, 1, 2));
  EXPECT_THAT(host_array(data, 4), ElementsAre(7, 0x0102ffff, 7, 0x01020304));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(data + 1, 0, 1));
}

TEST_F(MemoryTest, LetsTheDeviceUseHostMemory) {
  std::vector<int> mine(64, 1);
  OK(cuMemHostRegister(mine.data(), mine.size() * sizeof(int), CU_MEMHOSTREGISTER_DEVICEMAP));
  EXPECT_RESULT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(mine.data(), 4, 0));
  CUdeviceptr device = 0;
  OK(cuMemHostGetDevicePointer(&device, mine.data(), 0));
  CUfunction const scale = function("kernels.ptx", "scale");
  OK(launch(scale, 2, 32, 0, nullptr, device, 64, 3));
  OK(cuCtxSynchronize());
  EXPECT_THAT(mine, Each(3));
  OK(cuMemHostUnregister(mine.data()));
  EXPECT_RESULT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(mine.data()));
  CUdeviceptr managed = 0;
  OK(cuMemAllocManaged(&managed, 4, CU_MEM_ATTACH_GLOBAL));
  *reinterpret_cast<int*>(managed) = 5;
  OK(launch(scale, 1, 1, 0, nullptr, managed, 1, 3));
  OK(cuCtxSynchronize());
  EXPECT_EQ(15, *reinterpret_cast<int*>(managed));
}

size_t free_memory() {
  size_t left = 0, total = 0;
  EXPECT_RESULT(CUDA_SUCCESS, cuMemGetInfo(&left, &total));
  return left;
}

TEST_F(MemoryTest, ManagedMemoryTakesThePagesThatAreUsed) {
  constexpr size_t kBytes = size_t{16} << 30, kFetched = 1 << 20;  // more than the device has
  const size_t before = free_memory();
  CUdeviceptr managed = 0;
  OK(cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
  EXPECT_EQ(before, free_memory());
  const CUmemLocation device{CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  OK(cuMemAdvise_v2(managed, kFetched, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device));
  EXPECT_EQ(before, free_memory());
  OK(cuMemPrefetchAsync_v2(managed, kFetched, device, 0, nullptr));
  EXPECT_EQ(before - kFetched, free_memory());
  OK(cuMemsetD8(managed + kBytes - 1, 1, 1));
  OK(cuCtxSynchronize());
  EXPECT_GT(before - kFetched, free_memory());
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchAsync_v2(managed + 1, kBytes, device, 0, nullptr));
  OK(cuMemFree(managed));
  EXPECT_EQ(before, free_memory());
}

TEST_F(MemoryTest, KnowsPointers) {
  const CUdeviceptr data = device_array({1, 2, 3});
  unsigned type = 0;
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, data + 4));
  EXPECT_EQ(unsigned{CU_MEMORYTYPE_DEVICE}, type);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  OK(cuMemGetAddressRange(&base, &bytes, data + 8));
  EXPECT_EQ(data, base);
  EXPECT_EQ(12U, bytes);
  CUcontext owner = nullptr;
  OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, data));
  EXPECT_EQ(context, owner);
  int mine = 0;
  const auto host = reinterpret_cast<CUdeviceptr>(&mine);
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host));
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER};
  void* values[] = {&type, &base};
  OK(cuPointerGetAttributes(2, wanted, values, host));
  EXPECT_EQ(0U, type);
  EXPECT_EQ(0U, base);
}

TEST_F(MemoryTest, AllocatesInStreamOrder) {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, 0));
  CUdeviceptr data = 0;
  OK(cuMemAllocAsync(&data, 8, stream));
  OK(cuMemsetD32Async(data, 9, 2, stream));
  int back[2] = {};
  OK(cuMemcpyDtoHAsync(back, data, 8, stream));
  OK(cuMemFreeAsync(data, stream));
  OK(cuStreamSynchronize(stream));
  EXPECT_THAT(back, ElementsAre(9, 9));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(data, 9, 2));
}

TEST_F(MemoryTest, PoolsAreOfADeviceAndGiveMemoryInStreamOrder) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool pool = nullptr;
  OK(cuMemPoolCreate(&pool, &properties));
  int allows = 1;
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &allows));
  EXPECT_EQ(1, allows);
  allows = 0;
  OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &allows));
  allows = 1;
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &allows));
  EXPECT_EQ(0, allows);
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, 0));
  CUdeviceptr data = 0;
  OK(cuMemAllocFromPoolAsync(&data, 8, pool, stream));
  OK(cuMemsetD32Async(data, 9, 2, stream));
  OK(cuMemFreeAsync(data, stream));
  OK(cuStreamSynchronize(stream));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(data, 9, 2));
  OK(cuMemPoolDestroy(pool));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&data, 8, pool, stream));
  properties.location.id = 99;
  EXPECT_RESULT(CUDA_ERROR_INVALID_DEVICE, cuMemPoolCreate(&pool, &properties));
}

}  // namespace
}  // namespace klap::emulator::driver_test
