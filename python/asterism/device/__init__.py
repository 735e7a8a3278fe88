"""Queues that work is submitted to."""
