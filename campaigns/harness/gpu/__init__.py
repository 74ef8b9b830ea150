"""Judging on an NVIDIA GPU: the same order of tests, with inputs drawn on the device and CUDA graphs timed.

Nothing here imports torch: the evaluator runs no code that a user can write, and holds no CUDA context.
"""
