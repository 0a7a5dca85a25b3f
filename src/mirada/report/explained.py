"""Explanations as one interactive page, `explained_page(items, title, command)`, and as figures, `save_png`."""

from mirada.report.explained_figure import explained_figure, save_png, save_svg
from mirada.report.explained_graph import graph_figure
from mirada.report.explained_items import (
    ExplainedImage,
    ExplainedText,
    Item,
    Layer,
    Map,
    Strip,
    TokenMap,
    rows_only,
)
from mirada.report.explained_page import explained_page

__all__ = [
    "ExplainedImage",
    "ExplainedText",
    "Item",
    "Layer",
    "Map",
    "Strip",
    "TokenMap",
    "explained_figure",
    "explained_page",
    "graph_figure",
    "rows_only",
    "save_png",
    "save_svg",
]
