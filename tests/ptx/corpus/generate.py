#!/usr/bin/env python3
"""Makes the corpus: hundreds of PTX modules, by every compiler that can be had, from the files in sources/.

A module is one source by one compiler for one architecture with one set of options. NVRTC makes most of them,
because it takes milliseconds; nvcc, clang and the NVRTCs of older toolkits make the rest, and the PTX of all test and
benchmark programs is added. Older toolkits come from Python packages; KLAP_CORPUS_TOOLKITS says whether they may be
downloaded (auto, the default: if the network is there; never: only what was downloaded before; require: it is an
error if one is missing). A compiler that cannot be had is skipped with a line that says so; a source that does not
compile is an error.

A source says in lines at its top what it needs:
  // by: nvcc           the compilers (default: nvrtc nvcc)
  // archs: 90 90a      the architectures (default: those of DEFAULT_ARCHS)
  // options: -rdc=true options it always needs
  // headers: cuda      headers it includes, which are slow, so it is compiled less often (cuda: the toolkit's own,
                        cccl: CUB and libcu++)
  // since: 12.5        the first toolkit that knows all of it

Usage: generate.py OUT [--full] [--klap-ptx KLAP_PTX --programs FOLDER...]
--full makes more than 550 modules. Without it about 250 are made: of each source what some of its architectures and
of the options give in turn, and what one of the older toolkits does; every fourth source is compiled by nvcc if NVRTC
does it too. Together the sources have all of them. It writes OUT/*.ptx and OUT/modules.tsv (file, kind, debug,
relocatable).
"""
import argparse
import ctypes
import dataclasses
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import zipfile

SOURCES = pathlib.Path(__file__).resolve().parent / "sources"
DEFAULT_ARCHS = ["75", "80", "90", "100", "120"]
# Package, version, and the toolkit it is of. The first has another name for its library.
OLD_TOOLKITS = [
    ("nvidia-cuda-nvrtc-cu11", "11.8.89", "11.8"),
    ("nvidia-cuda-nvrtc-cu12", "12.0.140", "12.0"),
    ("nvidia-cuda-nvrtc-cu12", "12.2.140", "12.2"),
    ("nvidia-cuda-nvrtc-cu12", "12.4.127", "12.4"),
    ("nvidia-cuda-nvrtc-cu12", "12.6.85", "12.6"),
]
DOWNLOAD_SECONDS = 60


@dataclasses.dataclass
class Source:
    path: pathlib.Path
    by: list
    archs: list
    options: list
    headers: str
    since: str

    @classmethod
    def read(cls, path):
        keys = dict(re.findall(r"^// (by|archs|options|headers|since): (.*)$", path.read_text(), re.MULTILINE))
        return cls(path, keys.get("by", "nvrtc nvcc").split(), keys.get("archs", " ".join(DEFAULT_ARCHS)).split(),
                   keys.get("options", "").split(), keys.get("headers", ""), keys.get("since", "0"))

    def arch(self, wanted):
        return wanted if wanted in self.archs else self.archs[0]


@dataclasses.dataclass
class Job:
    """One module to make: the compiler's command line without input and output."""
    kind: str  # what the report counts it under
    source: pathlib.Path
    arch: str
    options: list

    def file(self):
        words = "_".join(re.sub(r"[^\w.]+", "", o) for o in self.options if not o.startswith(("-I", "-include")))
        return f"{self.kind.replace(' ', '')}-{self.source.stem}-{self.arch}{'-' if words else ''}{words}.ptx"

    def debug(self):
        return "-G" in self.options

    def relocatable(self):
        # clang leaves functions such as operator delete to the linker.
        return "-rdc=true" in self.options or self.kind == "clang"


def toolkit():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    return pathlib.Path(nvcc).resolve().parent.parent


def version_key(version):
    return [int(n) for n in version.split(".")]


# ---- what is made ----

VARIANTS = [["-lineinfo"], ["-G"], ["-maxrregcount=32"], ["-use_fast_math"], ["-rdc=true"], ["-G", "-rdc=true"],
            ["-rdc=true", "-lineinfo"], ["-G", "-dopt=on"]]


def with_options(source, more):
    return source.options + [o for o in more if o not in source.options]


def in_turn(things, turn, count):
    """`count` of them, beginning with another one in each turn."""
    return [things[(turn + i) % len(things)] for i in range(min(count, len(things)))]


def nvrtc_jobs(sources, kit, full):
    includes = [f"-I{kit}/include", f"-I{kit}/include/cccl"]
    for turn, s in enumerate(s for s in sources if "nvrtc" in s.by):
        variants = {"": VARIANTS, "cuda": VARIANTS[:2], "cccl": VARIANTS[:1]}[s.headers]
        archs = s.archs
        if not full:
            variants = in_turn(variants, turn, 1 if s.headers else 2)
            archs = in_turn(archs, turn, 1 if s.headers else 2)
        made = [(arch, []) for arch in archs] + [(s.arch("90"), v) for v in variants]
        for arch, options in made:
            yield Job("NVRTC 13", s.path, arch, with_options(s, options) + (includes if s.headers else []))


