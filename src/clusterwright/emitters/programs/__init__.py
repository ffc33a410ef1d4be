"""The training programs: the command line, settings and files that one layout means to each framework."""
