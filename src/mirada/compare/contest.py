"""Who takes part in a comparison, and what all of them share: compare.json of its folder."""

from __future__ import annotations

import dataclasses
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from mirada.errors import MiradaError
from mirada.train.files import read_json, write_json
from mirada.train.folder import RunFolder

AS_PRESET = "preset"  # an entrant of this name is what `mirada train` would take


@dataclass(frozen=True)
class Entrant:
    """`vit:micro system.arguments.stem=linear`: a system, its size, and settings of its own.

    With a name of its own before: `linear patches: vit:micro system.arguments.stem=linear`.
    """

    label: str
    system: str | None
    settings: tuple[str, ...]

    @property
    def slug(self) -> str:
        return re.sub(r"[^\w.-]+", "-", self.label).strip("-.")


@dataclass(frozen=True)
class Contest:
    """What was asked for; with it and the data the comparison can be repeated."""

    source: str
    entrants: tuple[str, ...]
    seeds: int
    settings: tuple[str, ...]
    preset: str | None = None
    minutes: float | None = None  # None: the settings say how long

    def parsed(self) -> list[Entrant]:
        return [parse_entrant(words) for words in self.entrants]


@dataclass(frozen=True)
class ContestFolder:
    path: Path

    @property
    def definition(self) -> Path:
        return self.path / "compare.json"

    @property
    def steps(self) -> Path:
        return self.path / "steps.json"

    def run(self, entrant: Entrant, seed: int) -> RunFolder:
        return RunFolder(self.path / entrant.slug / f"seed-{seed}")

    def read(self) -> Contest:
        content = read_json(self.definition)
        try:
            entrants, settings = tuple(content.pop("entrants")), tuple(content.pop("settings"))
            return Contest(**content, entrants=entrants, settings=settings)
        except (TypeError, KeyError) as error:
            raise MiradaError(f"{self.definition}: is not a comparison ({error}); start it again elsewhere.") from error

    def write(self, contest: Contest) -> None:
        write_json(self.definition, dataclasses.asdict(contest))


def parse_entrant(words: str) -> Entrant:
    """Its name, if it has one, then its system (and size), then its own settings, as on the command line."""
    name, colon, rest = words.partition(": ")
    is_named = bool(colon) and "=" not in name  # or else the colon is in the value of a setting
    try:
        first, *settings = shlex.split(rest if is_named else words)
    except ValueError as error:
        raise MiradaError(f"{words!r}: {error}; write an entrant as 'vit:micro system.arguments.depth=2'.") from error
    wrong = [setting for setting in settings if "=" not in setting]
    if wrong or "=" in first:
        raise MiradaError(
            f"{words!r}: {(wrong or [first])[0]!r} is out of place; an entrant is a system and then settings, "
            "in quotes, such as 'vit:micro system.arguments.depth=2'."
        )
    return Entrant(name.strip() if is_named else words, None if first == AS_PRESET else first, tuple(settings))


def require_contest(contest: Contest) -> None:
    entrants = contest.parsed()
    if len(entrants) < 2:
        raise MiradaError(f"{len(entrants)} entrant: a comparison needs two or more, for example `vit cnn`.")
    slugs = [entrant.slug for entrant in entrants]
    twice = next((entrant.label for entrant in entrants if slugs.count(entrant.slug) > 1), None)
    if twice is not None:
        raise MiradaError(f"{twice!r}: is there twice; give every entrant another size or other settings.")
    lengths = tuple(f"train.{unit}=" for unit in ("epochs", "steps", "minutes"))
    longer = next((entrant.label for entrant in entrants if any(s.startswith(lengths) for s in entrant.settings)), None)
    if longer is not None:
        raise MiradaError(f"{longer!r}: sets its own length of training; all get the same, outside the quotes.")
    if contest.seeds < 1:
        raise MiradaError(f"--seeds {contest.seeds}: must be 1 or more.")
