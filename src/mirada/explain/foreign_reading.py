"""What the classifier of other people's models reads, and what it says: which tokens, and the logits."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn

from mirada.errors import MiradaError

Rows = Literal["first", "first two", "mean", "first and mean", "last", "pool"]

TIMM_POOLING: dict[str, Rows] = {"token": "first", "avg": "mean", "map": "pool"}
# By transformers' model_type.
IMAGE_CLASSIFIERS: dict[str, Rows] = {
    "vit": "first",
    "deit": "first",
    "vit_msn": "first",
    "dinov2": "first and mean",
    "dinov2_with_registers": "first and mean",
    "clip": "mean",
    "siglip": "mean",
    "ijepa": "mean",
}
FIRST_TOKEN_TEXTS = {
    *("bert", "distilbert", "roberta", "electra", "albert", "camembert", "xlm-roberta", "roberta-prelayernorm"),
    *("deberta", "deberta-v2", "mpnet", "ernie", "rembert", "megatron-bert", "data2vec-text"),
}


def reading_rows(model: nn.Module) -> Rows:
    """Which tokens of the last layer the classifier reads.

    first           the class token
    first two       class and distillation token, whose logits are averaged
    mean            the mean of the patches or words, without extra tokens
    first and mean  the class token beside the mean of the patches
    last            the last word that is no padding
    pool            a query of its own looks at the tokens: the last map has one row
    """
    inner = getattr(model, "timm_model", model)
    if hasattr(inner, "head_dist") or hasattr(inner, "distillation_classifier"):
        return "first two"
    config = getattr(inner, "config", None)
    rows = _of_timm(inner) if config is None else _of_transformers(inner, config)
    if rows is None and _is_torchvision_vit(inner):
        rows = "first"
    if rows is None:
        raise MiradaError(
            f"which tokens {type(model).__name__} reads to classify is not known: say one of "
            "'first', 'first two', 'mean', 'first and mean', 'last', 'pool'"
        )
    return rows


def _of_timm(model: nn.Module) -> Rows | None:
    pooling = getattr(model, "global_pool", None)
    if not isinstance(pooling, str) or getattr(model, "pool_include_prefix", False):
        return None
    return TIMM_POOLING.get(pooling)


def _is_torchvision_vit(model: nn.Module) -> bool:
    return hasattr(model, "conv_proj") and hasattr(model, "class_token")


def _of_transformers(model: nn.Module, config: Any) -> Rows | None:
    name, kind = type(model).__name__, getattr(config, "model_type", "")
    if name.endswith(("ForCausalLM", "LMHeadModel")):
        return "last"
    if name.endswith("ForImageClassification"):
        if kind in ("beit", "data2vec-vision"):
            return "mean" if config.use_mean_pooling else "first"
        return IMAGE_CLASSIFIERS.get(kind)
    if name.endswith("ForSequenceClassification"):
        if kind == "modernbert":
            return "mean" if config.classifier_pooling == "mean" else "first"
        if any(getattr(module, "is_causal", False) is True for module in model.modules()):
            return "last"
        return "first" if kind in FIRST_TOKEN_TEXTS else None
    return "pool" if kind == "siglip_vision_model" else None


def logits_of(output: Any) -> Tensor:
    """The logits of what a model returned: the tensor itself, or the `logits` of transformers' outputs."""
    if isinstance(output, Tensor):
        return output
    found = output.get("logits") if isinstance(output, dict) else getattr(output, "logits", None)
    if isinstance(found, Tensor):
        return found
    has = f" with {', '.join(map(str, output))}" if isinstance(output, dict) else ""
    raise MiradaError(
        f"the model returned a {type(output).__name__}{has} and no logits: give a model with a classifier, "
        "or a score that makes one number per sample of this output"
    )
