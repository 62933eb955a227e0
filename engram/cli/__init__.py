"""The command line: the command table, one module per family of commands, and one renderer for results."""
