"""The verbs of Mirada as Python functions: what the command line and the studio call."""
