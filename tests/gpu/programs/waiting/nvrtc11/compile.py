#!/usr/bin/env python3
"""Compiles the kernels of the programs beside this folder to PTX with NVRTC 11.8, whose parallelism is of version 1.

Usage: compile.py LIBRARIES   makes the PTX anew; LIBRARIES is the folder of libnvrtc.so.11.2
       compile.py --check     says which PTX is not of its program's present kernels

NVRTC comes from its wheel:
  pip download nvidia-cuda-nvrtc-cu11==11.8.89 --no-deps
  unzip -d /tmp/nvrtc11 nvidia_cuda_nvrtc_cu11-*.whl
  ./compile.py /tmp/nvrtc11/nvidia/cuda_nvrtc/lib

The PTX is kept in the repository, because machines that run the tests have no network.
"""

import ctypes
import hashlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
NOT_A_MODULE = {"newer", "polling"}  # for today's devices, and taken by these
OPTIONS = ["--gpu-architecture=compute_80", "--relocatable-device-code=true", "--std=c++17",
           "-D__CDPRT_SUPPRESS_SYNC_DEPRECATION_WARNING"]


def programs():
    return [path for path in sorted(HERE.parent.glob("*.cu")) if path.stem not in NOT_A_MODULE]


def device_part(program):
    """What NVRTC sees of a program."""
    return program.read_text(encoding="utf-8").split("#ifndef __CUDACC_RTC__\n")[0]


def first_line(program):
    digest = hashlib.sha256(device_part(program).encode()).hexdigest()
    return f"// The kernels of {program.name}, whose text has the SHA-256 {digest}\n"


def ptx_of(program):
    return HERE / f"{program.stem}.ptx"


class Compiler:
    """NVRTC, from a folder of libraries."""

    def __init__(self, folder):
        # NVRTC opens this one by its name alone and finds it loaded.
        ctypes.CDLL(str(folder / "libnvrtc-builtins.so.11.8"))
        self.nvrtc = ctypes.CDLL(str(folder / "libnvrtc.so.11.2"))

    def text(self, program, what):
        """The log or the PTX of a compilation."""
        size = ctypes.c_size_t()
        getattr(self.nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        getattr(self.nvrtc, f"nvrtcGet{what}")(program, text)
        return text.value.decode()

    def compile(self, source, name):
        program = ctypes.c_void_p()
        # The programs' header has nothing for the device.
        headers, names = (ctypes.c_char_p * 1)(b""), (ctypes.c_char_p * 1)(b"sizes.h")
        self.nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 1, headers, names)
        options = (ctypes.c_char_p * len(OPTIONS))(*(option.encode() for option in OPTIONS))
        if self.nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options) != 0:
            sys.exit(self.text(program, "ProgramLog"))
        return self.text(program, "PTX")


def check():
    old = [program.name for program in programs()
           if not ptx_of(program).exists() or not ptx_of(program).read_text().startswith(first_line(program))]
    return f"run {__file__} for the new kernels of {', '.join(old)}" if old else 0


def main():
    if len(sys.argv) != 2:
        return __doc__
    if sys.argv[1] == "--check":
        return check()
    compiler = Compiler(pathlib.Path(sys.argv[1]))
    for program in programs():
        ptx = compiler.compile(device_part(program), program.name)
        ptx_of(program).write_text(first_line(program) + ptx.rstrip("\n") + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
