"""pdb's commands, in one rank or many: `cast`."""
