"""What a model is asked to do: the loss to train it by, the numbers to judge it by, and its answers in words."""
