"""Published systems, one short file each, assembled from the core and its blocks."""
