"""Programs of other people's libraries, each way in processes of its own: natively and preloaded, with lazy and eager loading.

The programs are in tests/gpu/clients. Each says itself whether its results are right; those that launch kernels from
kernels also say how long a launch takes. A package that is missing on this machine is a row that says so.
"""

import concurrent.futures
import os
import re
import tempfile

from harness import process, statistics_file, table

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "gpu", "clients")
LOADING = ("LAZY", "EAGER")
NOT_RUN = 77  # tests/gpu/clients/common.py
LIMIT = 240  # seconds: PyTorch starts slowly, and compiles

NOTHING = "launches nothing"
TAKEN = "taken"
MACHINE_CODE = "machine code alone"
# What is shown, the program with the way, and what the library does with it.
CLIENTS = [
    ("CuPy, `RawKernel` with `-dc`", "cupy_modules kernel", TAKEN),
    ("CuPy, `RawModule` with `-dc`", "cupy_modules module", TAKEN),
    ("CuPy, `RawModule` of nvcc", "cupy_modules nvcc", MACHINE_CODE),
    ("CuPy, arrays", "cupy_modules arrays", NOTHING),
    ("cuda.core, PTX", "cuda_core ptx", TAKEN),
    ("cuda.core, link-time optimisation", "cuda_core lto", TAKEN),
    ("Numba with CUDA source, link-time optimisation", "numba_kernels launching", TAKEN),
    ("Numba with CUDA source, PTX", "numba_kernels launching-ptx", TAKEN),
    ("Numba, kernels", "numba_kernels kernels", NOTHING),
    ("PyTorch, an extension that launches", "torch_programs extension", TAKEN),
    ("PyTorch, eager", "torch_programs eager", NOTHING),
    ("PyTorch, graphs", "torch_programs graphs", NOTHING),
    ("PyTorch, compiled", "torch_programs compiled", NOTHING),
    ("PyTorch, profiled", "torch_programs profiled", NOTHING),
    ("JAX", "jax_program compiled", NOTHING),
    ("Triton", "triton_program kernels", NOTHING),
]
PROGRAMS = sorted({command.split()[0] for _, command, _ in CLIENTS})


