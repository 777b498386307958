"""The parts of tools/gpu_check; see there."""
