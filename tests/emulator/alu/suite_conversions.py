"""The conversions of the instruction suite: between integers, floats and packed formats (make_suite.py)."""

import itertools

from suite_values import BF16, F16, F32, F64, INT, add, named


def integer_conversions():
    for to, source in itertools.product([s + str(b) for b in (8, 16, 32, 64) for s in "us"], repeat=2):
        from_bits, to_bits = max(int(source[1:]), 16), max(int(to[1:]), 16)
        values = [v for v in (INT[from_bits][2], INT[from_bits][3], INT[from_bits][4], INT[from_bits][5])]
        values.append(f"{0x80:0{from_bits // 4}x}")
        add(f"cvt.{to}.{source}", to_bits, from_bits, *values[:3:2], values[4])
        # PTX has no .sat where every value fits.
        fits = int(to[1:]) > int(source[1:]) if to[0] == "s" else source[0] == "u" and int(to[1:]) >= int(source[1:])
        if not fits and to != source:
            add(f"cvt.sat.{to}.{source}", to_bits, from_bits, *values)
    for to in ("u8", "s8", "u16", "s16"):
        add(f"cvt.{to}.u32", 32, 32, "000080ff", "ffff7f80")
        add(f"cvt.{to}.u32", 64, 32, "000080ff", "ffff7f80")
    add("cvt.s32.s8", 64, 32, "00000080")


F32_TO_INT = ["0", "-0", "0.5", "1.5", "-2.5", "-0.75", "max", "-max", "inf", "-inf", "nan", "denormal", "-denormal", "2^24", "third"]
# 2^31, -2^31, just below 2^32, 2^32, just below 2^63, 2^63, 2^64, 127.5, 255.5, -128.5, 32767.5, 65535.5
LIMITS32 = ["4f000000", "cf000000", "4f7fffff", "4f800000", "5effffff", "5f000000", "5f800000", "42ff0000", "437f8000", "c3008000",
            "46fffeff", "477fff80"]
LIMITS64 = ["41dfffffffe00000", "41dfffffffc00000", "c1e0000000100000", "41efffffffe00000", "41f0000000000000", "43dfffffffffffff",
            "43e0000000000000", "43f0000000000000", "c3e0000000000001", "405fe00000000000", "406ff00000000000"]


def float_to_integer():
    for number, (sign, bits) in enumerate(itertools.product("us", (8, 16, 32, 64))):
        to, width = f"{sign}{bits}", max(bits, 16)
        for rounding in ("rni", "rzi", "rmi", "rpi"):
            add(f"cvt.{rounding}.{to}.f32", width, 32, *named(F32, F32_TO_INT[:6] + F32_TO_INT[12:]))
            add(f"cvt.{rounding}.{to}.f64", width, 64, *named(F64, ["0.5", "1.5", "-2.5", "nan", "-inf", "max", "-denormal"]))
            add(f"cvt.{rounding}.{to}.f16", width, 16, *named(F16, ["0.5", "1.5", "-2.5", "nan", "-inf", "max", "-denormal"]))
        add(f"cvt.rzi.{to}.f32", width, 32, *named(F32, F32_TO_INT[6:12]), *LIMITS32)
        add(f"cvt.rni.{to}.f64", width, 64, *LIMITS64)
        add(f"cvt.rni.sat.{to}.f32", width, 32, *LIMITS32[number % 2::2], F32["nan"], F32["-inf"])
        add(f"cvt.rpi.ftz.{to}.f32", width, 32, F32["denormal"], F32["-denormal"], F32["third"])
        if bits > 8:
            add(f"cvt.rzi.{to}.bf16", width, 16, *named(BF16, ["1.5", "-2.5", "nan", "inf", "-max"]))


def integer_to_float():
    values = {8: ["0000", "007f", "0080", "00ff"], 16: ["0000", "ffff", "7fff", "8000", "0801", "0803"],
              32: ["00000000", "ffffffff", "7fffffff", "80000000", "01000001", "01000003", "7fffff40", "00000801"],
              64: ["ffffffffffffffff", "7fffffffffffffff", "8000000000000000", "0020000000000001", "0020000000000003",
                   "7ffffffffffffdff", "0000008000000001", "000000000000ffe0", "0080000000000001"]}
    for (sign, bits), rounding in itertools.product(itertools.product("us", (8, 16, 32, 64)), ("rn", "rz", "rm", "rp")):
        source, width = f"{sign}{bits}", max(bits, 16)
        rows = values[bits]
        add(f"cvt.{rounding}.f32.{source}", 32, width, *rows)
        add(f"cvt.{rounding}.f64.{source}", 64, width, *rows[-5:])
        add(f"cvt.{rounding}.f16.{source}", 16, width, *rows)
        if rounding == "rn":
            if bits > 8:
                add(f"cvt.rn.bf16.{source}", 16, width, *rows)
            add(f"cvt.rn.sat.f32.{source}", 32, width, *rows[:2])


