"""What pages show, computed from the models: no HTML here, and no change of state."""

from .chart import chart_points
from .strip import strip

__all__ = ["chart_points", "strip"]