def nvcc_jobs(sources, full):
    # nvcc takes ten times as long, so each source gets one set of options, in turn; those only nvcc can do get none.
    turns = [["-O0", "-Xcicc", "-O0"], ["--default-stream", "per-thread", "-rdc=true"], ["-lineinfo", "-rdc=true"],
             ["-G", "-g"]]
    plain = [s for s in sources if "nvcc" in s.by and s.headers != "cccl"]
    others_too = [s for s in plain if "nvrtc" in s.by]
    # Of the sources that NVRTC compiles too every fourth one, without --full.
    made = [(s, s.arch("80"), turns[i % len(turns)]) for i, s in enumerate(others_too if full else others_too[::4])]
    for i, s in enumerate(s for s in plain if s not in others_too):
        made += [(s, arch, []) for arch in (s.archs if full else in_turn(s.archs, i, 1))]
    for s, arch, options in made:
        yield Job("nvcc 13", s.path, arch, [o for o in with_options(s, options) if o != "--device-int128"])


def clang_jobs(sources, full):
    made = [(arch, ["-O2"]) for arch in ("75", "80", "86")]
    made += [("80", options) for options in (["-O0"], ["-O2", "-gline-tables-only"], ["-O1", "-g"])]
    for i, s in enumerate(s for s in sources if "clang" in s.by):
        for arch, options in made if full else in_turn(made, 2 * i, 2):
            yield Job("clang", s.path, arch, options)


def old_jobs(sources, version, full):
    # Beyond 9.0 older toolkits know other architectures than these.
    toolkits = [name for _, _, name in OLD_TOOLKITS]
    for i, s in enumerate(s for s in sources if "nvrtc" in s.by and not s.headers):
        if not full and i % len(toolkits) != toolkits.index(version):
            continue
        archs = [a for a in s.archs if a in ("75", "80", "90", "90a") and (a != "90a" or version != "11.8")]
        if version_key(s.since) > version_key(version) or not archs:
            continue
        turns = [["-lineinfo"], ["-rdc=true"], ["-G"]]
        for arch, options in ((archs[-1], []), (archs[0], turns[i % 3])):
            yield Job(f"NVRTC {version}", s.path, arch, with_options(s, options))


# ---- compilers ----

class Nvrtc:
    """One NVRTC library in this process."""
    loaded = None

    def __init__(self, library):
        # Its other half is looked for by name only, so it must be there already.
        for other in library.parent.glob("libnvrtc-builtins.so*"):
            if ".alt." not in other.name:
                ctypes.CDLL(str(other), mode=ctypes.RTLD_GLOBAL)
        self.lib = ctypes.CDLL(str(library))

    def text(self, program, what):
        size = ctypes.c_size_t()
        getattr(self.lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self.lib, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw[:-1]

    def compile(self, source, arch, options):
        program = ctypes.c_void_p()
        words = [b"-std=c++17", f"-arch=compute_{arch}".encode()] + [o.encode() for o in options]
        self.lib.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None)
        status = self.lib.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
        try:
            if status != 0:
                raise RuntimeError(self.text(program, "ProgramLog").decode(errors="replace"))
            return self.text(program, "PTX")
        finally:
            self.lib.nvrtcDestroyProgram(ctypes.byref(program))


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stdout)


def start_worker(library):
    if library:
        Nvrtc.loaded = Nvrtc(library)


def make(task):
    """In a worker: makes one module. Returns the error, or nothing."""
    job, out = task
    file = out / job.file()
    try:
        if job.kind.startswith("NVRTC"):
            file.write_bytes(Nvrtc.loaded.compile(job.source, job.arch, job.options))
        elif job.kind.startswith("nvcc"):
            run([str(toolkit() / "bin/nvcc"), "-ptx", f"-arch=compute_{job.arch}", *job.options, str(job.source),
                 "-o", str(file)])
        else:
            # The toolkit's headers are too new for most clangs: the prelude has what the sources need. A clang that
            # does not know the toolkit writes the PTX version of an old one unless it is told.
            run(["clang", "-x", "cuda", "-nocudainc", "-nocudalib", "--cuda-device-only", "-S",
                 f"--cuda-gpu-arch=sm_{job.arch}", "-std=c++17", "-Wno-unknown-cuda-version",
                 "-Xclang", "-target-feature", "-Xclang", "+ptx75", "-include", str(SOURCES / "clang_prelude.h"),
                 *job.options, str(job.source), "-o", str(file)])
        return ""
    except RuntimeError as error:
        return f"{job.file()}: {job.source.name} for {job.arch} {' '.join(job.options)}:\n{error}"


