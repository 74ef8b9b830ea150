"""Profiles, and the regions that people mark in them."""

from .profile import Profile, State
from .region import Region

__all__ = ["Profile", "Region", "State"]
