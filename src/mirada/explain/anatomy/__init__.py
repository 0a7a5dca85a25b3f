"""The anatomy of a trained attention model: one file per measure, each with its equation."""

from mirada.explain.anatomy.anatomy import Alignment, Anatomy, anatomy
from mirada.explain.anatomy.cka import cka_matrix, linear_cka
from mirada.explain.anatomy.distance import distances, mean_distance, uniform_distance
from mirada.explain.anatomy.divergence import head_divergence
from mirada.explain.anatomy.entropy import mean_entropy
from mirada.explain.anatomy.features import features_of
from mirada.explain.anatomy.filters import Filters, filters_of
from mirada.explain.anatomy.heads import Heads
from mirada.explain.anatomy.landmarks import attention_to
from mirada.explain.anatomy.positions import Positions, positions_of
from mirada.explain.anatomy.similarity import map_similarity
from mirada.explain.anatomy.uniform import uniform

__all__ = [
    "Alignment",
    "Anatomy",
    "Filters",
    "Heads",
    "Positions",
    "anatomy",
    "attention_to",
    "cka_matrix",
    "distances",
    "features_of",
    "filters_of",
    "head_divergence",
    "linear_cka",
    "map_similarity",
    "mean_distance",
    "mean_entropy",
    "positions_of",
    "uniform",
    "uniform_distance",
]
