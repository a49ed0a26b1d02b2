"""Takes one rank of a job home: a file of all that it received, and its program alone with that.

Python 3.8 or later and the standard library; torch as found.
"""
