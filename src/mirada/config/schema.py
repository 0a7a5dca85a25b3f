"""Every setting of a run, with its default, its limits and what it means. The saved config.yaml is this, resolved."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]  # what is kept of a moving average at a step
Positive = Annotated[int, Field(ge=1)]
Precision = Literal["float32", "bfloat16", "float16", "auto"]

Task = Literal[
    "single-label", "multi-label", "regression", "segment", "translate", "generate", "fill", "classify", "embed"
]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_default=True, protected_namespaces=())


class DataConfig(Section):
    """What to learn from. Everything but the source is inferred from the data if left out."""

    source: str = Field("", description="folder, table, .npz, IDX folder, graph, text file or sample set")
    task: Task | None = Field(None, description="what is to be learned")
    path_column: str | None = Field(None, description="column of a table with the image paths")
    label_column: str | list[str] | None = Field(None, description="column(s) with the labels or target numbers")
    split_column: str | None = Field(None, description="column that says train, val or test")
    group_column: str | None = Field(None, description="rows with the same value stay on one side of the split")
    image_root: str | None = Field(None, description="where relative paths of a table start")
    label_pattern: str | None = Field(None, description="reads the class from the file name, e.g. '(.+)_[0-9]+'")
    image_size: tuple[Positive, Positive] | None = Field(None, description="(height, width) to train at")
    fit: Literal["crop", "squash", "pad", "tile"] = Field(
        "crop", description="how images of another shape are fitted; with masks crop is squash, and tile cuts them up"
    )
    classes: dict[str | int, str] | list[str] | None = Field(
        None, description="names of the numbers or colours of masks, as {'#ff0000': tumour} or a list in their order"
    )
    ignore: list[int | str] | None = Field(None, description="numbers or colours of masks that count for nothing")
    source_column: str | None = Field(None, description="column of a table with the sentences to translate")
    target_column: str | None = Field(None, description="column with their translations")
    text_column: str | None = Field(None, description="column of a table with the texts to classify")
    target: str | None = Field(None, description="file with the translations, line by line, of a source that is one")
    rasters: list[str] = Field(default_factory=list, description="GeoTIFFs from which chips around points are cut")
    chip_size: Annotated[int, Field(ge=1)] = Field(9, description="pixels of a side of these chips, an odd number")
    x_column: str | None = Field(None, description="column of points with the longitude or easting")
    y_column: str | None = Field(None, description="column with the latitude or northing")
    crs: str | None = Field(None, description="what x and y are in, such as EPSG:27200; None: degrees")
    covariates: list[str] | None = Field(None, description="columns of points to predict from; None: all other numbers")
    val: Annotated[float, Field(gt=0, lt=1)] = Field(0.15, description="share held out to choose the best weights")
    test: Annotated[float, Field(gt=0, lt=1)] = Field(0.15, description="share held out for the final result")
    split_seed: int = Field(0, description="the split depends on this and the data only")
    on_broken: Literal["skip", "error"] = Field("skip", description="what to do with unreadable images")
    workers: Annotated[int, Field(ge=0)] | None = Field(None, description="threads or processes that decode images")
    memory_gb: Annotated[float, Field(gt=0)] = Field(2.0, description="larger sets are streamed from disk")


class TextConfig(Section):
    """How text becomes tokens, and tokens batches."""

    tokeniser: Literal["character", "word", "bpe", "wordpiece", "byte"] = Field(
        "bpe", description="what a token is; learned from the training texts"
    )
    num_tokens: Annotated[int, Field(ge=8)] = Field(8000, description="size of the vocabulary, at most")
    lowercase: bool = Field(False, description="letters are made small before anything else")
    shared: bool = Field(True, description="one vocabulary for both languages of a translation")
    max_length: Annotated[int, Field(ge=4)] = Field(
        128, description="tokens of a sentence, or of the stretch of text that is seen at once"
    )
    tokens_per_batch: Positive = Field(
        4096, description="of sentence pairs, padding included; others: train.batch_size"
    )
    masked: Annotated[float, Field(gt=0, lt=1)] = Field(0.15, description="share of tokens to be filled in (bert)")
    whole_words: bool = Field(False, description="hide all tokens of a word together (bert)")
    senses: str | None = Field(
        None, description="TSV of sentence, word, sense: how well do vectors in context tell senses apart (bert)"
    )


class MapsConfig(Section):
    """How plots are divided in space, what is predicted of them, and how it is validated."""

    scheme: Literal["random", "blocked", "buffered"] = Field("blocked", description="how plots are held out")
    block: float | str | None = Field(None, description="side of a block, in km or as '3deg'; None: from the data")
    buffer_km: Annotated[float, Field(ge=0)] | None = Field(
        None, description="what buffered splits keep free around held-out plots; None: half a block"
    )
    folds: Annotated[int, Field(ge=0)] = Field(3, description="of the validation by every scheme; 0: no validation")
    schemes: list[Literal["random", "blocked", "buffered"]] = Field(
        ["random", "blocked", "buffered"], description="shown side by side by the validation"
    )
    head: Literal["gaussian", "count", "quantile", "rmse"] = Field(
        "gaussian", description="what is predicted of a place; rmse: the loss of the published Spatioformer"
    )
    scale: Literal["standard", "raw"] = Field("standard", description="of bands and covariates; raw: as they are")
    coverage: Annotated[float, Field(gt=0, lt=1)] = Field(0.9, description="what intervals are to hold")
    turns: bool = Field(True, description="training chips are turned and mirrored")
    blind: Annotated[float, Field(ge=0)] = Field(
        1.0, description="in training a plot does not see others nearer than up to so many blocks (spatioformer)"
    )
    plots_seen: Positive = Field(1024, description="plots that one may look at in a step of training (spatioformer)")
    plots_kept: Positive = Field(2048, description="plots that the trained model may look at (spatioformer)")


class SystemConfig(Section):
    """Which model."""

    name: str = Field("vit", description="a system of `mirada systems`")
    size: str | None = Field(None, description="a named size of the system; None: its default")
    arguments: dict[str, Any] = Field(default_factory=dict, description="single arguments that differ from the size")


class AugmentConfig(Section):
    """How training images are varied; a strength, and single operations that differ from it."""

    strength: Literal["none", "light", "medium", "strong"] = Field("light", description="a named recipe")
    crop: Annotated[float, Field(ge=0, le=0.5)] | None = Field(None, description="shift by up to this share of a side")
    flip: Share | None = Field(
        None, description="chance of mirroring; None: by the strength, off where it looks unsafe"
    )
    affine: Share | None = Field(None, description="share of images rotated, sheared, moved, scaled")
    colour: Share | None = Field(None, description="change of brightness, contrast, saturation")
    tone: Share | None = Field(None, description="share of images posterised, solarised, sharpened, blurred")
    erase: Share | None = Field(None, description="share of images that lose a rectangle")
    mixup: Annotated[float, Field(ge=0)] | None = Field(None, description="Beta parameter; 0: off")
    cutmix: Annotated[float, Field(ge=0)] | None = Field(None, description="Beta parameter; 0: off")
    mix: Share | None = Field(None, description="share of batches that are mixed")


class TrainConfig(Section):
    """How to train. Give one of epochs, steps and minutes; minutes become steps once, by a short measurement."""

    epochs: Annotated[float, Field(gt=0)] | None = Field(None, description="passes over the training images")
    steps: Positive | None = Field(None, description="updates of the weights")
    minutes: Annotated[float, Field(gt=0)] | None = Field(None, description="training time on this machine")
    batch_size: Positive = Field(64, description="images per batch")
    accumulate: Positive = Field(1, description="batches per update")
    optimiser: Literal["adamw", "adam", "sgd", "muon"] = Field(
        "adamw", description="muon: matrices by orthogonalised steps, all else by adamw"
    )
    learning_rate: Annotated[float, Field(gt=0)] = Field(1e-3, description="the highest rate")
    weight_decay: Annotated[float, Field(ge=0)] = Field(0.05)
    betas: tuple[Decay, Decay] = Field(
        (0.9, 0.999), description="Adam's; SGD takes the first as momentum, Muon's own is 0.95"
    )
    schedule: Literal["cosine", "linear", "constant", "noam", "poly"] = Field("cosine")
    warmup: Share = Field(0.1, description="share of the steps with a rising rate")
    label_smoothing: Annotated[float, Field(ge=0, lt=1)] = Field(0.1)
    dice_weight: Share = Field(0.5, description="share of the Dice loss of masks; cross-entropy has the rest")
    class_weights: bool = Field(False, description="rare classes weigh more in the loss")
    balanced: bool = Field(False, description="rare classes are drawn more often")
    average: Decay = Field(0.99, description="moving average of the weights; 0: none")
    average_last: Annotated[int, Field(ge=0)] = Field(
        0, description="the mean of so many of the last evaluated weights is tried at the end; 0: none"
    )
    clip: Annotated[float, Field(ge=0)] = Field(1.0, description="largest norm of the gradient; 0: no limit")
    choose_by: Literal["metric", "loss"] = Field("metric", description="validation number that chooses the weights")
    patience: Annotated[int, Field(ge=0)] = Field(0, description="evaluations without gain before stopping; 0: never")
    evaluations: Positive = Field(20, description="how often the validation set is looked at")
    checkpoint_seconds: Annotated[float, Field(gt=0)] = Field(60.0)
    seed: Annotated[int, Field(ge=0)] = Field(0)
    device: str = Field("auto", description="auto, cpu, cuda, mps")
    precision: Precision = Field(
        "float32", description="of products; auto: bfloat16 if a short trial finds it faster here, kept for the run"
    )
    fused: bool = Field(
        True,
        description="one fused update of all weights (adam, adamw, muon's rest); auto precision decides it too",
    )
    sharding: Literal["none", "full"] = Field(
        "none", description="processes of torchrun share the batch; full: also weights, gradients, optimiser (FSDP)"
    )
    compile: bool = Field(False, description="torch.compile; needs a C++ compiler")

    @model_validator(mode="after")
    def one_length(self) -> TrainConfig:
        given = [name for name in ("epochs", "steps", "minutes") if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are given, expected one of epochs, steps and minutes")
        return self


class BaselineConfig(Section):
    """A simple opponent trained on the same images for the same time. `name: none` leaves it out."""

    name: str = Field("cnn", description="a system, or none")
    size: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    learning_rate: Annotated[float, Field(gt=0)] | None = Field(
        None, description="the opponent's own highest rate; by default what its card says"
    )
    precision: Precision | None = Field(None, description="by default as train.precision was asked for")


class DistilConfig(Section):
    """A trained run as the teacher of this one, which then learns from its answers beside the labels."""

    teacher: str | None = Field(None, description="folder of a run on the same classes; None: no teacher")
    kind: Literal["hard", "soft"] = Field("hard", description="learn the teacher's answers, or the shares it gives")
    weight: Share = Field(0.5, description="the teacher's share of the loss; the labels have the rest")
    temperature: Annotated[float, Field(gt=0)] = Field(3.0, description="softens both sides of soft distillation")
    checksum: str | None = Field(None, description="SHA-256 of the teacher's weights; filled in by the run")


class TrackConfig(Section):
    """Where numbers go beside the run folder."""

    mlflow: bool = Field(False, description="also log to MLflow (needs the mlflow extra)")
    mlflow_uri: str | None = Field(None, description="MLflow store; None: sqlite file in the runs folder")
    experiment: str = Field("mirada")


class Config(Section):
    """A run."""

    name: str | None = Field(None, description="name of the run folder; None: <system>-<data>")
    runs: str = Field("runs", description="folder of run folders")
    preset: str | None = Field(None, description="where the defaults came from")
    start: str | None = Field(None, description="checkpoint, run or hub id whose weights to start from; None: random")
    data: DataConfig = DataConfig()
    text: TextConfig = TextConfig()
    maps: MapsConfig = MapsConfig()
    system: SystemConfig = SystemConfig()
    augment: AugmentConfig = AugmentConfig()
    train: TrainConfig = TrainConfig()
    baseline: BaselineConfig = BaselineConfig()
    distil: DistilConfig = DistilConfig()
    track: TrackConfig = TrackConfig()
