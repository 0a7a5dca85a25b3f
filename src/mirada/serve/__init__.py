"""The REST server of a run: `mirada serve`."""
