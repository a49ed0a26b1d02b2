"""A session under random life: who comes and goes, what they do, and what breaks meanwhile."""

from tests.support.soak.soak import Soak

__all__ = ["Soak"]
