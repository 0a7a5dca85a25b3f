"""The addresses of runs: the list, one run, its report, its held-out images, and what a new one can be."""

from __future__ import annotations

import io
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, get_args

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse, Response
from PIL import Image

from mirada import __version__
from mirada.config.load import preset_summary, presets
from mirada.config.schema import Config
from mirada.data.samples import SAMPLES
from mirada.errors import MiradaError
from mirada.report.held_out import displayable
from mirada.serve.refusals import Refused
from mirada.studio.answers import (
    BaselineScore,
    Choices,
    HeldOut,
    HeldOutItems,
    Kind,
    PageName,
    Preset,
    Progress,
    RunDetail,
    Runs,
    RunSummary,
    Score,
    SystemCard,
)
from mirada.studio.state import Studio, is_inside
from mirada.train.folder import RunFolder
from mirada.verbs.held_out import held_out, held_out_pixels, num_held_out
from mirada.verbs.runs import RunFacts, facts_of, is_run, last_lines, metrics_of
from mirada.verbs.systems import all_cards

# Its own style and script run; it reaches no network, and our addresses not even with the reader's rights.
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
)
NUM_LINES = 200
MAX_CONFIG = 2**20
LARGEST = 384  # px of a held-out picture
PAGES: dict[str, PageName] = {
    "image": "look",
    "masks": "look",
    "pixels": "look",
    "text": "read",
    "pairs": "read",
    "plots": "map",
}


def routes(state: Studio) -> APIRouter:
    router = APIRouter(tags=["runs"])

    @router.get("/runs")
    def runs() -> Runs:
        """All runs of the folder, the latest first."""
        found = sorted((facts_of(run) for run in _runs_below(state.folder)), key=lambda facts: facts.changed)
        summaries = [RunSummary(**_summary(state, facts)) for facts in reversed(found)]
        return Runs(folder=str(state.folder), version=__version__, runs=summaries)

    @router.get("/runs/{name}")
    def run(name: str) -> RunDetail:
        """One run, with its settings, its curves, and how far it is."""
        return detail_of(state, state.run(name))

    @router.get("/runs/{name}/report", response_class=FileResponse)
    def report(name: str) -> FileResponse:
        """The report, as a page that can do nothing but show itself."""
        path = state.run(name).report
        if not path.is_file() or not is_inside(path, state.folder):
            raise Refused(404, f"{name[:80]} has no report yet.")
        headers = {"Content-Security-Policy": REPORT_POLICY, "Cache-Control": "no-cache"}
        return FileResponse(path, media_type="text/html; charset=utf-8", headers=headers)

    @router.get("/runs/{name}/held-out")
    def held_out_items(
        name: str, start: Annotated[int, Query(ge=0, le=10**9)] = 0, count: Annotated[int, Query(ge=1, le=200)] = 24
    ) -> HeldOutItems:
        """Some of the held-out images, with what is true and what was answered."""
        total, items = held_out(state.run(name), start, count)
        return HeldOutItems(total=total, items=[HeldOut(**asdict(item)) for item in items])

    @router.get("/runs/{name}/held-out/{index}/picture", response_class=Response)
    def held_out_picture(name: str, index: int) -> Response:
        """One of them as PNG."""
        try:
            _, pixels = held_out_pixels(state.run(name), index)
        except MiradaError as error:
            raise error if isinstance(error, Refused) else Refused(404, str(error)) from error
        image = Image.fromarray(displayable(pixels))
        image.thumbnail((LARGEST, LARGEST))
        stream = io.BytesIO()
        image.save(stream, "PNG")
        return Response(stream.getvalue(), media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})

    @router.get("/choices")
    def choices() -> Choices:
        """What can be trained, and every setting."""
        return Choices(
            of_config=Config.model_json_schema(),
            systems=[
                SystemCard(name=card.name, sizes=list(card.sizes), summary=card.summary, kinds=[card.inputs])
                for card in all_cards()
            ],
            presets=[Preset(name=name, summary=preset_summary(name)) for name in presets()],
            samples=list(SAMPLES),
        )

    return router


def detail_of(state: Studio, run: RunFolder) -> RunDetail:
    facts = facts_of(run)
    summary = _summary(state, facts)
    progress = facts.progress
    return RunDetail(
        **summary,
        config_yaml=_text_of(run.config),
        metrics=metrics_of(run),
        baseline_metrics=metrics_of(run.baseline),
        progress=None if progress is None else Progress(**progress),
        log=last_lines(run.log, NUM_LINES),
        failure=facts.failure if summary["status"] == "failed" else None,
        classes=facts.classes,
        image_size=facts.image_size,
        num_held_out=num_held_out(run, facts.inputs),
    )


def _summary(state: Studio, facts: RunFacts) -> dict:
    is_ours = state.trainings.has(facts.folder)
    score, baseline = facts.score, facts.baseline
    kind = facts.inputs if facts.inputs in get_args(Kind) else "image"
    return {
        "name": facts.folder.path.name,
        "status": "training" if is_ours else facts.status,  # also before it has said anything
        "system": facts.system,
        "size": facts.size,
        "task": facts.task,
        "kind": kind,
        "source": facts.source,
        "score": None if score is None else Score(**asdict(score)),
        "baseline": None if baseline is None else BaselineScore(system=baseline[0], **asdict(baseline[1])),
        "num_parameters": facts.num_parameters,
        "seconds": facts.seconds,
        "changed": facts.changed.isoformat(),
        "has_report": facts.folder.report.is_file(),
        "pages": [PAGES[kind]] if kind in PAGES and facts.has_model and facts.task != "embed" else [],
        "is_ours": is_ours,
    }


def _runs_below(folder: Path) -> list[RunFolder]:
    try:
        found = [RunFolder(path) for path in folder.iterdir()]
    except OSError:  # it is made when the first training starts
        return []
    return [run for run in found if run.path.name.isprintable() and is_run(run) and is_inside(run.path, folder)]


def _text_of(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_CONFIG)
    except OSError:
        return ""
