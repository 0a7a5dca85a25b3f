"""Tokenisers of Hugging Face, from local files and for them.

tokenizer.json               any that the `tokenizers` library writes
vocab.txt                    BERT's word pieces; tokenizer_config.json says whether in lower case
vocab.json and merges.txt    GPT-2's pairs of bytes
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from mirada.data.text.tokeniser_files import open_pipeline, read_json, read_text, refusing, require_numbered
from mirada.errors import MiradaError

# Which of their names has which role here, and what these tokens are called where no file tells.
ROLES = {
    "pad": (("pad_token",), ("[PAD]", "<pad>")),
    "unknown": (("unk_token",), ("[UNK]", "<unk>")),
    "start": (("cls_token", "bos_token"), ("[CLS]", "<s>", "<|endoftext|>")),
    "end": (("sep_token", "eos_token"), ("[SEP]", "</s>", "<|endoftext|>")),
    "mask": (("mask_token",), ("[MASK]", "<mask>")),
}
KIND_OF_MODEL = {"BPE": "bpe", "WordPiece": "wordpiece", "WordLevel": "word", "Unigram": "unigram"}


def read_hugging_face(path: Path) -> tuple[Tokenizer, str, dict[str, int]]:
    """The pipeline, its kind and the numbers of its special tokens."""
    folder = path if path.is_dir() else path.parent
    options = _options(folder)
    names = {entry.name for entry in path.iterdir()} if path.is_dir() else {path.name}
    if path.is_file() and path.name in ("vocab.json", "merges.txt"):
        names = {"vocab.json", "merges.txt"}
    if path.is_file() and path.suffix == ".json" and path.name != "vocab.json":
        pipeline = open_pipeline(read_json(path), path)
    elif "tokenizer.json" in names:
        pipeline = open_pipeline(read_json(folder / "tokenizer.json"), folder / "tokenizer.json")
    elif "vocab.txt" in names:
        pipeline = _bert(folder / "vocab.txt", options)
    elif {"vocab.json", "merges.txt"} <= names:
        pipeline = _gpt2(folder / "vocab.json", folder / "merges.txt", options)
    elif pieces := sorted(name for name in names if name.endswith((".spm", ".model"))):
        raise MiradaError(
            f"{path}: has SentencePiece files ({', '.join(pieces)}), which are not read here; expected a "
            f"tokenizer.json of the same model beside them."
        )
    else:
        raise MiradaError(f"{path}: expected tokenizer.json, vocab.txt, or vocab.json with merges.txt; found none.")
    special = _special(pipeline, options)
    if "start" not in special and (begin := _decoder_start(folder)) is not None:
        special["start"] = begin
    return pipeline, _kind(pipeline), special


def _bert(path: Path, options: dict[str, Any]) -> Tokenizer:
    tokens = read_text(path).rstrip("\n").split("\n")
    vocabulary = {token.rstrip("\r"): number for number, token in enumerate(tokens)}
    unknown = _name(options.get("unk_token")) or "[UNK]"
    if unknown not in vocabulary:
        raise MiradaError(f"{path}: has no {unknown}; expected a vocabulary of BERT, one token per line.")
    with refusing(path):
        pipeline = Tokenizer(models.WordPiece(vocabulary, unk_token=unknown))
        pipeline.normalizer = normalizers.BertNormalizer(
            lowercase=bool(options.get("do_lower_case", True)),
            handle_chinese_chars=bool(options.get("tokenize_chinese_chars", True)),
            strip_accents=options.get("strip_accents"),
        )
        pipeline.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        pipeline.decoder = decoders.WordPiece()
    return pipeline


def _gpt2(vocabulary_path: Path, merges_path: Path, options: dict[str, Any]) -> Tokenizer:
    vocabulary = read_json(vocabulary_path)
    lines = read_text(merges_path).splitlines()
    pairs = [line.partition(" ") for line in lines if line and not line.startswith("#version")]
    with refusing(vocabulary_path):
        pipeline = Tokenizer(models.BPE(vocabulary, [(left, right) for left, _, right in pairs]))
        pipeline.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=bool(options.get("add_prefix_space", False)))
        pipeline.decoder = decoders.ByteLevel()
        require_numbered(pipeline, vocabulary_path)
    return pipeline


def _options(folder: Path) -> dict[str, Any]:
    """What the files beside say, the more particular one last."""
    found: dict[str, Any] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            found |= read_json(folder / name)
    return found


def _decoder_start(folder: Path) -> int | None:
    """Marian has no token for it: what a translation begins with, often the padding, stands with the model."""
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    number = config.get("decoder_start_token_id")
    return number if isinstance(number, int) else None


def _name(entry: Any) -> str | None:
    """A token is written as its text or as an object that holds it."""
    content = entry.get("content") if isinstance(entry, dict) else entry
    return content if isinstance(content, str) else None


def _special(pipeline: Tokenizer, options: dict[str, Any]) -> dict[str, int]:
    number_of = pipeline.get_vocab(with_added_tokens=True)
    found = {}
    for role, (keys, defaults) in ROLES.items():
        names = [*(_name(options.get(key)) for key in keys), *defaults]
        numbers = [number_of[name] for name in names if name in number_of]
        if numbers:
            found[role] = numbers[0]
    return found


def _kind(pipeline: Tokenizer) -> str:
    kind = KIND_OF_MODEL[type(pipeline.model).__name__]
    parts = json.loads(pipeline.to_str())
    is_of_bytes = '"ByteLevel"' in json.dumps([parts["pre_tokenizer"], parts["decoder"]])
    return "byte" if kind == "bpe" and is_of_bytes else kind


def hugging_face_files(pipeline: Tokenizer, special: dict[str, int], *, is_framed: bool) -> dict[str, dict[str, Any]]:
    """What AutoTokenizer reads, by name of the file; is_framed: it puts a text between start and end, as BERT wants."""
    copied = Tokenizer.from_str(pipeline.to_str())
    names = {role: pipeline.id_to_token(number) for role, number in special.items()}
    if is_framed:
        marks = {role: (names[role], special[role]) for role in ("start", "end")}
        frame = [f"{marks['start'][0]}:0", "$A:0", f"{marks['end'][0]}:0"]
        copied.post_processor = processors.TemplateProcessing(single=frame, special_tokens=list(marks.values()))
    called = {key: names[role] for role, (keys, _) in ROLES.items() if role in names for key in keys}
    options = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **called}
    return {"tokenizer.json": json.loads(copied.to_str()), "tokenizer_config.json": options}
