"""The debug console of an editor: `evaluate`, its completions and the text of its answers."""
