"""Tests of an installation, which works from any folder, and of the Debian package, in an empty system.

The GPU is the emulated one.
"""

import argparse
import gzip
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TOOLS = ("klap", "klap-ptx")
MICRO = ["--children", "40", "--parents", "64", "--reps", "5"]
SUMMARY = "klap: 280 children run together\n"
given = argparse.Namespace()  # the paths of the build


def run(words, environment=None, folder=None, **more):
    """The result of a command that ends well, with standard output and standard error together."""
    words = [str(word) for word in words]
    done = subprocess.run(words, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=200, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def on_emulator(folder, **more):
    """The environment of a program on the emulated GPU. It has nothing of the caller's but what is named here."""
    kept = {name: os.environ[name] for name in ("PATH", "KLAP_NVRTC") if name in os.environ}
    return {**kept, "HOME": str(folder), "LD_LIBRARY_PATH": f"{given.build}/lib/emulator:{given.toolkit}",
            "KLAP_CACHE_DIR": f"{folder}/cache", "KLAP_LINKER": "driver", "KLAP_EMULATOR_QUIET": "1", **more}


def subcommands(tool, *commands):
    """The words before all subcommands of a program, however deep, each with its help text."""
    text = run([tool, *commands, "--help"])
    yield commands, text
    for name in re.findall(r"^  ([a-z]+)", text.partition("\nSubcommands:\n")[2].partition("\n\n")[0], re.MULTILINE):
        yield from subcommands(tool, *commands, name)


def options(text):
    """The long options of a help text, which stand at the beginning of lines."""
    words = re.findall(r"^  (-\S+)", text, re.MULTILINE)
    return [name for word in words for name in word.partition("=")[0].split(",") if name.startswith("--")]


class InFolder(unittest.TestCase):
    """Tests in a folder that is made once and removed at the end."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name).resolve()


class Installed(InFolder):
    """Tests of an installation that was moved after it was made."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        run(["cmake", "--install", given.build, "--prefix", cls.folder / "first"])
        cls.prefix = (cls.folder / "first").rename(cls.folder / "moved")
        cls.lib = cls.prefix / given.libdir


class Installation(Installed):
    def files(self):
        return [path for path in self.prefix.rglob("*") if path.is_file()]

    def test_everything_is_there_and_nothing_else(self):
        lib = given.libdir
        expected = {f"{lib}/{name}" for name in (
            "libklap.so", "libklap.so.0", "libklap_jit.so", "pkgconfig/klap.pc", "cmake/klap/klap-config.cmake",
            "cmake/klap/klap-config-version.cmake", "cmake/klap/klap-targets.cmake")}
        expected |= {f"include/klap/{name}" for name in ("annotate.cuh", "klap.h", "version.h")}
        for tool in TOOLS:
            expected |= {f"bin/{tool}", f"share/man/man1/{tool}.1.gz", f"share/bash-completion/completions/{tool}",
                         f"share/fish/vendor_completions.d/{tool}.fish"}
        expected |= {"share/doc/klap-jit/copyright", "share/zsh/site-functions/_klap"}
        found = {str(path.relative_to(self.prefix)) for path in self.files()}
        by_build_type = {name for name in found if re.search(r"klap-targets-[a-z]+\.cmake$", name)}
        self.assertEqual(1, len(by_build_type))
        self.assertEqual(expected, found - by_build_type)
        self.assertEqual("libklap.so.0", os.readlink(self.lib / "libklap.so"))

    def test_no_file_names_the_build_or_the_prefix(self):
        for path in self.files():
            text = path.read_bytes()
            for text in (text, gzip.decompress(text)) if path.suffix == ".gz" else (text,):
                for folder in (ROOT, given.build, self.folder):
                    self.assertNotIn(str(folder).encode(), text, path)

    def test_programs_and_libraries_look_in_no_folder_of_their_own(self):
        for path in [*(self.prefix / "bin").iterdir(), *self.lib.glob("*.so")]:
            self.assertNotRegex(run(["readelf", "-d", path]), "RPATH|RUNPATH")

    def test_klap_finds_its_library(self):
        environment = on_emulator(self.folder)
        klap = self.prefix / "bin" / "klap"
        said = run([klap, "doctor"], environment, "/")
        self.assertIn(f"{self.lib}/libklap_jit.so", said)
        self.assertIn("is fine", said)
        self.assertIn(SUMMARY, run([klap, "run", given.build / "bin/emulated/micro", *MICRO], environment, "/"))
        link = self.folder / "klap"
        link.symlink_to(klap)
        self.assertIn(str(self.lib), run([link, "run", "--quiet", "sh", "-c", "echo $LD_PRELOAD"], environment))

    def check_example(self, program, **environment):
        """The example rewrites, loads and launches. The driver of the tests takes machine code, but executes none."""
        words = [program, given.build / "bin/cli/launches.fatbin", given.build / "lib/fake/libcuda.so.1"]
        said = run(words, on_emulator(self.folder, FAKE_CUDA_LOG=str(self.folder / "calls"), **environment))
        self.assertRegex(said, "launched: .*parent.*, .*child")

    def test_find_package(self):
        build = self.folder / "embedding"
        run(["cmake", "-S", HERE / "embedding", "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
             f"-DEXAMPLE={ROOT}/tests/api/embed.c", f"-DCUDA_HEADERS={given.headers}"])
        self.assertIn(f"klap_DIR:PATH={self.lib}/cmake/klap\n", (build / "CMakeCache.txt").read_text(encoding="utf-8"))
        self.assertEqual(f"{self.lib}/libklap_jit.so", (build / "preload").read_text(encoding="utf-8"))
        run(["cmake", "--build", build])
        self.check_example(build / "embed")

    def test_pkg_config(self):
        # PKG_CONFIG_LIBDIR is the only place to look in.
        environment = {"PATH": os.environ["PATH"], "PKG_CONFIG_LIBDIR": str(self.lib / "pkgconfig")}
        flags = run(["pkg-config", "--cflags", "--libs", "klap"], environment).split()
        run(["cc", ROOT / "tests/api/embed.c", "-isystem", given.headers, *flags, "-o", self.folder / "embed"])
        both = f"{self.lib}:{on_emulator(self.folder)['LD_LIBRARY_PATH']}"
        self.check_example(self.folder / "embed", LD_LIBRARY_PATH=both)
        version = run([self.prefix / "bin" / "klap", "--version"]).split()[-1]
        self.assertEqual(version, run(["pkg-config", "--modversion", "klap"], environment).strip())
        preload = run(["pkg-config", "--variable=preload", "klap"], environment).strip()
        self.assertTrue((self.lib / "libklap_jit.so").samefile(preload))

    def test_manual_pages_have_every_subcommand_and_option(self):
        for tool in TOOLS:
            packed = (self.prefix / "share/man/man1" / f"{tool}.1.gz").read_bytes()
            page = gzip.decompress(packed).decode().replace("\\-", "-")
            for commands, text in subcommands(self.prefix / "bin" / tool):
                section = page.partition(f".SS {' '.join(commands)}\n")[2] if commands else page
                for option in options(text):
                    if option != "--help":
                        self.assertIn(option, section.partition("\n.SS ")[0], commands)
            if shutil.which("groff"):
                said = run(["groff", "-man", "-Tutf8", "-ww"], input=page)
                self.assertNotIn("warning", said)


class Completion(Installed):
    """What all completions do, each in its own shell, which `complete` asks."""

    def environment(self):
        return {"PATH": f"{self.prefix / 'bin'}:{os.environ['PATH']}", "HOME": str(self.folder)}

    def need(self, shell):
        if not shutil.which(shell):
            self.skipTest(f"there is no {shell}")

    def check_every_subcommand_and_option(self, complete):
        for tool in TOOLS:
            for commands, text in subcommands(self.prefix / "bin" / tool):
                offered = {word for word in complete(tool, *commands, "--") if word.startswith("--")}
                self.assertEqual(set(options(text)), offered)
                for name in commands[-1:]:
                    self.assertIn(name, complete(tool, *commands[:-1], name[0]))


class CompletionInBash(Completion):
    """As bash asks for it: with the words of the line, where an equals sign is a word of its own."""

    SCRIPT = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ' \
             '_klap "$1" "${COMP_WORDS[COMP_CWORD]}"; printf "%s\\n" "${COMPREPLY[@]}"'

    def complete(self, *words):
        script = self.prefix / "share/bash-completion/completions" / words[0]
        return run(["bash", "-c", self.SCRIPT, "bash", script, *words], self.environment()).split()

    def test_every_subcommand_and_option(self):
        self.check_every_subcommand_and_option(self.complete)

    def test_words_with_values(self):
        self.assertEqual(["granularity="], self.complete("klap", "run", "--set", "gra"))
        self.assertEqual(["--stats"], self.complete("klap", "run", "--set", "granularity", "=", "grid", "--st"))
        self.assertEqual(["--stats"], self.complete("klap", "run", "--set", "=", "granularity", "=", "grid", "--st"))
        self.assertEqual([], self.complete("klap", "run", "--set", "granularity", "=", "gr"))
        self.assertEqual([], self.complete("klap", "run", "--report", "ru"))

    def test_the_words_of_the_program_are_its_own(self):
        self.assertEqual([], self.complete("klap", "run", "./app", "--st"))
        self.assertEqual([], self.complete("klap", "run", "--quiet", "./app", "run", "--st"))
        self.assertEqual([], self.complete("klap-ptx", "tune", "--", "./app", "--"))


class CompletionInZsh(Completion):
    # zsh itself drops what does not begin like the word that is completed.
    SCRIPT = 'compadd() { local array=$@[-1]; print -l -- "${(@P)array}" }; _files() { print FILES }; ' \
             '_default() { print REST }; script=$1; shift; words=("$@"); CURRENT=$#; set --; source $script'

    def setUp(self):
        self.need("zsh")
        self.functions = self.prefix / "share/zsh/site-functions"

    def complete(self, *words):
        return run(["zsh", "-fc", self.SCRIPT, "zsh", self.functions / "_klap", *words], self.environment()).split()

    def test_every_subcommand_and_option(self):
        self.check_every_subcommand_and_option(self.complete)

    def test_words_with_values(self):
        self.assertIn("granularity=", self.complete("klap", "run", "--set", "gra"))
        self.assertIn("--stats", self.complete("klap", "run", "--set", "granularity=grid", "--st"))
        self.assertEqual(["FILES"], self.complete("klap", "run", "--report", "ru"))

    def test_the_words_of_the_program_are_its_own(self):
        self.assertEqual(["REST"], self.complete("klap", "run", "./app", "--st"))
        self.assertEqual(["REST"], self.complete("klap-ptx", "tune", "--", "./app", "--"))

    def test_the_key_that_completes(self):
        """zsh finds the file by itself, and the tabulator completes a line that somebody writes."""
        process, terminal = pty.fork()
        if process == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**self.environment(), "TERM": "dumb"})
        said = b""

        def wait_for(text):
            nonlocal said
            while text not in said:
                self.assertTrue(select.select([terminal], [], [], 30)[0], said)
                said += os.read(terminal, 4096)

        load = f"fpath=({self.functions} $fpath); autoload -Uz compinit; compinit -D -u; echo LOADED$((1 + 1))\n"
        os.write(terminal, load.encode())
        wait_for(b"LOADED2")
        os.write(terminal, b"klap run --set gra\t")
        wait_for(b"klap run --set granularity=")
        os.close(terminal)
        os.waitpid(process, 0)


