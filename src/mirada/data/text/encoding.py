"""Bytes of a file to characters: UTF-8, or what its byte order mark says; gzip by name; every line ends in one \\n."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from pathlib import Path

from mirada.errors import MiradaError

GZIP = ".gz"
PEEK = 1 << 16
HALVES = re.compile(r"[\ud800-\udfff]")

# The mark of UTF-32 begins with that of UTF-16, so it is looked for first.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


def sound(text: str) -> str:
    """Halves of surrogate pairs, which JSON and arguments can hold but no encoding, become U+FFFD."""
    return HALVES.sub("\ufffd", text)


def read_text(path: Path) -> str:
    """All of a file, which must hold something."""
    text = text_of(path)
    if not text.strip():
        raise MiradaError(f"{path}: the file is empty, expected text.")
    return text


def text_of(path: Path) -> str:
    """All of a file, which may be empty."""
    return _decoded(_read_bytes(path), path)


def peek_text(path: Path) -> str | None:
    """The first whole lines of a file, or None if it is not text."""
    try:
        with gzip.open(path) if is_gzip_name(path) else open(path, "rb") as stream:
            raw = stream.read(PEEK)
        coding = _coding(raw)
        text = codecs.getincrementaldecoder(coding)().decode(raw, final=len(raw) < PEEK)
    except (OSError, EOFError, zlib.error, UnicodeError):
        return None
    if "\0" in text:
        return None
    lines = _one_line_end(text)
    return lines if len(raw) < PEEK or "\n" not in lines else lines[: lines.rindex("\n") + 1]


def is_gzip_name(path: Path) -> bool:
    return path.suffix.lower() == GZIP


def _read_bytes(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise MiradaError(f"{path}: the file cannot be read ({error.strerror}).") from None
    if not is_gzip_name(path) or not raw:
        return raw
    try:
        return gzip.decompress(raw)
    except EOFError:
        raise MiradaError(f"{path}: the gzip file ends too early; copy or download it again.") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        hint = "copy or download it again" if raw.startswith(b"\x1f\x8b") else f"if it is text, remove {GZIP} from it"
        raise MiradaError(f"{path}: not a readable gzip file ({error}); {hint}.") from None


def _decoded(raw: bytes, path: Path) -> str:
    coding = _coding(raw)
    try:
        text = raw.decode(coding)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise MiradaError(
            f"{path}: not {coding.removesuffix('-sig').upper()} at byte {error.start} (0x{raw[error.start]:02X}, line "
            f"{line}); if it is Latin-1, convert it by iconv -f latin1 -t utf-8, if it is no text, give another file."
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise MiradaError(
            f"{path}: holds a NUL character in line {line}, so it is binary or UTF-16 without its mark; "
            "expected text in UTF-8."
        )
    return _one_line_end(text)


def _coding(raw: bytes) -> str:
    return next((coding for mark, coding in _MARKS if raw.startswith(mark)), "utf-8")


def _one_line_end(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
