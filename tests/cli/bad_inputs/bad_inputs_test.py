"""Bad input, and settings that contradict one another: the exit code, and all that standard error says.

A case in a file *.cases is a shell script and what came out of its last command:

    --- NAME
    SCRIPT
    --- NAME: result
    exit code 1
    klap: STANDARD ERROR

Each script runs in an empty folder of its own. In the result FOLDER stands for it, BUILD for the folder of the build,
and SECONDS, OFFSET, SIZE and VERSION for numbers that are not always the same. KLAP_REBASE=1 writes the results into
the files; review them and commit them.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MARK = "--- "
END = ": result"
LIMIT = 60  # seconds that a script may take

# What scripts may use. `preloaded` runs a program that launches from its kernels, with the library, on the emulated
# GPU. `unprivileged` runs a command as a user who cannot read every file, as root can. `reasons` and `broken` show what
# matters here of standard output: why launch sites of a file are left, and what is wrong with the machine.
PRELUDE = """set -eu
preloaded() {
  env KLAP_EMULATOR_QUIET=1 KLAP_LINKER="${KLAP_LINKER-driver}" KLAP_NVRTC="${KLAP_NVRTC-$NVRTC}" \\
    LD_LIBRARY_PATH="$EMULATOR" LD_PRELOAD="$LIBRARY" "$EMULATED/failing_grid"
}
reasons() {
  klap explain --json "$@" > out
  sed -nE 's/^ *"(reason|detail)": "(.+)",?$/\\1: \\2/p' out >&2
}
broken() {
  code=0
  LD_LIBRARY_PATH="$EMULATOR" "$@" > out || code=$?
  awk '/^[a-z0-9]/ { is_broken = /^broken/ } is_broken && NF' out >&2
  return $code
}
unprivileged() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi
}
"""
VERSION = re.search('KLAP_VERSION "(.*)"', (ROOT / "include/klap/version.h").read_text(encoding="utf-8"))[1]
# The emulated GPU says of itself which code it takes. Places in what nvcc makes are others with another toolkit.
REPLACED = ((re.compile("^klap emulator: .*\\n", re.MULTILINE), ""), (re.compile(r"\b[0-9]+\.[0-9]+ s\b"), "SECONDS"),
            (re.compile(r"\b0x[0-9a-f]+ \([0-9]+ bytes\)"), "OFFSET (SIZE bytes)"),
            (re.compile(rf"\bversion {re.escape(VERSION)}"), "version VERSION"))


class Cases:
    """A file of cases: what stands before the first one, and the script and the result of each."""

    def __init__(self, path):
        self.path = path
        self.head, *sections = re.split(r"^--- ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        parts = [section.split("\n", 1) for section in sections]
        self.scripts = {name: text for name, text in parts if not name.endswith(END)}
        self.results = {name.removesuffix(END): text for name, text in parts if name.endswith(END)}
        if len(parts) != len(self.scripts) + len(self.results) or set(self.results) - set(self.scripts):
            sys.exit(f"{path}: two cases have one name, or a result has no case")

    def write(self, results):
        sections = (f"{MARK}{name}\n{script}{MARK}{name}{END}\n{results[name]}"
                    for name, script in self.scripts.items())
        self.path.write_text(self.head + "".join(sections), encoding="utf-8")


def environment(build, folder):
    """The variables of a script. It has nothing of the caller's, who may have settings, or a GPU."""
    return {"PATH": f"{build}/bin:/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C", "PROGRAMS": f"{build}/bin/cli",
            "PTX": f"{ROOT}/tools/klap/doctor/sample.ptx", "EMULATED": f"{build}/bin/emulated",
            "EMULATOR": f"{build}/lib/emulator", "LIBRARY": f"{build}/lib/libklap_jit.so",
            "NVRTC": os.environ.get("KLAP_NVRTC", "")}


def result_of(build, script):
    with tempfile.TemporaryDirectory(prefix="klap-bad-input-") as name:
        folder = pathlib.Path(name).resolve()
        folder.chmod(0o777)  # for another user
        done = subprocess.run(["sh", "-c", PRELUDE + script], cwd=folder, env=environment(build, folder), timeout=LIMIT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        subprocess.run(["chmod", "-R", "u+rwx", folder], check=False)
    said = done.stderr.decode(errors="backslashreplace").replace(str(folder), "FOLDER").replace(str(build), "BUILD")
    for pattern, name in REPLACED:
        said = pattern.sub(name, said)
    return f"exit code {done.returncode}\n{said}"


def can_be_unprivileged(build):
    try:
        return result_of(build, "unprivileged klap --version").startswith("exit code 0\n")
    except OSError:
        return False


def check(cases, results):
    """The number of cases whose result is another one than expected; each is printed."""
    wrong = 0
    for name, result in results.items():
        expected = cases.results.get(name, "")
        if result != expected:
            print(f"{cases.path}: {name}\n{cases.scripts[name]}--- expected\n{expected}--- came out\n{result}")
            wrong += 1
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="a part of the name of the cases to run")
    options = parser.parse_args()
    build = options.build.resolve()
    all_cases = [Cases(path) for path in sorted(HERE.glob("*.cases"))]
    is_skipped = lambda script: False
    if not can_be_unprivileged(build):
        is_skipped = lambda script: "unprivileged" in script
    wrong = total = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for cases in all_cases:
            chosen = {name: script for name, script in cases.scripts.items() if options.only in name}
            for name in [name for name, script in chosen.items() if is_skipped(script)]:
                print(f"skipped, as another user cannot run what is built here: {name}")
                del chosen[name]
            results = dict(zip(chosen, pool.map(lambda script: result_of(build, script), chosen.values())))
            total += len(results)
            if os.environ.get("KLAP_REBASE"):
                cases.write({**dict.fromkeys(cases.scripts, ""), **cases.results, **results})
            else:
                wrong += check(cases, results)
    print(f"{total} cases, {wrong} wrong")
    return 1 if wrong or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
