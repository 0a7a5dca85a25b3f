"""What a trained attention model looks at, by several methods, and how far each picture can be trusted."""
