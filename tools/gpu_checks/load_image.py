"""load_image.py IMAGE: prints how many milliseconds the driver needs for an image of machine code, in a new process.

A module's code comes into the context with its first function, so that is asked for, too.
"""

import ctypes
import sys
import time


def expect(result, what):
    if result != 0:
        sys.exit(f"{what}: CUDA error {result}")


def main():
    with open(sys.argv[1], "rb") as file:
        image = file.read()
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, module, functions = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_void_p * 1)()
    expect(cuda.cuInit(0), "cuInit")
    expect(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    expect(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    expect(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    start = time.perf_counter()
    expect(cuda.cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
    expect(cuda.cuModuleEnumerateFunctions(functions, 1, module), "cuModuleEnumerateFunctions")
    print((time.perf_counter() - start) * 1000)


if __name__ == "__main__":
    main()
