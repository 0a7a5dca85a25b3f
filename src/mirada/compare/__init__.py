"""Several systems on the same data with the same budget: who is better, and is it clear?"""
