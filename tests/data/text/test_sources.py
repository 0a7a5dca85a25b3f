"""Sources of text: what is inferred of them, and one sentence for each thing that can be wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from mirada.data.text.rows import LONGEST_LINE, LONGEST_SENTENCE
from mirada.data.text.sources import is_text, open_text
from mirada.errors import MiradaError

PAIRS = [("Go away.", "Vete de aquí."), ("I am cold.", "Tengo frío."), ("He is here.", "Él está aquí.")]
REVIEWS = [
    (f"this film was {word} number {i}", label) for i in range(5) for word, label in (("fun", "pos"), ("dull", "neg"))
]


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def lines(rows, separator: str = "\t") -> str:
    return "".join(separator.join(row) + "\n" for row in rows)


def pairs_of(table) -> list[tuple[str, str]]:
    return list(zip(table.texts, table.targets, strict=True))


# ---- plain text


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.md", "A.TXT"])
def test_plain_text_is_its_lines(tmp_path, name):
    table = open_text(write(tmp_path / name, "one\n\ntwo three\n"))
    assert (table.kind, table.texts, table.splits) == ("plain", ["one\n", "\n", "two three\n"], None)
    assert table.name(2) == f"{name}[2]"


@pytest.mark.parametrize(
    "raw", ["a\r\nñ\n".encode("utf-8-sig"), "a\rñ\r".encode("utf-16"), "a\nñ".encode("utf-32"), b"a\n\xc3\xb1\n"]
)
def test_marks_and_line_ends_are_put_right(tmp_path, raw):
    assert open_text(write(tmp_path / "a.txt", raw)).texts == ["a\n", "ñ\n"]


def test_only_a_line_end_ends_a_line(tmp_path):
    text = "one\u2028still one\x0cand one\x85\n"
    assert open_text(write(tmp_path / "a.txt", text)).texts == [text]


def test_a_line_of_a_megabyte_is_cut_into_rows_and_joined_is_the_same(tmp_path):
    text = "word " * 200_000 + "x" * 5_003 + "\nend\n"
    table = open_text(write(tmp_path / "a.txt", text))
    assert "".join(table.texts) == text
    assert max(map(len, table.texts)) <= LONGEST_LINE
    assert all(row.endswith(" ") for row in table.texts[:500])
    assert "1 lines of more than 2,000 characters" in table.notes[-1]


def test_folder_of_texts_in_the_order_of_names_without_the_readme(tmp_path):
    for name, text in {"b.txt": "second", "a.txt": "first", "README.txt": "about", ".c.txt": "hidden"}.items():
        write(tmp_path / name, text)
    table = open_text(tmp_path)
    assert table.texts == ["first\n", "second\n"]
    assert "a.txt, b.txt" in table.notes[0]


@pytest.mark.parametrize("given", ["", "train.txt"])
def test_texts_named_after_splits(tmp_path, given):
    for name in ("train", "valid", "test"):
        write(tmp_path / f"{name}.txt", f"{name}\n")
    table = open_text(tmp_path / given)
    assert table.texts == ["train\n", "valid\n", "test\n"]
    assert table.splits.tolist() == ["train", "val", "test"]


# ---- pairs


@pytest.mark.parametrize("header", [(), ("source", "target"), ("en", "es"), ("English", "Spanish")])
@pytest.mark.parametrize("name", ["p.tsv", "p.tsv.gz", "p.csv"])
def test_pairs_with_or_without_header(tmp_path, name, header):
    content = lines([header, *PAIRS] if header else PAIRS, "\t" if "tsv" in name else ";")
    table = open_text(write(tmp_path / name, content))
    assert table.kind == "pairs" and pairs_of(table) == PAIRS
    assert (table.source_name, table.target_name) == (header or ("source", "target"))
    assert any("not as a header" in note for note in table.notes) == (not header)


@pytest.mark.parametrize(
    "record",
    [
        lambda a, b: {"source": a, "target": b},
        lambda a, b: {"id": 7, "en": a, "es": b},
        lambda a, b: {"id": "x", "translation": {"en": a, "es": b}},
    ],
)
def test_pairs_of_json_lines(tmp_path, record):
    content = "\n".join(json.dumps(record(*pair)) for pair in PAIRS)
    table = open_text(write(tmp_path / "p.jsonl", content))
    assert table.kind == "pairs" and pairs_of(table) == PAIRS
    assert (table.source_name, table.target_name) in [("source", "target"), ("en", "es")]


def test_quotation_marks_of_tsv_are_characters_and_those_of_csv_hold_cells(tmp_path):
    tsv = open_text(write(tmp_path / "p.tsv", '"Go" away.\t"Vete\nI am cold.\tTengo "frío".\n'))
    assert pairs_of(tsv) == [('"Go" away.', '"Vete'), ("I am cold.", 'Tengo "frío".')]
    csv = open_text(write(tmp_path / "p.csv", 'en,es\n"Go, now","Vete\nya"\nCold.,Frío.\n'))
    assert pairs_of(csv) == [("Go, now", "Vete\nya"), ("Cold.", "Frío.")]


def test_the_training_file_stands_for_its_siblings_and_names_the_languages(tmp_path):
    for split, pair in zip(("train", "dev", "test"), PAIRS, strict=True):
        write(tmp_path / f"en_es_{split}.tsv.gz", lines([pair]))
    write(tmp_path / "en_fr_test.tsv.gz", lines([("a", "b")]))
    table = open_text(tmp_path / "en_es_train.tsv.gz")
    assert pairs_of(table) == PAIRS and table.splits.tolist() == ["train", "val", "test"]
    assert (table.source_name, table.target_name) == ("en", "es")
    assert "en_es_dev.tsv.gz (val) and en_es_test.tsv.gz (test)" in table.notes[0]
    alone = open_text(tmp_path / "en_es_dev.tsv.gz")
    assert pairs_of(alone) == PAIRS[1:2] and alone.splits is None


def test_folder_with_tables_of_splits_beside_texts(tmp_path):
    for split, pair in zip(("train", "val", "test"), PAIRS, strict=True):
        write(tmp_path / f"{split}.tsv", lines([pair]))
    write(tmp_path / "novel.txt", "Once upon a time\n")
    table = open_text(tmp_path)
    assert pairs_of(table) == PAIRS
    assert "not novel.txt" in table.notes[0]
    assert open_text(tmp_path, task="generate").texts == ["Once upon a time\n"]


def test_references_are_all_targets_of_the_source_on_its_side(tmp_path):
    write(tmp_path / "train.tsv", lines([("Hi.", "Hola."), ("Bye.", "Adiós.")]))
    write(tmp_path / "test.tsv", lines([("Hi.", "Buenas."), ("Yes.", "Sí."), ("Hi.", "¡Hola!"), ("Hi.", "Buenas.")]))
    table = open_text(tmp_path)
    both = ("Buenas.", "¡Hola!")
    assert table.references == [("Hola.",), ("Adiós.",), both, ("Sí.",), both, both]
    assert table.first_of_each_source(np.array([2, 3, 4, 5])).tolist() == [2, 3]
    assert table.subset([4]).references == [both]


def test_the_only_counterpart_of_a_parallel_file_is_its_translation(tmp_path):
    for name, content in {"train.en": "Hi.\nYes.\n", "train.es": "Hola.\nSí.\n"}.items():
        (tmp_path / name).write_text(content, "utf-8")
    table = open_text(tmp_path / "train.en")
    assert pairs_of(table) == [("Hi.", "Hola."), ("Yes.", "Sí.")]
    assert "train.en: train.es is its translation." in table.notes


def test_half_a_surrogate_pair_is_an_unknown_character(tmp_path):
    path = tmp_path / "cut.jsonl"
    path.write_text('{"text": "cut off \\ud83d", "label": "a"}\n{"text": "whole", "label": "b"}\n', "utf-8")
    assert open_text(path).texts[0] == "cut off \ufffd"


@pytest.mark.parametrize("target", ["es", "train.es", Path("train.es")])
def test_parallel_files_by_source_and_target(tmp_path, target):
    for split, pair in (("train", PAIRS[0]), ("dev", PAIRS[1])):
        write(tmp_path / f"{split}.en", pair[0] + "\n")
        write(tmp_path / f"{split}.es", pair[1])
    target = tmp_path / target if isinstance(target, Path) else target
    table = open_text(tmp_path / "train.en", target=target)
    assert pairs_of(table) == PAIRS[:2] and table.splits.tolist() == ["train", "val"]
    assert (table.source_name, table.target_name) == ("en", "es")
    back = open_text(tmp_path / "train.es", target="en")
    assert (back.texts[0], back.source_name) == (PAIRS[0][1], "es")


def test_folder_of_parallel_files(tmp_path):
    write(tmp_path / "corpus.es", "Hola.\nAdiós.\n")
    write(tmp_path / "corpus.en", "Hi.\nBye.\n")
    table = open_text(tmp_path)
    assert pairs_of(table) == [("Hi.", "Hola."), ("Bye.", "Adiós.")]
    assert "from en to es" in table.notes[0]


def test_text_files_with_tabs_are_pairs_when_translation_is_asked_for(tmp_path):
    content = lines([(*pair, f"by #{i}") for i, pair in enumerate(PAIRS)])
    table = open_text(write(tmp_path / "spa.txt", content), task="translate")
    assert pairs_of(table) == PAIRS
    assert "column1 and column2 are used, not column3" in " ".join(table.notes)


def test_pairs_with_an_empty_or_endless_side_are_left_out_and_said(tmp_path):
    rows = [PAIRS[0], ("Hi.", ""), ("word " * 200_000, "mucho"), PAIRS[1]]
    table = open_text(write(tmp_path / "p.tsv", lines(rows)))
    assert pairs_of(table) == PAIRS[:2]
    assert (table.num_empty, table.num_too_long) == (1, 1)
    assert "p.tsv, line 2" in table.notes[-2] and f"{LONGEST_SENTENCE:,}" in table.notes[-1]


# ---- labelled


@pytest.mark.parametrize("header", [(), ("review", "sentiment"), ("text", "target"), ("quote", "kind")])
@pytest.mark.parametrize("order", [1, -1])
def test_labelled_texts_by_name_or_by_few_values(tmp_path, header, order):
    rows = [row[::order] for row in ([header, *REVIEWS] if header and header[0] != "quote" else REVIEWS)]
    table = open_text(write(tmp_path / "r.tsv", lines(rows)))
    assert table.kind == "labelled" and table.texts == [text for text, _ in REVIEWS]
    assert table.class_names == ("neg", "pos")
    assert table.labels.dtype == np.int64 and table.labels.tolist() == [1, 0] * 5


def test_the_task_decides_what_two_columns_are(tmp_path):
    path = write(tmp_path / "r.tsv", lines(REVIEWS))
    assert open_text(path, task="translate").kind == "pairs"
    assert open_text(path, task="fill", text_column="column1").texts[0] == "this film was fun number 0\n"
    few = write(tmp_path / "few.tsv", lines(REVIEWS[:3]))
    assert open_text(few).kind == "pairs"
    assert open_text(few, task="classify").class_names == ("neg", "pos")


def test_labelled_parquet_with_class_names_and_a_split_column(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    features = {"label": {"_type": "ClassLabel", "names": ["bad", "good"]}}
    columns = {"text": ["so so", "very nice", "awful"], "label": [0, 1, 0], "split": ["train", "dev", "test"]}
    table = pyarrow.table(columns).replace_schema_metadata(
        {"huggingface": json.dumps({"info": {"features": features}})}
    )
    parquet.write_table(table, tmp_path / "r.parquet")
    read = open_text(tmp_path / "r.parquet")
    assert read.class_names == ("bad", "good") and read.labels.tolist() == [0, 1, 0]
    assert read.splits.tolist() == ["train", "val", "test"]
    assert is_text(tmp_path / "r.parquet")


def test_columns_that_are_given_count_more_than_names(tmp_path):
    content = lines([("id", "text", "frase", "label"), *((str(i), *pair, "x") for i, pair in enumerate(PAIRS))])
    path = write(tmp_path / "t.tsv", content)
    table = open_text(path, source_column="frase", target_column="text")
    assert pairs_of(table) == [pair[::-1] for pair in PAIRS]
    assert open_text(path, text_column="frase", label_column="id").class_names == ("0", "1", "2")


def test_a_first_row_with_a_given_name_is_a_header(tmp_path):
    content = lines([("frase", "traducción"), *PAIRS])
    assert len(open_text(write(tmp_path / "t.tsv", content))) == 4
    assert pairs_of(open_text(tmp_path / "t.tsv", source_column="frase")) == PAIRS


def test_a_column_called_fold_is_a_split_only_if_it_holds_splits(tmp_path):
    rows = [("fold", "text", "label"), *((str(i % 5), f"text {i}", "xy"[i % 2]) for i in range(10))]
    path = write(tmp_path / "t.tsv", lines(rows))
    assert open_text(path).splits is None
    with pytest.raises(MiradaError, match="split '0' in row 1, expected train, val or test"):
        open_text(path, split_column="fold")


# ---- what is text


def test_tables_and_folders_of_images_and_numbers_are_not_text(tmp_path, png):
    png(tmp_path / "photos" / "cat" / "1.png", 1)
    write(tmp_path / "photos" / "notes.txt", "some words")
    sources = {
        "labels.csv": "file_name,label\nthe cat.png,a cat\nthe dog.png,a dog\n",
        "bare.csv": "1.png,a cat\n2.png,a dog\n",
        "ids.csv": "image,label\nimg one,a cat\nimg two,a dog\n",
        "metadata.jsonl": '{"file_name": "1.png", "text": "a cat"}\n',
        "places.csv": "species,lon,lat\nFagus sylvatica,1.0,2.0\n",
        "numbers.tsv": "x\ty\n1\t2\n",
        "bytes.tsv": b"\x89PNG\0\0",
    }
    for name, content in sources.items():
        assert not is_text(write(tmp_path / name, content)), name
    assert not is_text(tmp_path / "photos")
    assert not is_text(tmp_path / "absent")
    assert not is_text("digits")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("blank.csv", ",,,\n,,,\n", "all cells of the table are empty"),
        ("deep.jsonl", '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}\n", "line 1 is nested too deeply"),
    ],
)
def test_tables_without_texts_are_refused_in_a_sentence(name, content, said, tmp_path):
    file = write(tmp_path / name, content)
    assert not is_text(file)
    with pytest.raises(MiradaError, match=said):
        open_text(file)


def test_texts_are_text(tmp_path):
    sources = {
        "a.txt": "words",
        "a.tsv.gz": lines(PAIRS),
        "r.csv": "id,text,label\n1,fine,pos\n",
        "a.jsonl": '{"en": "Hi", "es": "Hola"}\n',
        "b.csv": 'text,label\n"' + "long\n" * 20_000 + '",x\n',
        "train.en": "Hi",
        "train.es": "Hola",
    }
    for name, content in sources.items():
        write(tmp_path / "all" / name, content)
    assert all(is_text(tmp_path / "all" / name) for name in sources)
    assert is_text(tmp_path / "all")


# ---- what can be wrong


@pytest.mark.parametrize(
    ("files", "given", "options", "expected"),
    [
        ({"a.txt": ""}, "a.txt", {}, "a.txt: the file is empty"),
        ({"a.txt": " \n\n"}, "a.txt", {}, "a.txt: the file is empty"),
        ({"a.tsv.gz": ""}, "a.tsv.gz", {}, "a.tsv.gz: the file is empty"),
        ({"a.txt": b"one\ntwo \xf1o\n"}, "a.txt", {}, r"not UTF-8 at byte 8 \(0xF1, line 2\); .*iconv -f latin1"),
        ({"a.txt": "ñ".encode("utf-16")[:-1]}, "a.txt", {}, "not UTF-16 at byte"),
        ({"a.txt": b"one\ntwo\0"}, "a.txt", {}, "a NUL character in line 2, so it is binary"),
        ({"a.txt": "ab".encode("utf-16-le")}, "a.txt", {}, "UTF-16 without its mark"),
        ({"a.tsv": "one\ntwo\n"}, "a.tsv", {}, "the table has one column .* expected two texts"),
        ({"a.jsonl": '{"text": "one"}'}, "a.jsonl", {}, r"one column \(text\)"),
        ({"a.tsv": "a b\tc d\na\tb\tc\n"}, "a.tsv", {}, "line 2 has 3 cells, expected 2 .* stray tabs"),
        ({"a.csv": "en,es\na,b\nHi, you,Hola\n"}, "a.csv", {}, "line 3 has 3 cells, expected 2 .* quotation marks"),
        ({"a.tsv": "en\tes\n"}, "a.tsv", {}, r"a header \(en, es\) but no rows"),
        (
            {"a.tsv": "text\tlabel\na b\tx\n"},
            "a.tsv",
            {"label_column": "labels"},
            r"no column 'labels' \(label_column\) \(did you mean 'label'\?\); the columns are text, label",
        ),
        ({"a.jsonl": '{"en": "a", "es": "b"}\n{"en": \n'}, "a.jsonl", {}, "line 2 is not JSON"),
        ({"a.jsonl": '{"en": "a", "es": "b"}\n[1]\n'}, "a.jsonl", {}, "line 2 is not an object"),
        ({"a.jsonl": '{"en": "a", "es": "b"}\n\n{"en": "c"}\n'}, "a.jsonl", {}, "line 3 has no 'es'"),
        ({"d/a.pdf": "x"}, "d", {}, "d: no text here; expected .txt files"),
        ({"d/a.tsv": lines(PAIRS), "d/b.tsv": lines(PAIRS)}, "d", {}, r"several data sets \(a.tsv, b.tsv\)"),
        ({"train.tsv": lines(PAIRS), "val.tsv": "x y\tz\n", "dev.tsv": "x y\tz\n"}, "train.tsv", {}, "are both val"),
        ({"train.tsv": "en\tes\na\tb\n", "test.tsv": "c d\te f\n"}, "train.tsv", {}, "columns are column1, column2"),
        (
            {"a.en": "Hi.\n", "a.es": "Hola.\n", "a.fr": "Salut.\n"},
            "a.en",
            {},
            "give data.target=a.es beside it",
        ),
        ({"a.en": "Hi.\n", "a.es": "Hola.\n"}, "a.en", {"target": "fr"}, "target 'fr': there is no such file"),
        ({"a.en": "Hi.\n"}, "a.en", {"target": "a.en"}, "source and target are the same file"),
        (
            {"a.en": "Hi.\n\nBye.\n", "a.es": "Hola.\nAdiós.\n"},
            "a.en",
            {"target": "es"},
            "a.en has 3 lines and a.es has 2, .* they seem to part at line 2",
        ),
        ({"a.tsv": "source\ttarget\n\t\nHi.\t\n"}, "a.tsv", {}, "none of its 1 pairs has two texts"),
        ({"a.tsv": "text\tlabel\na b\t\nc d\tx\n"}, "a.tsv", {}, "1 rows have an empty 'label'"),
        ({"a.txt": "x"}, "a.txt", {"task": "translat"}, "did you mean 'translate'"),
        ({"a.txt": "x"}, "a.txt", {"text_column": "x"}, "columns are for tables"),
        ({"a.en": "x", "a.es": "y"}, ".", {"task": "classify"}, "which cannot be used to classify"),
        ({"a.tsv": "x y\tz\nx y\tz\n" * 4}, "a.tsv", {}, "could be pairs or labelled texts; give data.task"),
        ({}, "absent.txt", {}, "absent.txt: no such file or folder"),
    ],
)
def test_each_fault_is_one_sentence(tmp_path, files, given, options, expected):
    for name, content in files.items():
        write(tmp_path / name, content)
    with pytest.raises(MiradaError, match=expected) as caught:
        open_text(tmp_path / given, **options)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"just words\n", "not a readable gzip file .* remove .gz"),
        (gzip.compress(b"words and words " * 50, mtime=0)[:-12], "ends too early"),
        (
            gzip.compress(b"words and words " * 50, mtime=0)[:-8] + bytes(8),
            r"not a readable gzip file \(.*\); copy or download",
        ),
    ],
    ids=["no gzip", "cut off", "wrong checksum"],
)
def test_damaged_gzip(tmp_path, raw, expected):
    (tmp_path / "a.txt.gz").write_bytes(raw)
    with pytest.raises(MiradaError, match=expected):
        open_text(tmp_path / "a.txt.gz")


def test_a_csv_cell_of_a_megabyte_is_read(tmp_path):
    content = lines([("text", "label"), ("word " * 200_000, "x"), ("b", "y")], ",")
    table = open_text(write(tmp_path / "a.csv", content))
    assert len(table.texts[0]) == 999_999


def test_checksum_follows_the_texts_not_the_place(tmp_path):
    first = open_text(write(tmp_path / "a" / "p.tsv", lines(PAIRS)))
    moved = open_text(write(tmp_path / "b" / "p.tsv.gz", lines(PAIRS)))
    assert first.checksum() == moved.checksum()
    assert first.checksum() != first.subset([0, 2, 1]).checksum()


# ---- the real ones


def test_tatoeba_by_file_and_by_folder(real_data):
    folder = real_data("text")
    table = open_text(folder / "en_es_train.tsv.gz")
    assert (table.kind, table.source_name, table.target_name) == ("pairs", "en", "es")
    counts = {name: int((table.splits == name).sum()) for name in ("train", "val", "test")}
    assert counts == {"train": 114_253, "val": 2_360, "test": 2_351}
    assert len(table.first_of_each_source(np.flatnonzero(table.splits == "test"))) == 2_000
    assert open_text(folder).checksum() == table.checksum()
    assert is_text(folder) and is_text(folder / "quijote.txt")


def test_a_novel_is_its_file(real_data):
    path = real_data("text/quijote.txt")
    assert "".join(open_text(path).texts) == path.read_text("utf-8")


@pytest.mark.parametrize("name", ["graph/cora", "images/fashion_mnist", "geo/nz_plant_richness.csv", "geo"])
def test_other_real_data_is_not_text(real_data, name):
    assert not is_text(real_data(name))
