"""Linear solvers and least squares."""
