"""CuPy: code that launches kernels, in the three ways in which CuPy can compile it.

The first two are linked by CuPy through the driver, with the device runtime. The third is compiled and linked by nvcc,
so what CuPy loads is machine code alone, and nothing can be rewritten.
"""

import common


def launch(kernel):
    import cupy
    import numpy

    begins, right = common.work(numpy)
    values = cupy.zeros(right.size, cupy.int32)
    arguments = (cupy.asarray(begins), values, numpy.int32(common.PARENTS))

    def once():
        kernel((common.blocks(),), (common.THREADS,), arguments)
        cupy.cuda.get_current_stream().synchronize()

    once()
    wrong = common.judge_values(numpy, values.get(), right)
    values.fill(0)
    common.timed(once)
    return wrong + common.judge_values(numpy, values.get(), right)


def raw_kernel():
    import cupy
    return launch(cupy.RawKernel(common.SOURCE, "parent", options=("-dc",)))


def raw_module():
    import cupy
    return launch(cupy.RawModule(code=common.SOURCE, options=("-dc",)).get_function("parent"))


def nvcc():
    import cupy
    module = cupy.RawModule(code=common.SOURCE, options=("-dc",), backend="nvcc")
    return launch(module.get_function("parent"))


def arrays():
    """CuPy's own kernels, none of which launches."""
    import cupy
    import numpy

    host = numpy.arange(100_000, dtype=numpy.float64) % 977
    array = cupy.asarray(host)
    found = [cupy.sort(array).get(), cupy.cumsum(array).get(), (array * 2 + 1).get(), array.sum().get()]
    right = [numpy.sort(host), numpy.cumsum(host), host * 2 + 1, host.sum()]
    return [f"result {number}" for number, (one, other) in enumerate(zip(found, right)) if not numpy.allclose(one, other)]


common.run_way("cupy_modules", {"kernel": raw_kernel, "module": raw_module, "nvcc": nvcc, "arrays": arrays})
