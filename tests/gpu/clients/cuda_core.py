"""cuda.core: a program compiled with NVRTC and linked with the device runtime, through nvJitLink or the driver."""

import common


def launch(kernel, device, stream):
    import numpy
    from cuda.core import LaunchConfig, launch as launch_kernel
    from cuda.bindings import driver

    begins, right = common.work(numpy)

    def check(result):
        if result[0] != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(str(result[0]))
        return result[1] if len(result) > 1 else None

    begins_there = check(driver.cuMemAlloc(begins.nbytes))
    values_there = check(driver.cuMemAlloc(right.nbytes))
    check(driver.cuMemcpyHtoD(begins_there, begins.ctypes.data, begins.nbytes))
    check(driver.cuMemsetD8(values_there, 0, right.nbytes))
    config = LaunchConfig(grid=common.blocks(), block=common.THREADS)

    def once():
        launch_kernel(stream, config, kernel, int(begins_there), int(values_there), numpy.int32(common.PARENTS))
        stream.sync()

    def judge():
        found = numpy.empty_like(right)
        check(driver.cuMemcpyDtoH(found.ctypes.data, values_there, found.nbytes))
        return common.judge_values(numpy, found, right)

    once()
    wrong = judge()
    check(driver.cuMemsetD8(values_there, 0, right.nbytes))
    common.timed(once)
    return wrong + judge()


def opened():
    from cuda.core import Device

    device = Device()
    device.set_current()
    return device, device.create_stream()


def linked(form):
    """The kernel of a program that is compiled to `form` and linked by cuda.core."""
    from cuda.core import Linker, LinkerOptions, ObjectCode, Program, ProgramOptions

    device, stream = opened()
    arch = "".join(map(str, device.compute_capability))
    lto = form == "ltoir"
    options = ProgramOptions(arch=f"sm_{arch}", relocatable_device_code=True, link_time_optimization=lto or None)
    code = Program(common.SOURCE, "c++", options).compile(form)
    with open(common.device_runtime(), "rb") as archive:
        runtime = ObjectCode.from_library(archive.read())
    linker = Linker(code, runtime, options=LinkerOptions(arch=f"sm_{arch}", link_time_optimization=lto or None))
    return launch(linker.link("cubin").get_kernel("parent"), device, stream)


common.run_way("cuda_core", {"ptx": lambda: linked("ptx"), "lto": lambda: linked("ltoir")})
