"""Configuration at the edge: pydantic models, presets, files and `key.sub=value` on the command line."""

from mirada.config.load import load_config, resolve
from mirada.config.schema import Config

__all__ = ["Config", "load_config", "resolve"]
