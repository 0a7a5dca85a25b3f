"""Mirada: train, compare, explain and serve attention models on your own data."""

__version__ = "0.1.0.dev0"
