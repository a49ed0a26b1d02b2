"""A folder of one file, which is no package for anybody: Python puts it first on its path."""
