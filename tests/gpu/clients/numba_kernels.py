"""Numba: kernels of its own, and a kernel that calls CUDA code which launches.

Numba has no launch in a kernel. Programs link CUDA C++ to theirs for it, as source, which Numba compiles with NVRTC and
links with nvJitLink, as intermediate code of link-time optimisation or as PTX.
"""

import common


def imported():
    """numpy and numba.cuda. Versions of Numba ask numpy for a name that newer ones of it have dropped."""
    import numpy
    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = numpy.vstack
    from numba import cuda
    return numpy, cuda


# A function in the form in which Numba calls one: the result behind the first pointer.
LAUNCHING = common.SOURCE.partition('extern "C" __global__ void parent')[0] + r"""
extern "C" __device__ int launch_child(int* result, long long values, int begin, int size, int parent) {
  if (size > 0) child<<<(size + 63) / 64, 64>>>(reinterpret_cast<int*>(values), begin, size, parent);
  *result = size;
  return 0;
}
"""


def launching(lto):
    numpy, cuda = imported()
    begins, right = common.work(numpy)
    launch_child = cuda.declare_device("launch_child", "int32(int64, int32, int32, int32)",
                                       link=[cuda.CUSource(LAUNCHING), common.device_runtime()])

    @cuda.jit(lto=lto)
    def parent(begins, values, parents):
        index = cuda.grid(1)
        if index < parents:
            launch_child(values, begins[index], begins[index + 1] - begins[index], index)

    begins_there = cuda.to_device(begins)
    values = cuda.to_device(numpy.zeros_like(right))

    address = values.device_ctypes_pointer.value

    def once():
        parent[common.blocks(), common.THREADS](begins_there, address, common.PARENTS)
        cuda.synchronize()

    once()
    wrong = common.judge_values(numpy, values.copy_to_host(), right)
    values.copy_to_device(numpy.zeros_like(right))
    common.timed(once)
    return wrong + common.judge_values(numpy, values.copy_to_host(), right)


def kernels():
    """A kernel that Numba compiled alone, and a reduction."""
    numpy, cuda = imported()

    @cuda.jit
    def scale(values, factor):
        index = cuda.grid(1)
        if index < values.size:
            values[index] = values[index] * factor + index

    host = numpy.arange(100_000, dtype=numpy.float64)
    there = cuda.to_device(host)
    scale[(host.size + 255) // 256, 256](there, 3.0)
    total = cuda.reduce(lambda one, other: one + other)(cuda.to_device(host))
    wrong = [] if numpy.array_equal(there.copy_to_host(), host * 3.0 + host) else ["scaled values"]
    return wrong if total == host.sum() else [*wrong, f"sum {total}"]


common.run_way("numba_kernels", {"kernels": kernels, "launching": lambda: launching(True),
                                 "launching-ptx": lambda: launching(False)})
