# Toolchain file for aarch64, with Debian's cross compiler and its packages for arm64 in KLAP_AARCH64_ROOT (build_aarch64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH $ENV{KLAP_AARCH64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# The CUDA toolkit is this machine's. Its headers are the same for both processors, and nothing of it is linked, though
# CMake asks for this library.
set(CUDA_CUDART $ENV{CUDAToolkit_ROOT}/lib64/libcudart.so CACHE FILEPATH "Not used")
set(KLAP_CUPTI_INCLUDE $ENV{CUDAToolkit_ROOT}/extras/CUPTI/include CACHE PATH "Folder of CUPTI's headers")
