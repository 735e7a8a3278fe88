"""Kernels that run: compiled from text and cached, or a table; a kernel on NumPy arrays."""
