"""JAX: compiled functions, a sort and a loop on the device, none of which launches kernels."""

import common


def compiled():
    import jax
    import numpy

    if jax.default_backend() != "gpu":
        common.not_run("JAX sees no GPU")
    host = numpy.arange(40_000, dtype=numpy.float32).reshape(200, 200) % 31

    @jax.jit
    def power(matrix):
        return jax.lax.fori_loop(0, 3, lambda _, value: value @ matrix / 1000, matrix)

    right = host
    for _ in range(3):
        right = right @ host / 1000
    wrong = [] if numpy.allclose(power(host), right, rtol=2e-2) else ["products"]
    line = host.ravel()
    return wrong + ([] if numpy.array_equal(jax.numpy.sort(line), numpy.sort(line)) else ["sort"])


common.run_way("jax_program", {"compiled": compiled})