class Corpus:
    def __init__(self, out):
        self.out, self.rows, self.errors, self.left_out = out, [], [], []

    def make(self, jobs, library=None):
        jobs, start = list(jobs), time.time()
        with multiprocessing.get_context("spawn").Pool(os.cpu_count(), start_worker, (library,)) as pool:
            errors = pool.map(make, [(job, self.out) for job in jobs], chunksize=1)
        self.errors += filter(None, errors)
        self.rows += [(job.file(), job.kind, job.debug(), job.relocatable())
                      for job, error in zip(jobs, errors) if not error]
        print(f"{len(jobs):4} modules by {jobs[0].kind} in {time.time() - start:.1f} s", flush=True)

    def skip(self, jobs, why):
        jobs = list(jobs)
        print(f"SKIPPED {len(jobs)} modules by {jobs[0].kind}: {why}", flush=True)
        self.left_out += jobs


# ---- older toolkits ----

def download(folder, package, version, allowed):
    """A toolkit's NVRTC, downloading its package where that is allowed. Raises RuntimeError."""
    place = folder / version
    if not (place / "complete").exists():
        if not allowed:
            raise RuntimeError("not downloaded before, and nothing is downloaded now")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        try:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--retries", "0",
                            "--timeout", "5", "-d", str(place), f"{package}=={version}"],
                           check=True, timeout=DOWNLOAD_SECONDS, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for wheel in place.glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(place, [n for n in archive.namelist() if "/lib/libnvrtc" in n])
                wheel.unlink()
        except (subprocess.SubprocessError, OSError, zipfile.BadZipFile) as error:
            lines = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().splitlines()
            why = lines[-1] if lines else error
            raise RuntimeError(f"{package} {version} could not be downloaded ({why})") from error
        (place / "complete").touch()
    for library in sorted(place.glob("nvidia/cuda_nvrtc/lib/libnvrtc.so*")):
        return library
    raise RuntimeError(f"{package} {version} has no libnvrtc")


def make_old(corpus, sources, folder, full):
    mode = os.environ.get("KLAP_CORPUS_TOOLKITS", "auto")
    if mode not in ("auto", "never", "require"):
        sys.exit(f"KLAP_CORPUS_TOOLKITS={mode}: expected auto, never or require")
    allowed = mode != "never"
    for package, version, name in OLD_TOOLKITS:
        try:
            corpus.make(old_jobs(sources, name, full), download(folder, package, version, allowed))
        except RuntimeError as error:
            corpus.skip(old_jobs(sources, name, full), str(error))
            allowed = mode == "require"  # one wait for a network that is not there is enough
            if mode == "require":
                corpus.errors.append(str(error))


# ---- programs ----

def add_programs(corpus, klap_ptx, folders):
    """The PTX of every translation unit of built programs, as klap-ptx extracts it."""
    programs, seen = 0, set()
    for program in sorted(p for folder in folders for p in folder.iterdir() if p.is_file() and not p.suffix):
        place = corpus.out / "extracted" / program.name
        done = subprocess.run([str(klap_ptx), "extract", str(program), "-o", str(place)], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            continue  # scripts and programs without device code stand in these folders too
        programs += 1
        for unit in sorted(place.glob("*.ptx")):
            text = unit.read_bytes()
            # The device runtime is in every program, and source files without device code leave an empty unit.
            if text in seen or not re.search(rb"\.(entry|func)\b", text):
                continue
            seen.add(text)
            file = f"program-{program.name}-{unit.name}"
            (corpus.out / file).write_bytes(text)
            debug = re.search(rb"^\.target .*debug", text, re.MULTILINE) is not None
            corpus.rows.append((file, "programs", debug, True))
        shutil.rmtree(place)
    print(f"{sum(kind == 'programs' for _, kind, _, _ in corpus.rows):4} modules from {programs} programs", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--toolkits", type=pathlib.Path, help="folder that keeps downloaded toolkits")
    parser.add_argument("--full", action="store_true", help="all options and architectures for each source")
    parser.add_argument("--klap-ptx", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path, nargs="*", default=[])
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    sources = [Source.read(path) for path in sorted(SOURCES.glob("*.cu"))]
    corpus, kit = Corpus(args.out), toolkit()

    corpus.make(nvrtc_jobs(sources, kit, args.full), next(kit.glob("lib64/libnvrtc.so")))
    corpus.make(nvcc_jobs(sources, args.full))
    if shutil.which("clang"):
        corpus.make(clang_jobs(sources, args.full))
    else:
        corpus.skip(clang_jobs(sources, args.full), "clang is not installed")
    make_old(corpus, sources, args.toolkits or args.out.parent / "toolkits", args.full)
    if args.klap_ptx:
        add_programs(corpus, args.klap_ptx, [p for p in args.programs if p.is_dir()])

    (args.out / "modules.tsv").write_text("".join(f"{file}\t{kind}\t{int(debug)}\t{int(relocatable)}\n"
                                                  for file, kind, debug, relocatable in corpus.rows))
    for error in corpus.errors:
        print("ERROR " + error, file=sys.stderr)
    print(f"{len(corpus.rows)} modules made, {len(corpus.errors)} errors, {len(corpus.left_out)} left out")
    sys.exit(1 if corpus.errors else 0)


if __name__ == "__main__":
    main()
