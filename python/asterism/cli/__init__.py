"""The command line: asterism solve | info | bench."""

from .main import main

__all__ = ["main"]
