"""This folder is put into PYTHONPATH: its `sitecustomize` runs in every Python that starts."""
