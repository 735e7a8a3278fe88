"""Communicators, star forests and channels."""
