"""Text as data of a run: what it is read as, how it is learned, and how a model of it is judged."""
