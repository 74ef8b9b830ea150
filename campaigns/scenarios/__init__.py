"""A small model whose operators can be swapped: what approved kernels do to the step as a whole. ``docs/scenarios.md``."""
