"""The addresses of the page about the attention core; `mirada.verbs.learn` computes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from mirada.errors import MiradaError
from mirada.studio.state import Studio
from mirada.verbs import learn
from mirada.verbs.learn.attend import DIMS, MAX_TOKENS, NUM_HEADS, SEEDS
from mirada.verbs.learn.parts import MAX_EDGES, POSITIONS, RULES

Kind = Literal["full", "causal", "window", "strided", "fixed", "not self", "grid", "windows", "edges"]
Count = Annotated[int | None, Field(ge=0, le=64)]
Node = Annotated[int, Field(ge=0, lt=MAX_TOKENS)]
Dim = Annotated[int, Field(ge=DIMS[0], le=DIMS[1])]
Inputs = dict[Annotated[str, Field(max_length=40)], float | Annotated[str, Field(max_length=40)]]

assert set(RULES) == set(Kind.__args__)  # type: ignore[attr-defined]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Rule(Strict):
    """A neighbourhood and its numbers."""

    kind: Kind
    reach: Count = None
    stride: Count = None
    block: Count = None
    num_summary: Count = None
    radius: Count = None
    size: Count = None
    shift: Count = None
    edges: list[tuple[Node, Node]] | None = Field(None, max_length=MAX_EDGES)

    def given(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


class Mechanism(Strict):
    """Tokens, and the four parts of attention between them."""

    text: str | None = Field(None, max_length=4000, description="words between spaces")
    length: int | None = Field(None, ge=1, le=MAX_TOKENS, description="tokens without names, where there is no text")
    score: str = Field("scaled dot", max_length=40)
    neighbours: list[Rule] = Field([], max_length=3, description="intersected")
    position: str = Field("none", max_length=40, description=", ".join(POSITIONS))
    heads: str = Field("concatenated", max_length=40)
    num_heads: int = Field(2, ge=NUM_HEADS[0], le=NUM_HEADS[1])
    dim: Dim = 16
    seed: int = Field(0, ge=SEEDS[0], le=SEEDS[1])
    columns: int | None = Field(None, ge=1, le=MAX_TOKENS, description="of the plane, for grid and windows")


class Growing(Strict):
    """A neighbourhood, and perhaps a second one to intersect it with, as the words of an address."""

    kind: Kind = "full"
    reach: Count = None
    stride: Count = None
    block: Count = None
    num_summary: Count = None
    radius: Count = None
    size: Count = None
    shift: Count = None
    edges: str = Field("", max_length=40_000, pattern=r"^(\d{1,2}-\d{1,2}(,\d{1,2}-\d{1,2})*)?$")
    also: Kind | None = None
    also_reach: Count = None
    dim: Dim = 16
    num_tokens: int = Field(MAX_TOKENS, ge=1, le=MAX_TOKENS, description="nodes of a given graph")

    def rules(self) -> list[dict[str, Any]]:
        numbers = self.model_dump(include={"kind", *(name for rule in RULES.values() for name in rule)})
        pairs = [tuple(int(end) for end in pair.split("-")) for pair in self.edges.split(",") if pair]
        second = [] if self.also is None else [{"kind": self.also, "reach": self.also_reach}]
        return [{**numbers, "edges": pairs}, *second]


@contextmanager
def sentences() -> Iterator[None]:
    """What cannot be computed is answered with 422 and a sentence that says why."""
    try:
        yield
    except MiradaError as error:
        raise HTTPException(422, str(error)) from None


def floats(values: Tensor) -> str:
    return base64.b64encode(values.float().contiguous().numpy().astype("<f4").tobytes()).decode()


def lesson_of(what: Mechanism) -> learn.Lesson:
    if (what.text is None) == (what.length is None):
        raise HTTPException(422, "Give either a text or a length.")
    chosen = what.model_dump(exclude={"text", "length", "neighbours"})
    with sentences():
        rules = [rule.given() for rule in what.neighbours]
        return learn.attend(what.length or what.text or "", neighbours=rules, **chosen)


def routes(state: Studio) -> APIRouter:
    router = APIRouter(prefix="/learn", tags=["learn"])

    @router.post("/attend")
    def attend(what: Mechanism) -> dict[str, Any]:
        """Mask, weights and kernel of one layer on a sentence. Nothing is trained: all is drawn from the seed."""
        lesson = lesson_of(what)
        return {
            "tokens": lesson.tokens,
            "size": lesson.size,
            "num_heads": what.num_heads,
            "mask": floats(lesson.mask_NN),
            "logits": floats(lesson.logits_HNN),
            "weights": floats(lesson.weights_HNN),
            "kernel": lesson.kernel,
            "kernels": [asdict(kernel) for kernel in lesson.kernels],
            **{name: getattr(lesson, name) for name in ("num_pairs", "flops_formula", "flops_full")},
        }

    @router.post("/count")
    def count(what: Mechanism) -> dict[str, int]:
        """Operations of the products that really run in that layer, counted; the first time takes seconds."""
        return {"flops": lesson_of(what).count_flops()}

    @router.get("/cost")
    def cost(what: Annotated[Growing, Query()]) -> dict[str, Any]:
        """Pairs and operations of a neighbourhood, and of full attention, as the number of tokens grows."""
        with sentences():
            return asdict(learn.cost(what.rules(), dim=what.dim, num_tokens=what.num_tokens))

    @router.get("/demos")
    def demos() -> list[dict[str, Any]]:
        """The lectures' worked examples and errata."""
        return [{name: value for name, value in vars(demo).items() if name != "run"} for demo in learn.DEMOS.values()]

    @router.post("/demos/{name}")
    def demo(name: str, inputs: Inputs | None = None) -> dict[str, Any]:
        """The numbers of one of them; what is not given is as in the lecture."""
        if name not in learn.DEMOS:
            raise HTTPException(404, f"There is no demo of the name {name[:60]!r}.")
        with sentences():
            return asdict(learn.run_demo(name, inputs))

    return router
