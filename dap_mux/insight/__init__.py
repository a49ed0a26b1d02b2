"""What many ranks said, reduced to what a person can read. Pure: the engine has gathered it."""
