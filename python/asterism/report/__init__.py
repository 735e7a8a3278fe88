"""What happened in a solve, in words, as text and as one HTML page."""

from .collect import Findings, collect
from .html import write_html
from .text import summary

__all__ = ["Findings", "collect", "summary", "write_html"]
