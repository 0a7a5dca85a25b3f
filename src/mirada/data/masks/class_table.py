"""A file beside the masks that says which code is which class: classes.csv or class_dict.csv.

value,name        colour,name           name,r,g,b
1,pet             #ff0000,tumour        sky,70,130,180
"""

from __future__ import annotations

import csv
from pathlib import Path

from mirada.errors import MiradaError

NAMES = ("classes.csv", "class_dict.csv")
CODE_COLUMNS = ("value", "colour", "color", "code", "id")


def read_class_table(folder: Path) -> dict[str, str] | None:
    """code → name, as data.classes gives it; None where there is no such file."""
    path = next((folder / name for name in NAMES if (folder / name).is_file()), None)
    if path is None:
        return None
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = [
                {key.strip().lower(): (value or "").strip() for key, value in row.items() if key is not None}
                for row in csv.DictReader(file)
            ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise MiradaError(f"{path}: cannot be read as a table of classes ({error}).") from None
    columns = set(rows[0]) if rows else set()
    code = next((column for column in CODE_COLUMNS if column in columns), None)
    if "name" not in columns or not (code or {"r", "g", "b"} <= columns):
        raise MiradaError(
            f"{path}: has the columns {', '.join(sorted(columns)) or 'none'}, expected name and value, name and "
            "colour, or name, r, g and b."
        )
    return {row[code] if code else f"{row['r']},{row['g']},{row['b']}": row["name"] for row in rows}