class CompletionInFish(Completion):
    def setUp(self):
        self.need("fish")

    def complete(self, *words):
        script = self.prefix / "share/fish/vendor_completions.d" / f"{words[0]}.fish"
        line = "source $argv[1]; complete -C (string join -- ' ' $argv[2..])"
        said = run(["fish", "--no-config", "-c", line, script, *words], self.environment(), self.folder)
        return [row.partition("\t")[0] for row in said.splitlines()]

    def test_every_subcommand_and_option(self):
        self.check_every_subcommand_and_option(self.complete)

    def test_words_with_values(self):
        self.assertEqual(["granularity="], self.complete("klap", "run", "--set", "gra"))
        self.assertEqual(["--stats"], self.complete("klap", "run", "--set", "granularity=grid", "--st"))
        self.assertEqual([], self.complete("klap", "run", "--report", "ru"))

    def test_the_words_of_the_program_are_its_own(self):
        self.assertEqual([], self.complete("klap", "run", "./app", "--st"))
        self.assertEqual([], self.complete("klap-ptx", "tune", "--", "./app", "--"))


class DebianPackage(InFolder):
    """The package in an empty system, which has only what the package depends on and the emulated GPU."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which("dpkg-deb"):
            raise unittest.SkipTest("there is no dpkg-deb")
        run(["cpack", "-G", "DEB", "-B", cls.folder], folder=given.build)
        cls.package = next(cls.folder.glob("*.deb"))

    def setUp(self):
        """Makes a system without any package."""
        self.system = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        (self.system / "tmp").mkdir()
        for name in ("info", "updates", "triggers"):
            (self.system / "var/lib/dpkg" / name).mkdir(parents=True)
        (self.system / "var/lib/dpkg/status").touch()

    def field(self, name):
        return run(["dpkg-deb", "-f", self.package, name]).strip()

    def dpkg(self, *words):
        """dpkg for the empty system, where it runs the package's scripts outside, as there is no shell in it."""
        return run(["dpkg", f"--root={self.system}", f"--log={self.folder}/log", "--force-depends", "--force-not-root",
                    "--force-script-chrootless", *words])

    def need_root(self):
        if os.geteuid() != 0:
            self.skipTest("only root can install a package")

    def copy(self, path, target=None):
        """Copies a file, into the system's folder `target` or to the same place, and the libraries that it needs."""
        place = self.system / target / path.name if target else self.system / path.relative_to("/")
        if place.exists():
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
        ldd = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(?:=>|^\s)\s*(/\S+)", ldd, re.MULTILINE):
            self.copy(pathlib.Path(library))

    def fill_system(self):
        """Puts into the system what the package depends on and recommends, and a program with the emulated GPU."""
        for tool in TOOLS:
            self.copy(given.build / "bin" / tool, "opt")  # for its libraries
            (self.system / "opt" / tool).unlink()
        for library in pathlib.Path(given.toolkit).glob("libnvrtc*.so.*"):
            if ".alt." not in library.name and not library.is_symlink():
                self.copy(library, "usr/local/cuda/lib64")
        self.copy(pathlib.Path(given.toolkit) / "libcudadevrt.a", "usr/local/cuda/lib64")
        self.copy(given.build / "lib/emulator/libcuda.so.1", "opt")
        self.copy(given.build / "bin/emulated/micro", "opt")

    def in_system(self, *words):
        """Runs a program in the system as its root folder, with /proc, which nothing outside sees.

        The loader does not know the folder of NVRTC, as on many machines with a CUDA toolkit.
        """
        environment = {"PATH": "/usr/bin", "HOME": "/tmp", "LD_LIBRARY_PATH": "/opt", "KLAP_LINKER": "driver",
                       "KLAP_EMULATOR_QUIET": "1"}
        script = 'mount --rbind /proc "$0/proc" && exec env -i "$@"'
        values = [f"{name}={value}" for name, value in environment.items()]
        return run(["unshare", "--mount", "sh", "-c", script, self.system, *values, shutil.which("chroot"), self.system,
                    *words])

    def paths(self):
        """All paths of the system but those of dpkg and of the programs that ran."""
        found = (path.relative_to(self.system) for path in self.system.rglob("*"))
        return sorted(str(path) for path in found if path.parts[0] not in ("var", "tmp", "proc"))

    def test_what_it_says_about_itself(self):
        version = run([given.build / "bin" / "klap", "--version"]).split()[-1]
        self.assertEqual(["klap-jit", version, "contrib/devel"],
                         [self.field(name) for name in ("Package", "Version", "Section")])
        self.assertRegex(self.field("Description"), r"^makes CUDA programs fast(.|\n)*dynamic parallelism")
        for library in ("libc6", "libstdc++6", "libgcc-s1"):
            self.assertIn(library, self.field("Depends"))
        self.assertIn("nvrtc", self.field("Recommends"))
        self.assertEqual(run(["dpkg", "--print-architecture"]), self.field("Architecture") + "\n")
        self.assertNotRegex(run(["dpkg-deb", "-c", self.package]), re.escape(str(given.build)))

    def test_leaves_nothing_behind(self):
        self.need_root()
        self.dpkg("--install", self.package)
        self.assertIn("install ok installed", self.dpkg("--status", "klap-jit"))
        self.assertEqual("", self.dpkg("--verify", "klap-jit"))
        for name in ("bin/klap", "share/bash-completion/completions/klap", "share/zsh/vendor-completions/_klap",
                     "share/fish/vendor_completions.d/klap-ptx.fish", "share/man/man1/klap.1.gz"):
            self.assertTrue((self.system / "usr" / name).exists(), name)
        self.dpkg("--purge", "klap-jit")
        self.assertEqual([], self.paths())

    def test_in_an_empty_system(self):
        self.need_root()
        (self.system / "proc").mkdir()
        probe = ["unshare", "--mount", "mount", "--rbind", "/proc", str(self.system / "proc")]
        if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
            self.skipTest("this machine does not let root mount anything")
        self.fill_system()
        before = self.paths()
        self.dpkg("--install", self.package)
        said = self.in_system("klap", "doctor")
        self.assertIn(f"/usr/{given.libdir}/libklap_jit.so", said)
        self.assertIn("is fine", said)
        self.assertIn(SUMMARY, self.in_system("klap", "run", "/opt/micro", *MICRO))
        self.assertIn("store(int*, long long, int)", self.in_system("klap", "explain", "/opt/micro"))
        self.dpkg("--purge", "klap-jit")
        self.assertEqual(before, self.paths())

    def test_unpacked_anywhere(self):
        run(["dpkg-deb", "-x", self.package, self.system])
        klap = self.system / "usr/bin/klap"
        environment = on_emulator(self.system)
        self.assertIn(str(self.system / "usr" / given.libdir), run([klap, "doctor"], environment))
        self.assertIn(SUMMARY, run([klap, "run", given.build / "bin/emulated/micro", *MICRO], environment))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--libdir", default="lib", help="folder of libraries below the prefix")
    parser.add_argument("--toolkit", default="/usr/local/cuda/lib64", help="folder of NVRTC")
    parser.add_argument("--headers", default="/usr/local/cuda/include", help="folder of cuda.h")
    _, rest = parser.parse_known_args(namespace=given)
    given.build = given.build.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
