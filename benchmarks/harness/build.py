"""Building what is measured: the benchmark programs, the library to preload and klap-ptx."""

import os
import subprocess

from .rows import BadInput


def build(root, folder, programs, say):
    """Configures `folder` if that was not done and builds; BadInput with the tool's last lines if that fails."""
    say("building")
    carried = os.path.join(root, ".deps", "usr")
    options = [f"-DCMAKE_PREFIX_PATH={carried}"] if os.path.isdir(carried) else []
    if os.path.realpath(folder) == os.path.realpath(os.path.join(root, "build")):
        configure = ["cmake", "--preset", "release", *options]
    else:
        configure = ["cmake", "-S", root, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options]
    targets = ["klap_shim", "klap-ptx", *[f"bench_{name}" for name in sorted(set(programs))]]
    for command in (configure, ["cmake", "--build", folder, "--target", *targets]):
        try:
            done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False)
        except OSError as error:
            raise BadInput(f"cannot build: {command[0]}: {error.strerror} (--no-build uses what is there)") from error
        if done.returncode != 0:
            last = "\n".join(done.stdout.strip().splitlines()[-15:])
            raise BadInput(f"building failed ({' '.join(command[:2])}):\n{last}")


def check(where, programs):
    """BadInput unless the build folder holds everything needed."""
    files = [where.library, where.klap_ptx, *[where.program("bench", name) for name in sorted(set(programs))]]
    missing = [os.path.basename(file) for file in files if not os.path.exists(file)]
    if missing:
        raise BadInput(f"the build folder {os.path.basename(where.build)} has no {', '.join(missing)}")
