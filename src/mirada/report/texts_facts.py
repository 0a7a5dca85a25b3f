"""What is said of texts as data: how they become tokens, how many, how long."""

from __future__ import annotations

from mirada.report.contents import Contents

KINDS = {"pairs": "pairs of sentences", "plain": "running text", "labelled": "labelled texts"}
AIMS = {
    "translate": "to translate",
    "generate": "to go on writing",
    "fill": "to fill in hidden words",
    "single-label": "to tell classes apart",
    "embed": "to give every word a vector",
}
TOKENS = {
    "character": "single characters",
    "word": "whole words",
    "bpe": "pieces of words (BPE)",
    "wordpiece": "pieces of words (WordPiece)",
    "unigram": "pieces of words (unigram)",
    "byte": "pieces of words, down to bytes (byte-level BPE)",
}
LENGTHS = {
    "translate": "at most {} tokens a side in training; longer pairs are left out there",
    "generate": "{} tokens are seen at once",
    "fill": "at most {} tokens; longer texts are cut",
    "single-label": "at most {} tokens; longer texts are cut",
}
# Settings that say nothing of a run on text.
NOT_OF_TEXT = {
    "data": ("path_column", "image_root", "label_pattern", "image_size", "fit", "on_broken", "workers", "memory_gb"),
    "train": ("balanced",),
}
SHORT_OF_TEXT = ("tokeniser", "num_tokens", "max_length", "senses")  # what the short command says of the tokens


def text_kind(run: Contents) -> str:
    kind = str(run.data.get("kind", "text"))
    return f"{KINDS.get(kind, kind)}, {AIMS.get(run.task, run.task)}"


def text_rows(run: Contents) -> list[tuple[str, str]]:
    data = run.data
    rows = [("Languages", " to ".join(data["sides"]))] if run.inputs == "pairs" else []
    rows.append(("Tokens", f"{TOKENS.get(data['tokeniser'], data['tokeniser'])}, learned from the training side"))
    rows.append(("Vocabulary", _vocabulary(run)))
    if run.task in LENGTHS:
        rows.append(("Length", LENGTHS[run.task].format(data["max_length"])))
    return rows


def _vocabulary(run: Contents) -> str:
    own = f"{run.data['num_tokens']:,} tokens"
    if run.inputs != "pairs":
        return own
    if run.data.get("shared", True):
        return f"{own}, shared by both languages"
    other = ((run.model or {}).get("arguments") or {}).get("num_target_tokens")
    return f"{own} of the source, {f'{other:,}' if other else 'others'} of the translation"
