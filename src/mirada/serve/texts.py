"""Questions about texts: JSON with a list of them."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field, create_model

from mirada.explain.methods import METHODS
from mirada.serve import answers as say
from mirada.serve.refusals import Refused
from mirada.serve.served import (
    PNG,
    REFUSED_QUESTIONS,
    OneOf,
    Served,
    asked_of_model,
    png_of,
    require_one,
    taking,
    with_png,
)
from mirada.tasks.filling import BLANK
from mirada.tasks.writing import Draw
from mirada.verbs.explain import explain
from mirada.verbs.text.lines import Texts
from mirada.verbs.text.trained import TrainedText

MEDIA_TYPE = "application/json"
BEAMS = 16


class Asked(BaseModel):
    """What every question about texts has."""

    model_config = ConfigDict(extra="forbid")
    texts: list[str]


def routes(served: Served) -> APIRouter:
    router = APIRouter()
    assert isinstance(served.trained, TrainedText)
    add = {
        "single-label": _add_classes,
        "translate": _add_translate,
        "fill": _add_fill,
        "generate": _add_generate,
        "embed": _add_neighbours,
    }[served.trained.does]
    add(router, served, served.trained)
    _add_explain(router, served, served.trained)
    return router


def _add_classes(router: APIRouter, served: Served, trained: TrainedText) -> None:
    Question = _question("TextsToClassify", served)

    def answers(texts: list[str]) -> list[dict]:
        return trained.predict(Texts(texts))

    @router.post("/predict", response_model=say.Answers[say.Classes], responses=REFUSED_QUESTIONS)
    @taking(Question)
    async def predict(question: Any) -> Any:
        """The class of every text; the texts of several requests go through the model together."""
        await _require_short(served, question.texts)
        found = await served.turns.together(answers, question.texts)
        return {"answers": [say.classes_of(answer) for answer in found]}


def _add_translate(router: APIRouter, served: Served, trained: TrainedText) -> None:
    Question = _question(
        "TextsToTranslate", served, beam=(int, Field(4, ge=1, le=BEAMS, description="of the search; 1 is greedy"))
    )

    @router.post("/predict", response_model=say.Answers[say.Translated], responses=REFUSED_QUESTIONS)
    @taking(Question)
    async def predict(question: Any) -> Any:
        """The best translation of every text."""
        await _require_short(served, question.texts)
        best = await served.turns.alone(lambda: trained.translator.translate(question.texts, beam=question.beam))
        return {"answers": [asdict(found[0]) for found in best]}


def _add_fill(router: APIRouter, served: Served, trained: TrainedText) -> None:
    Question = _question("TextsToFill", served, blank=True)

    @router.post("/predict", response_model=say.Answers[say.Filled], responses=REFUSED_QUESTIONS)
    @taking(Question)
    async def predict(question: Any) -> Any:
        """The likeliest words for every blank ([MASK], <mask> or ___) of every text."""
        await _require_short(served, question.texts)
        return {"answers": await served.turns.alone(lambda: trained.predict(Texts(question.texts)))}


def _add_generate(router: APIRouter, served: Served, trained: TrainedText) -> None:
    limits = served.limits
    Question = _question(
        "TextsToContinue",
        served,
        max_tokens=(int, Field(min(100, limits.tokens), ge=1, le=limits.tokens)),
        temperature=(float, Field(1.0, ge=0, le=100, allow_inf_nan=False, description="0 takes the likeliest")),
        top_k=(int | None, Field(None, ge=1, le=10**6)),
        top_p=(float | None, Field(None, gt=0, le=1, allow_inf_nan=False)),
        seed=(int, Field(0, ge=0, lt=2**31)),
    )

    @router.post("/predict", response_model=say.Answers[say.Continued], responses=REFUSED_QUESTIONS)
    @taking(Question)
    async def predict(question: Any) -> Any:
        """How every text may go on; the same seed writes the same."""
        await _require_short(served, question.texts)
        draw = Draw(question.temperature, question.top_k, question.top_p, question.seed)
        check = served.deadline()

        def continued(text: str) -> str:
            pieces = []
            for piece in trained.writer.stream(text, max_tokens=question.max_tokens, draw=draw):
                check()
                pieces.append(piece)
            return "".join(pieces)

        found = await served.turns.alone(lambda: [continued(text) for text in question.texts])
        return {"answers": [{"text": text} for text in found]}


def _add_neighbours(router: APIRouter, served: Served, trained: TrainedText) -> None:
    Question = _question("Words", served, k=(int, Field(10, ge=1, le=100)))

    def near(word: str, k: int) -> dict:
        try:
            found = trained.neighbours(word, k)
        except Exception as error:
            raise Refused(404, str(error)) from error
        return {"neighbours": [{"word": other, "cosine": cosine} for other, cosine in found]}

    @router.post("/predict", response_model=say.Answers[say.Neighbours], responses=REFUSED_QUESTIONS)
    @taking(Question)
    async def predict(question: Any) -> Any:
        """The words whose vectors point most the same way."""
        return {"answers": await served.turns.alone(lambda: [near(word, question.k) for word in question.texts])}


def _add_explain(router: APIRouter, served: Served, trained: TrainedText) -> None:
    Question = _question("TextsToExplain", served, most=served.limits.explained, blank=trained.does == "fill")
    names = [str(name) for name in trained.data.get("class_names", ())]
    chosen = OneOf(names) if names else Field(max_length=200)

    @router.post("/explain", response_model=say.Explained[say.ExplainedText], responses=with_png(REFUSED_QUESTIONS))
    @taking(Question)
    async def explain_texts(
        question: Any,
        method: Annotated[
            list[Annotated[str, OneOf(list(METHODS))]] | None,
            Query(description="by default three of them", min_length=1),
        ] = None,
        target: Annotated[str, chosen] | None = None,
        format: Annotated[Literal["json", "png"], Query(description="png: the picture of one text")] = "json",
    ) -> Any:
        """What the answers about texts rest on: a number for every token, by every method."""
        if format == "png":
            require_one(len(question.texts))
        await _require_short(served, question.texts)
        check = served.deadline()

        def explained() -> Any:
            found = explain(trained, Texts(question.texts), method=method, target=target, progress=check)
            if found.failures:
                raise Refused(409, found.failures[0])
            return found

        if format == "png":
            drawn = await served.turns.alone(lambda: asked_of_model(lambda: png_of(explained()[0])))
            return Response(drawn, media_type=PNG)
        found = await served.turns.alone(lambda: asked_of_model(explained))
        return {"explanations": found.numbers(), "notes": found.notes}


def _question(name: str, served: Served, *, most: int | None = None, blank: bool = False, **options: Any) -> Any:
    """A body of texts within the limits, and of the options of its kind."""
    limits = served.limits
    pattern = BLANK.pattern if blank else None
    text = Annotated[str, Field(min_length=1, max_length=limits.characters, pattern=pattern)]
    texts = (list[text], Field(min_length=1, max_length=most or limits.texts))
    return create_model(name, __base__=Asked, texts=texts, **options)


async def _require_short(served: Served, texts: list[str]) -> None:
    trained, most = served.trained, served.limits.tokens
    assert isinstance(trained, TrainedText)
    encode: Callable[[list[str]], list[list[int]]] = trained.tokeniser.encode_many
    for number, tokens in enumerate(await served.beside(encode, texts)):
        if len(tokens) > most:
            raise Refused(413, f"texts[{number}] has {len(tokens):,} tokens, over the limit of {most:,}; shorten it.")
