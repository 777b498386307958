"""Measuring the benchmark programs (benchmarks/run), and what tools/gpu_checks needs of that too.

tools/gpu_checks imports from here, never the other way round.
"""
