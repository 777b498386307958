"""Running programs natively and preloaded, with time limits that hold.

A program that waits for device launches that were lost never ends by itself, so every run has a limit, and what
exceeds it is killed with everything it started.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass, field


@dataclass
class Outcome:
    command: list
    code: int = -1
    out: str = ""
    err: str = ""
    seconds: float = 0.0
    timed_out: bool = False

    def describe(self):
        """How the run ended, in a few words."""
        if self.timed_out:
            return f"still running after {self.seconds:.0f} s, killed"
        if self.code < 0:
            try:
                return f"killed by {signal.Signals(-self.code).name}"
            except ValueError:
                return f"killed by signal {-self.code}"
        return f"exit code {self.code}"


def without_ours():
    """The environment without anything of ours in it."""
    return {k: v for k, v in os.environ.items() if not k.startswith("KLAP_") and k != "LD_PRELOAD"}


@dataclass
class Installation:
    """Where the programs and the library under test are."""

    build: str
    settings: dict = field(default_factory=dict)  # environment variables of all preloaded runs

    def program(self, folder, name):
        return os.path.join(self.build, "bin", folder, name)

    @property
    def library(self):
        return os.path.join(self.build, "lib", "libklap_jit.so")

    @property
    def klap_ptx(self):
        return os.path.join(self.build, "bin", "klap-ptx")

    def native(self):
        return without_ours()

    def preloaded(self, stats=None, **settings):
        """The environment of a preloaded run that writes its statistics to the file `stats`."""
        environment = self.native()
        environment["LD_PRELOAD"] = self.library
        environment["KLAP_CACHE_DISABLE"] = "1"  # every run shows the whole path, and the user's cache stays as it is
        if stats:
            environment["KLAP_STATS"] = stats
        environment.update(self.settings | settings)
        return environment


def run(command, environment, limit):
    """Runs `command` for at most `limit` seconds."""
    begin = time.monotonic()
    try:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        return Outcome(command, 127, "", f"cannot start: {error}")
    timed_out = False
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        timed_out = True
        out, err = kill(process)
    return Outcome(command, process.returncode if process.returncode is not None else -9,
                   out.decode(errors="replace"), err.decode(errors="replace"),
                   time.monotonic() - begin, timed_out)


def kill(process):
    """Ends the process with its children; gives up on output that never comes."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        return process.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        return b"", b"(could not be killed within 15 s)"
