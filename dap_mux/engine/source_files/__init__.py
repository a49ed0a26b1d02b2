"""Source files of ranks and clients: path mappings, texts, and whether the two agree."""
