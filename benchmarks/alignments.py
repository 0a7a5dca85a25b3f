"""What a translator looked at while it wrote: ten held-out sentences, kept as numbers and drawn as one picture."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import mirada
from mirada.report.style import Theme, draw, plain_labels
from mirada.train.folder import RunFolder

COUNT, COLUMNS = 10, 5
LENGTHS = range(4, 12)  # tokens on either side, so that they can be read


def aligned(run: RunFolder) -> dict:
    """Sentences of the right length, drawn with a fixed seed from all that were translated."""
    with open(run.predictions, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    random.Random(0).shuffle(rows)
    translator = mirada.load(run.path).translator
    found: list[dict] = []
    for row in rows:
        sides = (translator.source.encode(row["source"]), translator.target.encode(row["predicted"]))
        if len(found) < COUNT and all(len(tokens) in LENGTHS for tokens in sides):
            alignment = translator.alignment(row["source"], row["predicted"])
            weights = [[round(weight, 3) for weight in line] for line in alignment.weights_NM.tolist()]
            found.append({"source": alignment.source, "target": alignment.target, "weights": weights})
    return {"sentences": found}


def draw_file(results_file: Path, images: Path) -> tuple[Path, str] | None:
    """(picture, what can be read from it), if there are results."""
    sentences = json.loads(results_file.read_text())["sentences"] if results_file.exists() else []
    if not sentences:
        return None
    num_rows = -(-len(sentences) // COLUMNS)

    def paint(figure: Figure, theme: Theme) -> None:
        panels = figure.subplots(num_rows, COLUMNS, squeeze=False)
        for number, panel in enumerate(panels.flat):
            if number >= len(sentences):
                panel.set_axis_off()
                continue
            sentence = sentences[number]
            panel.imshow(np.array(sentence["weights"]), cmap=theme.heat_map, vmin=0, vmax=1, aspect="equal")
            panel.xaxis.tick_top()
            panel.set_xticks(range(len(sentence["source"])), sentence["source"], rotation=90, fontsize=7.5)
            panel.set_yticks(range(len(sentence["target"])), sentence["target"], fontsize=7.5)
            plain_labels([*panel.get_xticklabels(), *panel.get_yticklabels()])
            panel.tick_params(length=0, labelcolor=theme.ink, pad=2)
            panel.grid(visible=False)
            panel.spines[:].set_visible(False)

    drawing = draw("alignments", reading(sentences), paint, 2.7 * COLUMNS, 2.9 * num_rows)
    images.mkdir(parents=True, exist_ok=True)
    (images / "alignments.png").write_bytes(drawing.light)
    return images / "alignments.png", drawing.alt


def reading(sentences: list[dict]) -> str:
    looks = "; ".join(
        ", ".join(
            f"{word} → {sentence['source'][int(np.argmax(weights))]}"
            for word, weights in zip(sentence["target"], sentence["weights"], strict=True)
        )
        for sentence in sentences
    )
    return f"Alignments of {len(sentences)} test sentences. Each word looks most at: {looks}."
