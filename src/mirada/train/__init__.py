"""The training loop and what it stands on: optimisers, schedules, averages, checkpoints, the run folder."""
