"""What `mirada explain` makes of inputs of each kind."""
