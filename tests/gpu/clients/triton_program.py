"""Triton: a kernel that Triton compiles and loads through the driver."""

import common


def kernels():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def scale(source, target, size, block: tl.constexpr):
        place = tl.program_id(0) * block + tl.arange(0, block)
        value = tl.load(source + place, mask=place < size)
        tl.store(target + place, value * 3 + place, mask=place < size)

    source = torch.arange(10_007, device="cuda")
    target = torch.zeros_like(source)
    scale[(triton.cdiv(source.numel(), 256),)](source, target, source.numel(), block=256)
    right = torch.arange(10_007) * 4
    return [] if torch.equal(target.cpu(), right) else ["values"]


common.run_way("triton_program", {"kernels": kernels})
