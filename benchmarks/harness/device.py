"""What GPU there is, asked in processes of their own so that the harness itself never holds the device."""

import datetime
import os
import platform
import re
import shutil
import subprocess
import sys

PROBE = """
import ctypes, sys
try:
    driver = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit("no CUDA driver (libcuda.so.1) on this machine")
result = driver.cuInit(0)
if result != 0:
    sys.exit(f"cuInit failed with error {result}")
count, version = ctypes.c_int(), ctypes.c_int()
driver.cuDeviceGetCount(ctypes.byref(count))
driver.cuDriverGetVersion(ctypes.byref(version))
if count.value == 0:
    sys.exit("the driver reports no device")
name = ctypes.create_string_buffer(200)
driver.cuDeviceGetName(name, 200, 0)
print(name.value.decode())
print(f"{version.value // 1000}.{version.value % 1000 // 10}")
"""


def probe():
    """Returns (name and CUDA version, "") or (None, why there is no usable GPU)."""
    result = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, timeout=120)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines()
        return None, lines[-1] if lines else "the driver does not answer"
    name, version = result.stdout.splitlines()[:2]
    return {"device": name, "cuda_driver_api": version}, ""


def assumed():
    """What `probe` would say, for tests without a GPU."""
    return {"device": "assumed", "cuda_driver_api": ""}, ""


def toolkit():
    """The version of the CUDA toolkit that is found as the build finds it, or "unknown"."""
    folders = [os.environ.get(name, "") for name in ("CUDAToolkit_ROOT", "CUDA_HOME", "CUDA_PATH")]
    candidates = [os.path.join(folder, "bin", "nvcc") for folder in [*folders, "/usr/local/cuda"] if folder]
    nvcc = next((file for file in candidates if os.access(file, os.X_OK)), None) or shutil.which("nvcc")
    if nvcc is None:
        return "unknown"
    try:
        result = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    found = re.search(r"release ([\d.]+)", result.stdout)
    return found.group(1) if found else "unknown"


def smi(query):
    """One line of nvidia-smi, empty where there is none."""
    try:
        result = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader", "-i", "0"],
                                capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


def describe(found, commit):
    """The header of every result file."""
    return {
        "device": found["device"],
        "driver": smi("driver_version"),
        "cuda_driver_api": found["cuda_driver_api"],
        "toolkit": toolkit(),
        "memory": smi("memory.total"),
        "clocks_sm_now_max": smi("clocks.sm,clocks.max.sm"),
        "host": f"{platform.machine()}, {platform.system()} {platform.release()}",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": commit,
    }
