"""Finding and starting ranks.

`local` and `launcher` start them. Each place where ranks run already is one module or folder
(`framework_source`, `kubernetes`, `openpai`, `pid`, `slurm`, `ssh`); whatever it talks to, a list
of `RankRecord` comes back.
"""
