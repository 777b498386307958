"""What the Python programs of this folder share: CUDA code whose kernel launches kernels, and how it is judged.

Each program is run by tools/gpu_check, natively and preloaded. Its last lines tell a time and, after it, whether all of
its results were right; a program whose package is missing ends with the code that means "not run".
"""

import os
import statistics
import sys
import time

PARENTS = 2000  # fewer than the 2,048 launches that the device runtime keeps pending
THREADS = 128
LAUNCHES = 30
NOT_RUN = 77

# The kernel `parent` launches a grid for each of its threads that has work.
SOURCE = r"""
extern "C" __global__ void child(int* values, int begin, int size, int parent) {
  const int place = blockIdx.x * blockDim.x + threadIdx.x;
  if (place < size) values[begin + place] = 3 * parent + place;
}
extern "C" __global__ void parent(const int* begins, int* values, int parents) {
  const int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= parents) return;
  const int size = begins[index + 1] - begins[index];
  if (size > 0) child<<<(size + 63) / 64, 64>>>(values, begins[index], size, index);
}
"""


def work(numpy):
    """Where each parent's values begin, and the right values; every seventh parent has none."""
    index = numpy.arange(PARENTS)
    sizes = numpy.where(index % 7 == 0, 0, 1 + index * 37 % 300)
    begins = numpy.concatenate([[0], numpy.cumsum(sizes)]).astype(numpy.int32)
    right = numpy.concatenate([3 * parent + numpy.arange(size) for parent, size in enumerate(sizes)])
    return begins, right.astype(numpy.int32)


def blocks():
    return (PARENTS + THREADS - 1) // THREADS


def device_runtime():
    """The archive of the device runtime, which code that launches is linked with."""
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for root in filter(None, roots):
        for folder in ("lib64", "lib", "targets/x86_64-linux/lib"):
            path = os.path.join(root, folder, "libcudadevrt.a")
            if os.path.exists(path):
                return path
    not_run("libcudadevrt.a was not found")


def not_run(why):
    print(f"not run: {why}")
    sys.exit(NOT_RUN)


def timed(launch_and_wait):
    """Runs a launch with its wait many times and prints the median, the first ones left out."""
    samples = []
    for _ in range(LAUNCHES):
        begin = time.perf_counter()
        launch_and_wait()
        samples.append(time.perf_counter() - begin)
    print(f"MILLISECONDS {1000 * statistics.median(samples[5:]):.4f}")


def verdict(name, wrong):
    """Ends the program: `wrong` says what was not as it should be, empty if nothing was."""
    for text in wrong:
        print(f"wrong: {text}")
    print(f"{'FAIL' if wrong else 'PASS'} {name}")
    sys.exit(1 if wrong else 0)


def judge_values(numpy, found, right):
    """What is wrong with the children's values."""
    different = numpy.flatnonzero(found != right)
    if different.size == 0:
        return []
    first = different[0]
    return [f"{different.size} of {right.size} values, the first at {first}: {found[first]} instead of {right[first]}"]


def run_way(name, ways):
    """Runs the way that the command line names."""
    if len(sys.argv) != 2 or sys.argv[1] not in ways:
        sys.exit(f"usage: {name} {'|'.join(ways)}")
    try:
        wrong = ways[sys.argv[1]]()
    except ImportError as error:
        not_run(str(error))
    verdict(f"{name} {sys.argv[1]}", wrong)
