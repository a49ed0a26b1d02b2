"""The users' ways in. The console, the doctor and the language server are clients."""
