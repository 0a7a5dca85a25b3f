"""One self-contained HTML file about a run, and its figures: `build_report("runs/vit-photos")`."""

from mirada.report.build import build_report

__all__ = ["build_report"]
