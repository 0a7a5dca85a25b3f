"""How much a model's features say about the classes: a linear classifier on them, the features being fixed.

Shape letters: N images, D features.
"""

from __future__ import annotations

import warnings

import numpy as np
from torch import Tensor

MAX_ROUNDS = 500


def probe_accuracy(features_ND: Tensor, labels_N: Tensor, held_out_ND: Tensor, held_out_labels_N: Tensor) -> float:
    """Accuracy on what is held out of a logistic regression on standardised features."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=MAX_ROUNDS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a probe that is stopped early is a probe
        classifier.fit(features_ND.double().numpy(), labels_N.numpy())
    return float(np.mean(classifier.predict(held_out_ND.double().numpy()) == held_out_labels_N.numpy()))
