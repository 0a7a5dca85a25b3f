"""Sections of the page on what `mirada compare` measured: benchmarks/systems_table.py, shortcuts.py, transfer.py and
masks.py."""

from __future__ import annotations

from mirada.compare.outcome import markdown


def systems_text(results: dict) -> str:
    text = ""
    if kept := results.get("classes"):
        text += (
            "## All systems on CIFAR-10\n\n`python benchmarks/systems_table.py`, by `mirada compare`: 20,000 images to "
            "train on, of which 1,000 choose the weights, 5,000 to test; the recipe of the preset "
            f"{kept['preset']} by AdamW, at the learning rate of each system's card. {_conditions(kept)}\n\n"
            "Of every system this is the named size with parameters nearest by ratio to those of `vit:micro`; of "
            "`resnet` a narrower one. The counter adds up what the kernels compute, the formula what the layers ask "
            "for: windows that reach over the edge (`swin`), products with relative positions (`mvit`) and the "
            "sums that random features are divided by (`t2t_vit`) are counted only. `vit_3d` is for volumes.\n\n"
        ) + _table(kept, "system")
    if kept := results.get("pixels"):
        text += (
            "\n`image_gpt` learns the pixels, at 16 × 16 in 512 colours, not the classes; fewer bits are better, and a "
            f"difference below zero is a gain. {_interval(kept)} The formula has the pairs with earlier pixels, the "
            "counter all:\n\n"
        ) + _table(kept, "system")
    return text


def shortcuts_text(results: dict) -> str:
    text = ""
    if kept := results.get("settings"):
        text += (
            "## Shortcuts\n\n`python benchmarks/shortcuts.py`, by `mirada compare`: CIFAR-10 (20,000 images to train "
            f"on, 5,000 to test) with the preset {kept['preset']}, and one choice of it changed, in the same time; "
            f"fewer operations per step give more steps. {_conditions(kept)}\n\n"
        ) + _table(kept, "change")
    if kept := results.get("starts"):
        text += (
            f"\nA minute of something else and then {kept['minutes']:g} of the preset, beside {kept['minutes']:g} "
            "minutes from scratch. Turned images: by how many quarters an image is turned is learned first, without "
            f"its class. {_interval(kept)}\n\n"
        ) + _table(kept, "start")
    return text


def transfer_text(results: dict) -> str:
    text = ""
    if kept := results.get("fine-tuning"):
        text += (
            "## Fine-tuning against scratch\n\n`python benchmarks/transfer.py`: Pets, 37 breeds at 64 px, with the "
            f"preset {kept['preset']} by AdamW. The same system starts from scratch, or (`mirada train --from`) from "
            f"weights that learned CIFAR-10, {_share(results['givers']['pretrained'])} right there, then at a quarter "
            f"of the rate. {_conditions(kept)}\n\n"
        ) + _table(kept, "start")
    if kept := results.get("distillation"):
        text += (
            "\n## A teacher against none\n\n`python benchmarks/transfer.py`: `deit:micro` on CIFAR-10 with the preset "
            f"{kept['preset']} by AdamW. The teacher is `cnn:micro`, {_share(results['givers']['teacher'])} right on "
            "the test images; it looks at every batch of its student, in the student's time, which therefore gets "
            f"fewer steps ({_steps(kept)}). {_conditions(kept)}\n\n"
        ) + _table(kept, "teacher")
    return text


def masks_text(results: dict) -> str:
    sections = []
    titles = {"nuclei": "334 microscope images of nuclei", "pets": "2,590 photographs of pets with their outlines"}
    for name, title in titles.items():
        if kept := results.get(name):
            said = (
                f"## Masks: {title}\n\n`python benchmarks/masks.py`, by `mirada compare`: Dice on held-out images, "
                f"with the preset {kept['preset']} at 128 px. Saying the best one class of every pixel gives "
                f"{kept['trivial']:.3f}. {_conditions(kept)}\n\n"
            )
            sections.append(said + _table(kept, "system"))
    return "\n".join(sections)


def _table(kept: dict, of: str) -> str:
    return markdown([{of: row["entrant"], **{k: v for k, v in row.items() if k != "entrant"}} for row in kept["table"]])


def _conditions(kept: dict) -> str:
    machine, first = kept["machine"], next(iter(kept["steps"].values()))
    seeds = kept["seeds"]
    half = " ± is half of the 95 % interval of the mean (Student's t)." if seeds > 1 else ""
    return (
        f"{kept['minutes']:g} minutes each on {first['threads']} cores of {machine['processor']}, torch "
        f"{machine['torch']}, {seeds} {'seeds' if seeds > 1 else 'seed'}. Steps were timed once, in turns, on the idle "
        f"machine; the minutes are so many steps.{half} {_interval(kept)}"
    )


def _interval(kept: dict) -> str:
    """Where the interval of a difference comes from, as compare/statistics.py has it."""
    several = kept["seeds"] > 1
    if kept["rows"][0]["metric"] == "accuracy":
        drawn = "seeds and images" if several else "images"
        source = f"its 95 % interval from drawing {drawn} anew"
    else:
        source = (
            "its 95 % interval Student's t over the seeds" if several else "without an interval, as one seed has none"
        )
    return f"The difference to the first is on the same test images, {source}."


def _share(giver: dict) -> str:
    return f"{100 * giver['accuracy']:.1f} %"


def _steps(kept: dict) -> str:
    return ", ".join(f"{name}: {entry['steps']:,}" for name, entry in kept["steps"].items())
