"""Operators, matrices, vectors and their files."""
