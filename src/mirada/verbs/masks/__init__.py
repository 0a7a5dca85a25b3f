"""Runs on images with masks: prepared, judged, used."""
