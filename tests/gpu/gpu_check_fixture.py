"""Programs made up for the tests of tools/gpu_check, in build folders of their own."""

import contextlib
import io
import json
import os
import runpy
import stat
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TOOLS = os.path.join(ROOT, "tools")
sys.path[:0] = [TOOLS, os.path.join(ROOT, "benchmarks")]

from harness import process  # noqa: E402

# The one program that the command is told of.
ENTRY = {"name": "p", "redirected": ["parent"], "children": 12}

# A program that behaves differently when it is preloaded; {natively} and {preloaded} are shell commands.
SCRIPT = """#!/bin/sh
if [ -n "$LD_PRELOAD" ]; then
  {preloaded}
else
  {natively}
fi
"""

# LAUNCHER becomes what KLAP_LAUNCHER asks for, GRANULARITY what KLAP_GRANULARITY does.
SITE = {"parent_demangled": "parent(int*)", "child_demangled": "child(int*)", "verdict": "rewritten",
        "granularity": "GRANULARITY", "launcher": "LAUNCHER", "notes": []}
STATS = {"modules": [{"how": "rewritten", "sites": [SITE]}], "launches": {"redirected": {"_Z6parentPi": 3}},
         "children_aggregated": 12, "toolchain_calls": {"nvrtc": 0, "nvjitlink": 0}}


def write_stats(stats):
    text = json.dumps(stats)
    asked = "s/LAUNCHER/${KLAP_LAUNCHER:-host}/;s/GRANULARITY/${KLAP_GRANULARITY:-grid}/"
    return f"printf '%s' '{text}' | sed \"{asked}\" > \"$KLAP_STATS\""


def bench(ms, mistake=""):
    """Shell commands that answer as a benchmark program does that is told what to do (benchmarks/common/harness.h)."""
    described = json.dumps({"program": "bfs", "child_launches": 4})
    ran = json.dumps({"ms": ms, "mistake": mistake})
    return f"""case "$*" in
  *--help*) echo '--variant cdp|flat'; exit 0 ;;
  *--serve*)
    echo '{described}'
    while read -r what && [ "$what" != quit ]; do
      case "$what" in
        run) echo '{ran}' ;;
        lost) echo '{{"lost_launches": 0}}' ;;
        *) echo '{{"limit": 0}}' ;;
      esac
    done ;;
esac"""


def quiet(_):
    pass


class WithBuild(unittest.TestCase):
    """A build folder whose programs each test writes for itself."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.where = process.Installation(folder.name)
        self.touch(self.where.library)

    def touch(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("not a library: the dynamic linker warns and goes on\n")

    def program(self, folder, name, natively, preloaded):
        path = self.where.program(folder, name)
        self.touch(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(SCRIPT.format(natively=natively, preloaded=preloaded))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


class WithCommand(WithBuild):
    def run_command(self, *arguments):
        expectations = os.path.join(self.where.build, "expectations.json")
        with open(expectations, "w", encoding="utf-8") as file:
            json.dump({"programs": [ENTRY]}, file)
        command = runpy.run_path(os.path.join(TOOLS, "gpu_check"))["main"]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = command(["--build", self.where.build, "--expectations", expectations, "--assume-gpu", *arguments])
        return code, out.getvalue()