def environment_of(where, folder, preloaded, loading):
    """A process's environment; what the libraries themselves keep for later is in the run's own folder."""
    environment = where.preloaded(os.path.join(folder, "stats.%p.json"), KLAP_GUARD="off") if preloaded else where.native()
    kept = {name: os.path.join(folder, name.lower())
            for name in ("CUPY_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "NUMBA_CACHE_DIR")}
    return environment | kept | {"CUDA_MODULE_LOADING": loading, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def children_of(folder):
    """How many children ran aggregated, in all processes that wrote statistics."""
    files = [name for name in os.listdir(folder) if name.startswith("stats.")]
    return sum(statistics_file.read(os.path.join(folder, name)).get("children_aggregated") or 0 for name in files)


def milliseconds(text):
    found = re.search(r"^MILLISECONDS ([\d.]+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else None


def run(where, command, how, loading, preloaded, folder=None):
    """One process: what is wrong with it, how long a launch takes and how many children were aggregated."""
    if folder is None:
        with tempfile.TemporaryDirectory() as own:
            return run(where, command, how, loading, preloaded, own)
    name, *arguments = command.split()
    script = os.path.join(FOLDER, f"{name}.py")
    outcome = process.run(["python3", script, *arguments], environment_of(where, folder, preloaded, loading), LIMIT)
    record = {"loading": loading, "preloaded": preloaded, "seconds": round(outcome.seconds, 3),
              "milliseconds": milliseconds(outcome.out), "wrong": "", "said": klap_lines(outcome.err)}
    if outcome.code == NOT_RUN:
        return record | {"not_run": outcome.out.strip().splitlines()[-1]}
    if outcome.code != 0 or not re.search(r"^PASS ", outcome.out, re.MULTILINE):
        record["wrong"] = f"{outcome.describe()}: {' | '.join(last_words(outcome))}"
    if preloaded:
        record["children_aggregated"] = children_of(folder)
        record["wrong"] = record["wrong"] or unexpected(how, record)
    return record


def last_words(outcome):
    """What the program said was wrong, or else the end of its error."""
    said = [line for line in outcome.out.splitlines() if line.startswith(("wrong:", "FAIL"))]
    return said or outcome.err.strip().splitlines()[-3:]


def klap_lines(text):
    """What the library said on standard error."""
    return [line for line in text.splitlines() if line.startswith("klap: ")][:10]


def unexpected(how, record):
    if how == TAKEN and not record["children_aggregated"]:
        return "nothing was aggregated"
    if how != TAKEN and record["children_aggregated"]:
        return "children where none should be"
    if how == MACHINE_CODE and not record["said"]:
        return "the library says nothing about code that it cannot rewrite"
    return ""


def check_all(where, selected, jobs, say):
    """All clients in all columns, `jobs` processes at a time; those whose times are compared run alone."""
    columns = [(loading, preloaded) for loading in LOADING for preloaded in (False, True)]
    chosen = [client for client in CLIENTS if not selected or client[1].split()[0] in selected]
    records = {command: {} for _, command, _ in chosen}

    def one(client, column):
        _, command, how = client
        records[command][column] = run(where, command, how, *column)

    def all_of(clients, jobs):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda pair: one(*pair), [(client, column) for client in clients for column in columns]))

    def beside_native(runs):
        """A package that only the preloaded process lacks is not missing: the library is in its way."""
        for native, preloaded in zip(runs[::2], runs[1::2]):
            if "not_run" in preloaded and "not_run" not in native:
                preloaded["wrong"] = f"natively it runs; {preloaded.pop('not_run')}"
        return runs

    all_of([client for client in chosen if client[2] == TAKEN], 1)
    all_of([client for client in chosen if client[2] != TAKEN], jobs)
    found = []
    for title, command, how in chosen:
        runs = beside_native([records[command][column] for column in columns])
        wrong = [each["wrong"] for each in runs if each["wrong"]]
        say(f"{command}: {'; '.join(wrong) if wrong else runs[0].get('not_run', 'right')}")
        found.append({"client": title, "program": command, "library": how, "runs": runs, "wrong": wrong})
    return found


def cell(record):
    if "not_run" in record:
        return record["not_run"]
    if record["wrong"]:
        return record["wrong"]
    parts = ["right"]
    if record["milliseconds"] is not None:
        parts.append(f"{record['milliseconds']:.3f} ms")
    if record.get("children_aggregated"):
        parts.append(f"{record['children_aggregated']:,} children")
    return ", ".join(parts)


def rows(records):
    heads = [f"{'preloaded' if preloaded else 'native'}, {loading.lower()}" for loading in LOADING
             for preloaded in (False, True)]
    return [["client", "program", "the library", *heads],
            *[[record["client"], f"`{record['program']}`", record["library"], *map(cell, record["runs"])]
              for record in records]]


def short_rows(records):
    """The table for a terminal."""
    return [[str(cell)[:40] for cell in row] for row in rows(records)]


def page(header, records):
    """The table as a page."""
    return "\n".join([
        "# Programs of other libraries", "",
        "This page is generated by `tools/gpu_check --only clients --out FOLDER` from the programs in `gpu/clients`. Each cell is",
        "a process of its own: whether all of its results are right, how long a launch with its wait takes where that is told,",
        "and how many children ran aggregated. The columns are lazy and eager loading of modules (`CUDA_MODULE_LOADING`).", "",
        table.markdown(rows(records)), "",
        f"{header['device']}, driver {header['driver']}, CUDA {header['toolkit']}, {header['date'][:10]}, commit "
        f"{header['commit']}", ""])
