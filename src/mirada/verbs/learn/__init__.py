"""Attention to look at: a chosen mechanism on a sentence, what it costs, and the lectures' examples as live demos."""

from mirada.verbs.learn.attend import Lesson, attend
from mirada.verbs.learn.cost import Cost, cost
from mirada.verbs.learn.demos import DEMOS, run_demo

__all__ = ["DEMOS", "Cost", "Lesson", "attend", "cost", "run_demo"]
