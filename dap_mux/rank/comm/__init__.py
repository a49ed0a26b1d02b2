"""Watches what a rank sends to others and receives: a kernel in front of torch's own.

Python 3.8 or later and the standard library; torch as found.
"""