def float_to_float():
    kinds = ["0", "-0", "1", "inf", "-inf", "nan", "-nan", "snan", "denormal", "-denormal", "large_denormal", "tiny", "max", "third"]
    # 1 + 2^-24 and the like, halves of the narrower formats' last places, and what they overflow at.
    between = ["3f801000", "3f803000", "3f801001", "3f808000", "3f818000", "477fefff", "477ff000", "33000000", "33000001",
               "387fe000", "7f7f8000", "7f7f7fff", "00004000", "38800fff", "b3800000"]
    between64 = ["3ff0000010000000", "3ff0000030000000", "3ff0000010000001", "47efffffefffffff", "47effffff0000000",
                 "3690000000000000", "3690000000000001", "380fffffffffffff", "b6a8000000000000", "40effe0000000000"]
    for rounding in ("rn", "rz", "rm", "rp"):
        add(f"cvt.{rounding}.f32.f64", 32, 64, *named(F64, kinds), *between64)
        add(f"cvt.{rounding}.ftz.f32.f64", 32, 64, *between64[5:])
        add(f"cvt.{rounding}.f16.f32", 16, 32, *named(F32, kinds), *between)
        add(f"cvt.{rounding}.f16.f64", 16, 64, *named(F64, kinds[::3]), *between64)
        add(f"cvt.{rounding}.bf16.f32", 16, 32, *named(F32, kinds), *between)
    for rounding, relu in itertools.product(("rn", "rz"), ("", ".relu")):
        for kind in ("f16", "bf16"):
            if relu:
                add(f"cvt.{rounding}{relu}.{kind}.f32", 16, 32, *named(F32, ["-1", "-0", "nan", "-inf", "third"]))
            add(f"cvt.{rounding}{relu}.{kind}x2.f32", 32, "32 32",
                *zip([F32[k] for k in kinds], between), *zip(between, between[3:]))
    add("cvt.rna.tf32.f32", 32, 32, *named(F32, kinds), *between)
    for mode in (".rn", ".rz", ".rn.relu"):
        add(f"cvt{mode}.tf32.f32", 32, 32, *named(F32, kinds[::2] + ["-1"]), *between[::2])
    add("cvt.f64.f32", 64, 32, *named(F32, kinds))
    add("cvt.ftz.f64.f32", 64, 32, *named(F32, kinds[8:12]))
    add("cvt.f32.f16", 32, 16, *named(F16, kinds))
    add("cvt.f64.f16", 64, 16, *named(F16, kinds))
    add("cvt.f32.bf16", 32, 16, *named(BF16, kinds))
    add("cvt.sat.f32.f32", 32, 32, *named(F32, ["nan", "-1", "1.5", "0.5", "-0", "denormal"]))
    add("cvt.ftz.sat.f32.f32", 32, 32, *named(F32, ["nan", "-1", "1.5", "0.5", "-0", "denormal"]))
    add("cvt.sat.f32.f16", 32, 16, *named(F16, ["nan", "-1", "1.5", "0.5", "-0", "denormal"]))
    add("cvt.rn.sat.f16.f32", 16, 32, *named(F32, ["nan", "-1", "1.5", "third", "-0", "denormal"]))
    add("cvt.sat.f64.f64", 64, 64, *named(F64, ["nan", "-1", "1.5", "0.5", "-0", "denormal"]))
    integral = ["0.5", "1.5", "-2.5", "third", "-0", "nan", "snan", "-inf", "max", "denormal", "-denormal"]
    for rounding in ("rni", "rzi", "rmi", "rpi"):
        add(f"cvt.{rounding}.f32.f32", 32, 32, *named(F32, integral + ["-0.75"]))
        add(f"cvt.{rounding}.ftz.f32.f32", 32, 32, *named(F32, integral[-2:]))
        add(f"cvt.{rounding}.sat.f32.f32", 32, 32, *named(F32, integral[:6]))
        add(f"cvt.{rounding}.f64.f64", 64, 64, *named(F64, integral))
        add(f"cvt.{rounding}.f16.f16", 16, 16, *named(F16, integral))


def packed_conversions():
    floats = ["00000000", "80000000", "3f800000", "43e00000", "43e80000", "43e80001", "43f00000", "47600000", "47700000", "47c00000", "7f800000",
              "ffc00000", "3b000000", "3a800000", "3a800001", "37000000", "37000001", "bfa80000", "3f880000", "3f980000", "00000001"]
    for kind, relu in itertools.product(("e4m3x2", "e5m2x2"), ("", ".relu")):
        add(f"cvt.rn.satfinite{relu}.{kind}.f32", 16, "32 32", *zip(floats, floats[7:] + floats[:7]))
        add(f"cvt.rn.satfinite{relu}.{kind}.f16x2", 16, 32, "3c00bc00", "7c007bff", "7e00fc00", "5f005f40", "14001800", "80000001")
        add(f"cvt.rn{relu}.f16x2.{kind}", 32, 16, "3c7f", "ff80", "0107", "7b7c", "fd7e", "8088")
    rows = [("00000000", "ffffffff"), ("7fffffff", "80000000"), ("00000080", "ffffff7f"), ("00008000", "ffff7fff"), ("00000003", "fffffffe")]
    for kind in ("s16", "u16"):
        add(f"cvt.pack.sat.{kind}.s32", 32, "32 32", *rows)
    for kind in ("s8", "u8", "s4", "u4", "s2", "u2"):
        add(f"cvt.pack.sat.{kind}.s32.b32", 32, "32 32 32", *[(*r, "89abcdef") for r in rows])
