"""The anatomy of a model as a section of a report, and as a page of its own."""

from __future__ import annotations

import datetime
from pathlib import Path

import jinja2
import numpy as np
from torch import Tensor, nn

from mirada.explain.anatomy import Anatomy, Heads
from mirada.explain.anatomy import anatomy as anatomy_of
from mirada.explain.looks import Tokens
from mirada.report.anatomy_heads import (
    distance_drawing,
    divergence_drawing,
    entropy_drawing,
    landmark_drawing,
    within_layers,
)
from mirada.report.anatomy_weights import alignment_drawing, filter_drawing, position_drawing, similarity_drawing
from mirada.report.style import Drawing
from mirada.report.wording import p_value

HERE = Path(__file__).parent


def anatomy_drawings(anatomy: Anatomy) -> dict[str, Drawing]:
    """Figures by what they show; what is not defined has none."""
    found = {
        "distance": distance_drawing(anatomy),
        "entropy": entropy_drawing(anatomy),
        "landmarks": landmark_drawing(anatomy),
        "divergence": divergence_drawing(anatomy),
        "similarity": similarity_drawing(anatomy),
        "alignment": alignment_drawing(anatomy.alignment),
        "against": alignment_drawing(anatomy.against, "other"),
        "filters": filter_drawing(anatomy.filters) if anatomy.filters else None,
        "positions": position_drawing(anatomy.positions) if anatomy.positions else None,
    }
    return {name: drawing for name, drawing in found.items() if drawing is not None}


def anatomy_section(anatomy: Anatomy, against: str | None = None) -> dict:
    """What anatomy.html.j2 shows, as `anatomy`; `against` is what the other model is called."""
    return {
        "drawings": anatomy_drawings(anatomy),
        "rows": layer_rows(anatomy),
        "unit": anatomy.unit,
        "num_inputs": f"{anatomy.num_inputs:,}",
        "inputs": "text" if anatomy.unit == "tokens" else "image",
        "is_renormalised": anatomy.rows == "renormalised",
        "has_extra": any(layer.keys.num_extra for layer in anatomy.heads),
        "missing": {name: reason[:1].upper() + reason[1:] for name, reason in anatomy.missing.items()},
        "num_aligned": f"{anatomy.alignment.num_inputs:,}" if anatomy.alignment else "",
        "filters": filter_sentence(anatomy),
        "positions": position_sentence(anatomy),
        "against": against,
    }


def heads_section(model: nn.Module, inputs: Tensor) -> dict:
    """How far and how widely heads look, for the report of a run: part of `anatomy_section`."""
    found = anatomy_of(model.eval(), inputs)
    return {
        "drawing": distance_drawing(found) or entropy_drawing(found),
        "rows": layer_rows(found),
        "unit": found.unit,
        "num_inputs": found.num_inputs,
    }


def anatomy_page(section: dict, title: str, source: str) -> str:
    """One HTML file that needs nothing else, of what `anatomy_section` gives."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("anatomy_page.html.j2").render(
        title=title,
        source=source,
        date=datetime.datetime.now().astimezone().strftime("%Y-%m-%d"),
        anatomy=section,
    )


def layer_sentences(anatomy: Anatomy) -> list[str]:
    """A line for every layer."""
    return [
        f"layer {row['label']}: distance {row['distance']} {anatomy.unit}, uniform {row['uniform_distance']}; "
        f"entropy {row['entropy']} nats, uniform {row['uniform_entropy']}"
        for row in layer_rows(anatomy)
    ]


def layer_rows(anatomy: Anatomy) -> list[dict]:
    return [
        {
            "label": layer.label,
            "name": layer.name,
            "num_heads": layer.num_heads,
            "tokens": tokens_text(layer, anatomy.unit),
            "distance": _summary(layer.distance_H),
            "uniform_distance": _number(layer.uniform_distance),
            "entropy": _summary(layer.entropy_H),
            "uniform_entropy": _number(layer.uniform_entropy),
            "divergence": _number(apart),
        }
        for layer, apart in zip(anatomy.heads, within_layers(anatomy), strict=True)
    ]


def tokens_text(layer: Heads, unit: str) -> str:
    """'7 × 7 + 1', '7 × 7 → 4 × 4'; texts differ in length."""
    if unit == "tokens":
        return {"self": "text", "target": "target", "cross": "target → source"}[layer.kind]
    own, seen = _tokens(layer.queries), _tokens(layer.keys)
    return own if own == seen else f"{own} → {seen}"


def _tokens(tokens: Tokens) -> str:
    size = " × ".join(map(str, tokens.size))
    return f"{size} + {tokens.num_extra}" if tokens.num_extra else size


def _summary(values_H: np.ndarray) -> str:
    """'12.3 (8.1–15.0)': the mean of the heads, the least and the most."""
    known = values_H[np.isfinite(values_H)]
    if len(known) == 0:
        return "–"
    mean = _number(float(known.mean()))
    return mean if len(known) == 1 else f"{mean} ({_number(float(known.min()))}–{_number(float(known.max()))})"


def _number(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def filter_sentence(anatomy: Anatomy) -> str:
    filters = anatomy.filters
    if filters is None:
        return ""
    height, width = filters.filters_DChw.shape[2:]
    shares = filters.variance_K
    half = 1 + int(np.searchsorted(shares.cumsum(), 0.5))
    order = "come first" if filters.p_low_first < 0.05 else "do not come first beyond chance"
    return (
        f"{len(filters.filters_DChw)} filters of {height} × {width} pixels ({filters.name}). "
        f"{half} of {len(shares)} principal components explain half of their variance. Low frequencies {order} "
        f"(spectral centroids, permutation test: {p_value(filters.p_low_first)})."
    )


def position_sentence(anatomy: Anatomy) -> str:
    positions = anatomy.positions
    if positions is None:
        return ""
    verdict = "are more alike than others" if positions.p < 0.05 else "are not more alike than others beyond chance"
    return (
        f"{positions.related[:1].upper()}{positions.related[1:]} {verdict}: mean cosine "
        f"{_signed(positions.mean_related)} against {_signed(positions.mean_others)} "
        f"(permutation test: {p_value(positions.p)})."
    )


def _signed(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")
