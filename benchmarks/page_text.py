"""Sections of the page on text: translation, language, length, senses and decoding, each if it has results."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import alignments, length_figure, senses, translation_table
from benchmarks.jobs import read_lines
from benchmarks.language import ITERATIONS, PUBLISHED
from benchmarks.senses_corpus import WORD
from mirada.compare.outcome import markdown
from mirada.report.texts_fill import sense_sentence

Picture = tuple[Path, str] | None
LANGUAGE_TITLES = {
    "nanogpt": "Tiny Shakespeare, nanoGPT's recipe",
    "preset": "Tiny Shakespeare, preset, equal tokens",
    "shakespeare": "Tiny Shakespeare, preset",
    "quijote": "Don Quijote, preset",
}


def text_sections(results: Path, images: Path) -> str:
    """All that there is; pictures are drawn into `images`."""
    sections = (
        translation_text(read_lines(results / "translation.jsonl"))
        + _image(alignments.draw_file(results / "alignments.json", images)),
        language_text(read_lines(results / "language.jsonl")),
        length_text(read_lines(results / "length.jsonl"), length_figure.draw_file(results / "length.jsonl", images)),
        senses_text(_read(results / "senses.json"), senses.draw_file(results / "senses.json", images)),
        decoding_text(_read(results / "decoding.json")),
    )
    return "\n".join(filter(None, sections))


def translation_text(jobs: list[dict]) -> str:
    jobs = latest(jobs)
    if not jobs:
        return ""
    first = jobs[0]
    return (
        "## Translation, equal training time\n\n`python benchmarks/translation.py`: English to Spanish with the preset "
        f"translation, {first['minutes']:g} minutes each on two cores. Judged on {first['n']:,} held-out sentences, "
        f"each against all its translations; {first['search']}; in brackets the 95 % interval over sentences drawn "
        f"anew, for every seed. The source itself as its translation has BLEU {first['majority']:.1f}. Signatures: "
        f"`{first['bleu_signature']}`, `{first['chrf_signature']}`.\n\n"
        f"{markdown(translation_table.rows_of(jobs))}\n{translation_table.ordering(jobs)}\n\n"
    )


def language_text(jobs: list[dict]) -> str:
    jobs = latest(jobs)
    if not jobs:
        return ""
    rows = [
        {
            "text and recipe": LANGUAGE_TITLES[job["contender"]],
            "settings": job["recipe"],
            "minutes": "–" if job["minutes"] is None else f"{job['minutes']:g}",
            "seed": str(job["seed"]),
            "tokens seen": f"{job['tokens_seen']:,}",
            "loss on the last 10 %": f"{job['last_tenth']:.3f} ({_span(job, 'last_tenth')})",
            "on its second half": f"{job['loss']:.3f}",
            "perplexity": f"{job['perplexity']:.2f}",
            "bits per character": f"{job['bits_per_character']:.3f}",
        }
        for job in sorted(jobs, key=lambda job: (list(LANGUAGE_TITLES).index(job["contender"]), job["seed"]))
    ]
    text = (
        "## Language by characters\n\n`python benchmarks/language.py`: a GPT learns from the first 90 % of a text. The "
        "first half of the rest chooses the weights, so the second half is also told alone, and perplexity and bits "
        f"are its. nanoGPT publishes {PUBLISHED} on the last 10 % of Tiny Shakespeare for its CPU recipe, after "
        f"{ITERATIONS * 12 * 64:,} tokens.\n\n{markdown(rows)}"
    )
    for name in ("shakespeare", "quijote"):
        own = [job for job in jobs if job["contender"] == name]
        if own:
            lines = "\n".join(f"    {line}" for line in own[0]["sample"].strip().splitlines())
            text += f"\n{LANGUAGE_TITLES[name]}, {own[0]['minutes']:g} minutes, at temperature 0.8:\n\n{lines}\n"
    return text


def length_text(jobs: list[dict], picture: Picture) -> str:
    if not jobs:
        return ""
    seeds = len({job["seed"] for job in jobs})
    return (
        "## Attention and length\n\n`python benchmarks/length.py`: reversing rows of 2 to 30 random letters, "
        f"{jobs[0]['steps']:,} steps each on the same rows, {seeds} seed{'s' if seeds > 1 else ''}. "
        f"{length_figure.finding(jobs)}\n\n{_image(picture)}"
    )


def senses_text(kept: dict, picture: Picture) -> str:
    if not kept:
        return ""
    return (
        f"## Senses of a word\n\n`python benchmarks/senses.py`: `{kept['system']}` fills hidden words of "
        f"{kept['lines']:,} made-up Spanish sentences for {kept['steps']:,} steps. “{WORD}” is a shoal, a bench or "
        f"a bank there; guessing is right in {100 * kept['chance']:.0f} %. {sense_sentence(WORD, kept['senses'])}\n\n"
        f"{_image(picture)}"
    )


def decoding_text(kept: dict) -> str:
    if not kept:
        return ""
    sizes, rows = kept["sizes"], []
    for label, row in kept["rows"].items():
        for name, (median, low, high) in row["tokens_per_second"].items():
            cells = {"": label, "by": name, "tokens per second": f"{median:.1f} ({low:.1f}–{high:.1f})"}
            cells |= {"ours against it": _ratio(row["faster_than"].get(name))}
            rows.append(cells | {"ours in int8 against it": _ratio(row["int8_faster_than"].get(name))})
    return (
        "## Decoding\n\n`python benchmarks/decoding.py`: random weights, the same on all sides, each library "
        f"in a process of its own, in turns, {kept['threads']} threads of {kept['machine']['processor']}, torch "
        f"{kept['machine']['torch']}, wall time, {sizes['rounds']} rounds; medians and quartiles. Writing: "
        f"a GPT of the size of GPT-2 small goes on from {sizes['prompt']} tokens with {sizes['written']} "
        f"more. Translating: {sizes['sentences']} sentences of {sizes['source']} tokens by {_marians(sizes)}. Without "
        "a cache, ours takes the scores after the last token only, and transformers as it does.\n\n" + markdown(rows)
    )


def _marians(sizes: dict) -> str:
    return " and ".join(
        f"a Transformer {name} of dim {shape['dim']}, {shape['depth']} layers and {shape['tokens']:,} tokens"
        for name, shape in sizes["marian"].items()
    )


def latest(jobs: list[dict]) -> list[dict]:
    """Of a contender whose recipe changed, only the runs of the latest one; of these, of the longest training."""
    recipe = {job["contender"]: job["settings"] for job in jobs}
    current = [job for job in jobs if job["settings"] == recipe[job["contender"]]]
    longest = {
        job["contender"]: max(_minutes(j) for j in current if j["contender"] == job["contender"]) for job in current
    }
    return [job for job in current if _minutes(job) == longest[job["contender"]]]


def _minutes(job: dict) -> float:
    return job["minutes"] or 0.0


def _span(job: dict, name: str) -> str:
    return f"{job[name + '_low']:.3f}–{job[name + '_high']:.3f}"


def _ratio(ratio: list[float] | None) -> str:
    if ratio is None:
        return ""
    median, low, high = ratio
    return f"{median:.2f}× ({low:.2f}–{high:.2f})" if low > 1 or high < 1 else f"tie ({low:.2f}–{high:.2f})"


def _image(picture: Picture) -> str:
    return "" if picture is None else f"![{picture[1]}](images/{picture[0].name})\n"


def _read(path: Path) -> dict:
    return json.loads(path.read_text()) if path.exists() else {}
