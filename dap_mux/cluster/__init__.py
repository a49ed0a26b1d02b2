"""Finding and starting ranks.

Each kind of source is one module, and whatever it talks to, it returns a list of `RankRecord`.
"""
