"""The model against the best simple one, both held out by the same folds of the validation."""

from __future__ import annotations

import numpy as np

from mirada.report.contents import Contents
from mirada.report.plots_validation import (
    OURS,
    gap_interval,
    read_validation,
    title_of,
    why_not_validated,
)
from mirada.report.wording import decimal

WHERE = {
    "random": "On random folds, where a held-out plot may have training plots beside it",
    "blocked": "On blocked folds",
    "buffered": "On blocked folds with a buffer around them",
}
SIMPLER = "Where nothing tells them apart, the simple model is the cheaper choice."


def against_simple(run: Contents) -> str:
    validation = read_validation(run)
    if validation is None:
        return why_not_validated(run)
    scheme = validation.trusted
    rival = validation.best_simple(scheme)
    if rival is None:
        return "The validation holds no simple model to compare with."
    ours, theirs = validation.r2(scheme), validation.r2(scheme, rival)
    lead = abs(ours - theirs)
    scores = f"R² {decimal(ours)} against {decimal(theirs)}"
    gap = validation.difference((scheme, OURS), (scheme, rival))
    evidence = (
        "their difference has no interval: validation.csv is missing or holds one block"
        if gap is None
        else gap_interval(gap)
    )
    name = title_of(rival, run)
    if gap is not None and gap.is_clear:
        if ours > theirs:
            return (
                f"{WHERE[scheme]} the {run.system} is {decimal(lead)} ahead of the best simple model, {name}, and that "
                f"is clear: {scores} ({evidence})."
            )
        return (
            f"A simple model does better on this data: {WHERE[scheme].replace('On', 'on', 1)} {name} is "
            f"{decimal(lead)} ahead of the {run.system}, and that is clear: R² {decimal(theirs)} against "
            f"{decimal(ours)} ({evidence})."
        )
    if np.isnan(ours):
        return f"{WHERE[scheme]} R² of the {run.system} is not defined, so it cannot be compared."
    ahead = f"the {run.system} is {decimal(lead)} ahead of the best simple model, {name}"
    if ours < theirs:
        ahead = f"the best simple model, {name}, is {decimal(lead)} ahead of the {run.system}"
    return f"{WHERE[scheme]} {ahead} ({scores}), but these plots cannot tell the two apart ({evidence}). {SIMPLER}"
