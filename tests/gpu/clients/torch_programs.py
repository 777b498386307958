"""PyTorch: its own kernels in every way in which it runs them, and an extension whose kernel launches kernels."""

import ctypes
import os
import subprocess
import tempfile

import common

EXTENSION = common.SOURCE + r"""
extern "C" int run_parent(const int* begins, int* values, int parents, int threads, cudaStream_t stream) {
  parent<<<(parents + threads - 1) / threads, threads, 0, stream>>>(begins, values, parents);
  return cudaGetLastError();
}
"""


def network(torch):
    """A small network with its input, the same in each process."""
    torch.manual_seed(7)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.LayerNorm(256),
                                 torch.nn.Linear(256, 32))
    return layers, torch.randn(128, 64)


def close(torch, found, right, what):
    return [] if torch.allclose(found.cpu(), right, rtol=1e-3, atol=1e-3) else [what]


def eager():
    import torch

    layers, data = network(torch)
    right = layers(data).detach()
    layers, data = layers.cuda(), data.cuda()
    wrong = close(torch, layers(data).detach(), right, "forward")
    loss = layers(data).square().mean()
    loss.backward()
    wrong += [] if all(torch.isfinite(each.grad).all() for each in layers.parameters()) else ["gradients"]
    values = torch.arange(100_000, device="cuda") * 7919 % 100_003
    wrong += [] if torch.equal(values.sort().values.cpu(), values.cpu().sort().values) else ["sort"]

    def small_launches():
        total = torch.zeros(16, device="cuda")
        for _ in range(1000):
            total += 1
        torch.cuda.synchronize()

    common.timed(small_launches)
    return wrong


def graphs():
    import torch

    layers, data = network(torch)
    right = layers(data).detach()
    layers, data = layers.cuda(), data.cuda()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        layers(data)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        found = layers(data)
    for _ in range(5):
        found.zero_()
        graph.replay()
    torch.cuda.synchronize()
    return close(torch, found, right, "replayed forward")


def compiled():
    import torch

    layers, data = network(torch)
    right = layers(data).detach()
    with torch.no_grad():
        found = torch.compile(layers.cuda())(data.cuda())
    return close(torch, found, right, "compiled forward")


def profiled():
    import torch
    from torch.profiler import ProfilerActivity, profile

    layers, data = network(torch)
    right = layers(data).detach()
    layers, data = layers.cuda(), data.cuda()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found, torch.no_grad():
        result = layers(data)
        torch.cuda.synchronize()
    kernels = [each for each in found.events() if each.device_type == torch.autograd.DeviceType.CUDA]
    return close(torch, result, right, "profiled forward") + ([] if kernels else ["no kernel was profiled"])


def built_extension(folder):
    """A shared library that nvcc made, loaded beside PyTorch's own and using its CUDA runtime."""
    import torch

    source, library = os.path.join(folder, "extension.cu"), os.path.join(folder, "libextension.so")
    with open(source, "w", encoding="utf-8") as file:
        file.write(EXTENSION)
    arch = "".join(map(str, torch.cuda.get_device_capability()))
    subprocess.run(["nvcc", "-shared", "-rdc=true", "-cudart=shared", "-Xcompiler=-fPIC",
                    f"-gencode=arch=compute_{arch},code=[compute_{arch},sm_{arch}]", source, "-o", library], check=True)
    return ctypes.CDLL(library)


def extension():
    import numpy
    import torch

    begins, right = common.work(numpy)
    begins = torch.from_numpy(begins).cuda()
    values = torch.zeros(right.size, dtype=torch.int32, device="cuda")
    with tempfile.TemporaryDirectory() as folder:
        run_parent = built_extension(folder).run_parent
    run_parent.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]

    def once():
        result = run_parent(begins.data_ptr(), values.data_ptr(), common.PARENTS, common.THREADS,
                            torch.cuda.current_stream().cuda_stream)
        if result != 0:
            raise RuntimeError(f"error {result}")
        torch.cuda.synchronize()

    once()
    wrong = common.judge_values(numpy, values.cpu().numpy(), right)
    values.zero_()
    common.timed(once)
    return wrong + common.judge_values(numpy, values.cpu().numpy(), right)


common.run_way("torch_programs", {"eager": eager, "graphs": graphs, "compiled": compiled, "profiled": profiled,
                                  "extension": extension})
