"""The computer at hand: its load and threads, its precision, the processes that work together on it."""
