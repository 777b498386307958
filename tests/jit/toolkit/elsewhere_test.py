"""NVRTC in a folder that the loader does not know: the second library that it opens by name is found beside it.

The loader is told to forget its cache, so that it knows its own folders alone.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

given = argparse.Namespace()  # the paths of the build


def loader_of(program):
    """The loader that a program asks for."""
    found = re.search(r"interpreter: (/[^\]]+)\]", subprocess.check_output(["readelf", "-l", program], text=True))
    return found[1]


class Elsewhere(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.libraries = self.folder / "lib64"
        self.libraries.mkdir()
        self.nvrtc = next(pathlib.Path(given.toolkit).glob("libnvrtc.so.*[0-9]")).resolve()
        self.builtins = next(self.nvrtc.parent.glob("libnvrtc-builtins.so.*.*")).resolve()
        self.name = re.match(r"libnvrtc\.so\.[0-9]+", self.nvrtc.name)[0]

    def rewrite(self):
        """Compiles with the NVRTC of the folder, which nothing but CUDA_HOME names."""
        program = given.build / "bin/klap-ptx"
        command = [loader_of(program), "--inhibit-cache", program, "rewrite", given.build / "bin/cli/launches.ptx",
                   "-o", self.folder / "out.ptx"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "CUDA_HOME": str(self.folder)}
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, check=False)

    def expect_rewritten(self):
        done = self.rewrite()
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertIn("2 rewritten", done.stdout)

    def test_a_library_of_another_version_is_not_taken(self):
        shutil.copy(self.nvrtc, self.libraries / self.name)
        (self.libraries / "libnvrtc-builtins.so.1.0").symlink_to(self.builtins)
        done = self.rewrite()
        if done.returncode == 0:
            self.skipTest("the loader of this machine finds NVRTC's libraries by itself")
        self.assertIn(f"failed to open {self.builtins.name}", done.stdout)
        (self.libraries / self.builtins.name).symlink_to(self.builtins)
        self.expect_rewritten()

    def test_links(self):
        (self.libraries / self.name).symlink_to(self.nvrtc)
        self.expect_rewritten()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--toolkit", required=True, help="folder of NVRTC")
    _, rest = parser.parse_known_args(namespace=given)
    given.build = given.build.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
