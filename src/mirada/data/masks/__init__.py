"""Images with masks, which say of every pixel what it shows: from files to batches."""
