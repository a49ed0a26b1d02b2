"""A value of one rank or of many: asked, folded, compared, kept."""
