"""Programs made up for the tests of benchmarks/run, so that they need no GPU.

What benchmarks/run prints is what the project claims about itself. So its tests ask above all whether anything but the
truth could be printed: a limit that lost launches taken for a working one, a program that hung left out of the account,
a wrong result that gets a ratio, files of different machines mixed.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import time
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))

from harness import command, offered, results  # noqa: E402

# A program that speaks the --serve protocol and behaves as the file beside it says. What it is told it appends to a
# log, one line for a command with the name of the variant it is run as.
PROGRAM = r"""#!{python} -SE
import json, os, sys, time
me = os.path.abspath(__file__)
plan = json.load(open(me + ".json"))
words = sys.argv[1:]
if "--help" in words:
    print("  --variant " + "|".join(plan.get("variants", ["cdp", "flat"])) + " what\n  --serve\n  --input-cache TEXT")
    sys.exit(0)
option = lambda name, usual: words[words.index(name) + 1] if name in words else usual
limit = int(option("--pending-limit", "2048"))
name = option("--variant", "native")
if "LD_PRELOAD" in os.environ:
    name = "/".join(os.environ[key] for key in ("KLAP_GRANULARITY", "KLAP_LAUNCHER") if key in os.environ) or "waits"
def log(text):
    with open(os.path.join(os.path.dirname(me), "log.txt"), "a") as file:
        file.write(f"{name} {os.getpid()} {text}\n")
def reply(**answer):
    print(json.dumps(answer), flush=True)
def do(what):
    if what == "hang":
        time.sleep(100)
    if what == "crash":
        os.kill(os.getpid(), 11)
part = plan.get(name + " " + os.environ.get("KLAP_GUARD", ""), plan.get(name, {}))
log(f"start {limit}")
if part.get("start"):
    if isinstance(part["start"], int):
        print("cannot be had here", file=sys.stderr)
        sys.exit(part["start"])
    do(part["start"])
reply(program="fake", variant=name, child_launches=5000 if name == "native" else 0, bytes_to_move=4000000)
runs = 0
for line in sys.stdin:
    line = line.strip()
    if line == "quit":
        break
    log(line + (f" {limit}" if name == "native" else ""))
    now = dict(part, **part.get("limits", {}).get(str(limit), {}))
    if line.startswith("limit "):
        limit = int(line[6:])
        reply(limit=limit)
    elif line == "lost":
        reply(lost_launches=now.get("lost", 0))
    elif line == "run":
        runs += 1
        if runs > now.get("good_runs", 0):
            do(now.get("do"))
        mistake = now.get("mistake", "") if runs > now.get("good_runs", 0) else ""
        reply(ms=now.get("ms", 1.0), mistake=mistake)
if "KLAP_STATS" in os.environ and not part.get("no_statistics"):
    json.dump(part.get("stats", plan["stats"]), open(os.environ["KLAP_STATS"], "w"))
"""

KLAP_PTX = r"""#!/bin/sh
case "$1" in
  settings) echo '[{"variable": "KLAP_GRANULARITY", "values": "none | grid", "default": "grid"},
                   {"variable": "KLAP_LAUNCHER", "values": "host | device", "default": "host"}]' ;;
  explain) cat "$0.explain.json" ;;
esac
"""

SITE = {"parent_demangled": "void expand<false>(int*)", "child_demangled": "visit(int*)", "verdict": "rewritten",
        "granularity": "grid", "launcher": "host"}
LEFT = {"parent_demangled": "other(int*)", "child_demangled": "visit(int*)", "verdict": "left",
        "reason": "child-barrier"}
STATS = {"modules": [{"sites": [SITE, dict(SITE, parent_demangled="void expand<true>(int*)")]}],
         "launches": {"redirected": {"expand": 3}}}
WITH_A_SITE_LEFT = {"modules": [{"sites": [SITE, LEFT]}], "launches": {"redirected": {"expand": 3}}}

# 2,048 loses launches, 4,096 is wrong, 8,192 hangs, 16,384 works and 32,768 is faster, 65,536 is not.
HARD = {"2048": {"ms": 1, "lost": 7}, "4096": {"ms": 1, "mistake": "distance 3 is 5, not 4"}, "8192": {"do": "hang"},
        "16384": {"ms": 8}, "32768": {"ms": 6}, "65536": {"ms": 6.5}, "131072": {"ms": 1}}
EASY = {"ms": 6}


class WithPrograms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(self.folder, "out.json")
        for cached in (offered.help_of, offered.sites_of):
            cached.cache_clear()
        self.write("build/lib/libklap_jit.so", "not a library: the dynamic linker warns and goes on\n")
        self.write("build/bin/klap-ptx", KLAP_PTX, 0o755)
        self.explain([])

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def explain(self, sites):
        self.write("build/bin/klap-ptx.explain.json", json.dumps({"sites": sites}))

    def program(self, name="fake", paper="KLAP", **plan):
        plan.setdefault("native", EASY)
        plan.setdefault("flat", {"ms": 2})
        plan.setdefault("grid/host", {"ms": 0.5})
        plan.setdefault("grid/device", {"ms": 1.5})
        plan.setdefault("stats", STATS)
        self.write(f"build/bin/bench/{name}", PROGRAM.replace("{python}", sys.executable), 0o755)
        self.write(f"build/bin/bench/{name}.json", json.dumps(plan))
        entry = {"rows": [{"paper": paper, "name": name, "arguments": [], "quick": True}]}
        self.write(f"benchmarks/{name}/rows.json", json.dumps(entry))

    def words(self, *arguments):
        return ["--assume-gpu", "--no-build", "--build", os.path.join(self.folder, "build"), "--benchmarks",
                os.path.join(self.folder, "benchmarks"), "--out", self.out, "--commit", "abc", "--reps", "5",
                "--timeout", "0.4", *arguments]

    def main(self, *arguments):
        """(exit code, standard output, standard error)."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main(list(arguments))
        return code, out.getvalue(), err.getvalue()

    def measure(self, *arguments):
        """(exit code, what was printed, the result file's content)."""
        code, out, err = self.main(*self.words(*(arguments or ["--all"])))
        self.assertTrue(os.path.exists(self.out), out + err)
        return code, out + err, results.read(self.out)

    def log(self):
        with open(os.path.join(self.folder, "build/bin/bench/log.txt"), encoding="utf-8") as file:
            return [line.split(" ", 2) for line in file.read().splitlines()]

    def pids(self):
        """Every process that was started."""
        return {int(pid) for _, pid, _ in self.log()}

    def gone(self, pids):
        """Whether none of the processes is there after a short while."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and any(os.path.exists(f"/proc/{pid}") for pid in pids):
            time.sleep(0.02)
        return not any(os.path.exists(f"/proc/{pid}") for pid in pids)

    def variant(self, content, name, row=0):
        return next(v for v in content["rows"][row]["variants"] if v["name"] == name)
