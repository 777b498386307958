"""The operands of the instruction suite, and the lines that are made of them (make_suite.py)."""

CASES = {}  # line without results -> its place, in order
ORDER = []

F32 = {
    "0": "00000000", "-0": "80000000", "1": "3f800000", "-1": "bf800000", "1.5": "3fc00000", "-2.5": "c0200000",
    "inf": "7f800000", "-inf": "ff800000", "nan": "7fc00000", "-nan": "ffc12345", "snan": "7f800001",
    "denormal": "00000001", "-denormal": "80000001", "large_denormal": "007fffff", "-large_denormal": "807fffff",
    "tiny": "00800000", "-tiny": "80800000", "max": "7f7fffff", "-max": "ff7fffff", "next1": "3f800001",
    "below1": "3f7fffff", "third": "3eaaaaab", "2^24": "4b800000", "0.5": "3f000000", "2^126": "7e800000",
    "2^127": "7f000000", "over2^126": "7e800001", "pi": "40490fdb", "ulp/2": "33800000", "over_ulp/2": "33800001",
    "2^-126*1.99": "00ffffff", "100": "42c80000", "-0.75": "bf400000", "0.25": "3e800000",
}
F64 = {
    "0": "0000000000000000", "-0": "8000000000000000", "1": "3ff0000000000000", "-1": "bff0000000000000",
    "1.5": "3ff8000000000000", "inf": "7ff0000000000000", "-inf": "fff0000000000000", "nan": "7ff8000000000000",
    "-nan": "fff8000000012345", "snan": "7ff0000000000001", "denormal": "0000000000000001",
    "-denormal": "8000000000000001", "large_denormal": "000fffffffffffff", "tiny": "0010000000000000",
    "max": "7fefffffffffffff", "-max": "ffefffffffffffff", "next1": "3ff0000000000001", "third": "3fd5555555555555",
    "ulp/2": "3ca0000000000000", "over_ulp/2": "3ca0000000000001", "0.5": "3fe0000000000000", "-2.5": "c004000000000000",
    "2^1000": "7e70000000000000",
}
F16 = {
    "0": "0000", "-0": "8000", "1": "3c00", "-1": "bc00", "1.5": "3e00", "inf": "7c00", "-inf": "fc00", "nan": "7e00",
    "-nan": "fe12", "snan": "7c01", "denormal": "0001", "-denormal": "8001", "large_denormal": "03ff", "tiny": "0400",
    "max": "7bff", "-max": "fbff", "next1": "3c01", "ulp/2": "1000", "over_ulp/2": "1001", "third": "3555", "0.5": "3800",
    "-2.5": "c100",
}
BF16 = {
    "0": "0000", "-0": "8000", "1": "3f80", "-1": "bf80", "1.5": "3fc0", "inf": "7f80", "-inf": "ff80", "nan": "7fc0",
    "-nan": "ffd2", "snan": "7f81", "denormal": "0001", "-denormal": "8001", "large_denormal": "007f", "tiny": "0080",
    "max": "7f7f", "-max": "ff7f", "next1": "3f81", "ulp/2": "3b80", "over_ulp/2": "3b81", "third": "3eab", "0.5": "3f00",
    "-2.5": "c020",
}
INT = {
    16: ["0000", "0001", "ffff", "7fff", "8000", "1234", "fff9", "0003"],
    32: ["00000000", "00000001", "ffffffff", "7fffffff", "80000000", "12345678", "deadbeef", "00000007"],
    64: ["0000000000000000", "0000000000000001", "ffffffffffffffff", "7fffffffffffffff", "8000000000000000",
         "123456789abcdef0", "00000000ffffffff", "fffffffffffffff9"],
}
# Pairs in which something happens: overflow, exact halves, NaN against numbers, infinities against each other.
FLOAT_PAIRS = [
    ("1", "third"), ("1", "ulp/2"), ("1", "over_ulp/2"), ("next1", "ulp/2"), ("-1", "ulp/2"), ("max", "max"),
    ("-max", "-max"), ("max", "-max"), ("inf", "-inf"), ("inf", "inf"), ("inf", "0"), ("nan", "1"), ("1", "-nan"),
    ("snan", "inf"), ("-nan", "nan"), ("0", "-0"), ("-0", "-0"), ("denormal", "denormal"), ("denormal", "-denormal"),
    ("large_denormal", "denormal"), ("tiny", "-denormal"), ("denormal", "0.5"), ("tiny", "0.5"), ("1.5", "-2.5"),
    ("max", "denormal"), ("0", "0"), ("third", "third"), ("-1", "inf"),
]
FLOAT_TRIPLES = [
    ("1", "third", "-1"), ("next1", "next1", "-1"), ("max", "1.5", "-max"), ("inf", "0", "1"), ("inf", "1", "-inf"),
    ("nan", "1", "1"), ("1", "-nan", "nan"), ("1", "1", "snan"), ("denormal", "0.5", "0"), ("denormal", "0.5", "denormal"),
    ("tiny", "0.5", "-denormal"), ("-1", "0", "0"), ("-1", "0", "-0"), ("third", "third", "ulp/2"),
    ("1.5", "-2.5", "third"), ("max", "max", "-inf"), ("next1", "ulp/2", "1"), ("0.5", "ulp/2", "next1"),
]


def add(instruction, destinations, sources, *rows):
    """One case a row of values."""
    for row in rows:
        values = " ".join(row) if isinstance(row, (tuple, list)) else row
        line = f"{instruction} | {destinations} | {sources} | {values}"
        if line not in CASES:
            CASES[line] = len(ORDER)
            ORDER.append(line)


def named(table, rows):
    return [tuple(table[name] for name in ((row,) if isinstance(row, str) else row)) for row in rows]


def int_pairs(bits):
    v = INT[bits]
    return [(v[0], v[0]), (v[1], v[2]), (v[2], v[1]), (v[2], v[2]), (v[3], v[1]), (v[4], v[2]), (v[3], v[3]), (v[4], v[4]),
            (v[5], v[6]), (v[6], v[5]), (v[6], v[7]), (v[4], v[1])]


def int_triples(bits):
    return [(a, b, INT[bits][(i * 3 + 1) % 8]) for i, (a, b) in enumerate(int_pairs(bits))]
