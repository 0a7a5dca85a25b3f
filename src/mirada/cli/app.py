"""All verbs under one command."""

from __future__ import annotations

from typing import Annotated

import typer

from mirada import __version__
from mirada.cli import (
    anatomy,
    check,
    compare,
    evaluate,
    explain,
    export,
    fill,
    generate,
    map,
    neighbours,
    predict,
    presets,
    report,
    resume,
    segment,
    serve,
    studio,
    systems,
    train,
    translate,
)
from mirada.cli.failures import told
from mirada.machine.threads import settle_waiting

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain text: examples keep their lines and their square brackets, and help needs no more imports.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def show_version(wanted: bool) -> None:
    if wanted:
        print(f"mirada {__version__}")
        raise typer.Exit


@app.callback()
def mirada(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train, compare, explain and serve attention models on your own data, on a laptop.

    \b
    Example:
      mirada check photos/                 look at the data
      mirada train photos/                 train, judge and report a model and its baseline
      mirada predict runs/vit-photos new/  use it
      mirada train cells/                  learn masks from the folders images and masks in it
      mirada train en-es.tsv               learn to translate from pairs of sentences
      mirada train book.txt                learn to go on writing
      mirada train plots.csv --rasters climate.tif      learn a map from plots

    A source of data is a folder with a folder per class, a .csv, .tsv or .parquet table of paths and labels, an .npz
    archive, a folder of IDX files, a data set of Hugging Face, or a sample set: digits, photos. Masks are in a folder
    beside the folder of their images. A graph is
    a folder with edges.csv and nodes.csv, or with the files ind.* of Planetoid. Text is a .txt file, a .tsv, .csv or
    .jsonl table of sentence pairs or of texts and labels, or a folder of such files. Plots are a table, a .gpkg or a
    .geojson file of points with a number to predict, beside GeoTIFFs or not.
    """
    settle_waiting(context.invoked_subcommand)


# In the order of a project's life; the words fit into the list of commands on a narrow terminal.
for verb, words in (
    (check.check, "Look at the data before training."),
    (train.train, "Train a model, judge it and write a report."),
    (resume.resume, "Continue a run that was stopped."),
    (compare.compare, "Train several systems on equal terms."),
    (evaluate.evaluate, "Measure a trained model on what it has not seen."),
    (predict.predict, "Say what a trained model sees in images, texts or places."),
    (explain.explain, "Show what a model looks at, and how far to trust it."),
    (anatomy.anatomy, "Take a model apart: how its heads look, how its layers differ."),
    (segment.segment, "Say of every pixel of images what it shows."),
    (map.map_, "Map what a model of plots predicts."),
    (translate.translate, "Translate sentences."),
    (generate.generate, "Write more text, or draw new images."),
    (fill.fill, "Suggest words for the blanks of a text."),
    (neighbours.neighbours, "Show words that are near to a word."),
    (report.report, "Write the report of a run again."),
    (export.export, "Write the model of a run as files for elsewhere."),
    (serve.serve, "Answer requests over HTTP with a trained model."),
    (studio.studio, "Look at runs and into models in the browser."),
    (systems.systems, "List the models that can be trained, or show one."),
    (presets.presets, "List the shipped presets, or show one."),
):
    app.command(verb.__name__.rstrip("_"), short_help=words)(told(verb))
