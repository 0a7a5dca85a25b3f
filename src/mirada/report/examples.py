"""Held-out images with their answers: the most confident mistakes, and some drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mirada.errors import MiradaError
from mirada.report.contents import Contents
from mirada.report.held_out import PIXEL_ART, Reader, displayable, picture_uri
from mirada.report.paired import columns, label_set
from mirada.report.style import Drawing, Theme, draw_photographs
from mirada.report.wording import percent, shortened

NUM_MISTAKES = 8
NUM_EXAMPLES = 16
MAX_TARGETS = 4  # told below an image
SEED = 0
MONTAGE_WIDTH, CAPTION_HEIGHT = 7.2, 0.35  # inches

Row = dict[str, str]


@dataclass(frozen=True)
class Tile:
    """An image and what was said about it. `is_right` is None where answers are numbers."""

    picture: np.ndarray
    name: str
    lines: tuple[tuple[str, str], ...]  # (what, which)
    is_right: bool | None

    @property
    def uri(self) -> str:
        return picture_uri(self.picture)

    @property
    def is_pixel_art(self) -> bool:
        return max(self.picture.shape[:2]) <= PIXEL_ART

    @property
    def short_name(self) -> str:
        return Path(self.name).name

    @property
    def alt(self) -> str:
        return f"{self.short_name}: " + ", ".join(f"{what} {which}".strip() for what, which in self.lines)


def shuffled_rows(run: Contents) -> list[Row]:
    """All predictions, in the same order for the same run, whoever asks."""
    return [run.predictions[number] for number in np.random.default_rng(SEED).permutation(len(run.predictions))]


def random_rows(run: Contents) -> list[Row]:
    return shuffled_rows(run)[:NUM_EXAMPLES]


def worst_rows(run: Contents) -> list[Row]:
    """Wrong and sure of it, the surest first."""
    rows = run.predictions
    if run.task == "single-label":
        wrong = [row for row in rows if row["predicted"] != row["target"]]
        return sorted(wrong, key=lambda row: -float(row["confidence"]))[:NUM_MISTAKES]
    if run.task == "multi-label":
        wrong = [row for row in rows if label_set(row["predicted"]) != label_set(row["target"])]
        return sorted(wrong, key=lambda row: -_worst_label(row, run)[1])[:NUM_MISTAKES]
    if not rows:
        return []
    names = run.data["target_names"]
    error = np.abs(columns(rows, "predicted", names) - columns(rows, "target", names))
    spread = np.maximum(np.array(run.data.get("target_std", [1.0] * len(names))), 1e-12)
    order = np.argsort(-(error / spread).max(1), kind="stable")[:NUM_MISTAKES]
    return [rows[number] for number in order]


def tiles(run: Contents, rows: list[Row], reader: Reader) -> list[Tile]:
    """Rows whose image can no longer be read are left out; if that is all of them, the reason is raised."""
    found, reasons = [], []
    for row in rows:
        try:
            found.append(Tile(displayable(reader.read(row)), row["name"], *_said(row, run)))
        except MiradaError as error:
            reasons.append(str(error))
    if reasons and not found:
        raise MiradaError(reasons[0])
    return found


def montage(name: str, shown: list[Tile], num_columns: int = 4) -> Drawing:
    """The tiles as one figure, for slides."""
    num_rows = -(-len(shown) // num_columns)

    def paint(figure: Figure, theme: Theme) -> None:
        for axes in figure.subplots(num_rows, num_columns, squeeze=False).flat:
            axes.set_axis_off()
        for axes, tile in zip(figure.axes, shown, strict=False):
            axes.imshow(tile.picture, interpolation="nearest" if tile.is_pixel_art else "antialiased")
            mark = {True: "✓ ", False: "✗ ", None: ""}[tile.is_right]
            text = mark + "\n".join(shortened(f"{what} {which}", 28) for what, which in tile.lines[:2])
            axes.set_title(text, fontsize=8, fontweight="normal", loc="center", pad=3).set_parse_math(False)

    height = num_rows * (MONTAGE_WIDTH / num_columns + CAPTION_HEIGHT)
    return draw_photographs(name, f"{len(shown)} held-out images", paint, MONTAGE_WIDTH, height)


def _said(row: Row, run: Contents) -> tuple[tuple[tuple[str, str], ...], bool | None]:
    return _SAID[run.task](row, run)


def _said_class(row: Row, run: Contents) -> tuple[tuple[tuple[str, str], ...], bool | None]:
    is_right = row["predicted"] == row["target"]
    sure = ("", f"{percent(float(row['confidence']))} sure")
    if is_right:
        return (("predicted", row["predicted"]), sure), True
    return (("predicted", row["predicted"]), ("true", row["target"]), sure), False


def _said_labels(row: Row, run: Contents) -> tuple[tuple[tuple[str, str], ...], bool | None]:
    target, predicted = label_set(row["target"]), label_set(row["predicted"])
    name, _ = _worst_label(row, run)
    lines = [
        (what, ", ".join(sorted(names)))
        for what, names in (
            ("found", target & predicted),
            ("missed", target - predicted),
            ("extra", predicted - target),
        )
        if names
    ]
    if target != predicted:
        lines.append(("furthest off", f"{name} ({percent(float(row[f'p_{name}']))})"))
    return tuple(lines) or (("found", "nothing, as it should"),), target == predicted


def _said_numbers(row: Row, run: Contents) -> tuple[tuple[tuple[str, str], ...], bool | None]:
    said = {
        name: tuple(f"{float(row[f'{word}_{name}']):.4g}".replace("-", "−") for word in ("predicted", "target"))
        for name in run.data["target_names"][:MAX_TARGETS]
    }
    if len(said) == 1:
        ((predicted, target),) = said.values()
        return (("predicted", predicted), ("true", target)), None
    return tuple((name, f"{predicted} (true {target})") for name, (predicted, target) in said.items()), None


def _worst_label(row: Row, run: Contents) -> tuple[str, float]:
    """The label whose probability is furthest from the truth, and by how much."""
    target = label_set(row["target"])
    errors = {name: abs((name in target) - float(row[f"p_{name}"])) for name in run.data["class_names"]}
    return max(errors.items(), key=lambda item: item[1])


_SAID: dict[str, Callable[[Row, Contents], tuple[tuple[tuple[str, str], ...], bool | None]]] = {
    "single-label": _said_class,
    "multi-label": _said_labels,
    "regression": _said_numbers,
}
