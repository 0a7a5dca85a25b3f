"""Questions about nodes of the graph that the model was trained on: JSON with a list of their names."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, create_model

from mirada.data.graph_batches import OnGraph
from mirada.data.graph_features import FeatureScale
from mirada.explain.graph import KNOWN, explain_node
from mirada.serve import answers as say
from mirada.serve.refusals import Refused
from mirada.serve.served import REFUSED_QUESTIONS, OneOf, Served, asked_of_model, taking
from mirada.verbs.load_graph import TrainedGraph
from mirada.verbs.prepare_graph import prepare_graph
from mirada.verbs.questions import require_own_data

MEDIA_TYPE = "application/json"
DEFAULT = "gradient_attention"


def routes(served: Served) -> APIRouter:
    router, trained, limits = APIRouter(), served.trained, served.limits
    assert isinstance(trained, TrainedGraph)
    require_own_data(trained)
    graph = trained.graph(prepare_graph(trained.config.data, saved=trained.data).graph)
    number_of = {graph.node_name(node): node for node in range(graph.num_nodes)}
    on_graph = OnGraph(trained.model, graph, FeatureScale.from_dict(trained.data["normalisation"]), trained.device)
    features_ND = on_graph.get_buffer("features_ND")
    Question = _question("Nodes", limits.nodes)
    Explaining = _question("NodesToExplain", limits.explained)

    def numbers(names: list[str]) -> list[int]:
        for name in names:
            if name not in number_of:
                raise Refused(404, f"{name!r} is no node of the graph that this model was trained on.")
        return [number_of[name] for name in names]

    def predicted(names: list[str]) -> list[dict]:
        answers = trained.task.answers(trained.on(graph, np.array(numbers(names))))
        return [{"node": name, **say.classes_of(answer)} for name, answer in zip(names, answers, strict=True)]

    def explained(names: list[str], methods: list[str]) -> list[dict]:
        found = predicted(names)
        trained.model.eval()
        for answer, node in zip(found, numbers(names), strict=True):
            answer["maps"] = {}
            for method in methods:
                seen = explain_node(trained.model, features_ND, on_graph.neighbours, node, method=method)
                relevance_N = seen.relevance_N.detach().double().cpu()
                some = relevance_N.nonzero().flatten().tolist()
                answer["maps"][method] = {graph.node_name(other): float(relevance_N[other]) for other in some}
        return found

    @router.post("/predict", response_model=say.Answers[say.ClassesOfNode], responses=REFUSED_QUESTIONS)
    @taking(Question)
    async def predict(question: Any) -> Any:
        """The class of nodes by name."""
        return {"answers": await served.turns.alone(lambda: predicted(question.nodes))}

    @router.post("/explain", response_model=say.Explained[say.ExplainedNode], responses=REFUSED_QUESTIONS)
    @taking(Explaining)
    async def explain_nodes(
        question: Any,
        method: Annotated[list[Annotated[str, OneOf(KNOWN)]] | None, Query(min_length=1)] = None,
    ) -> Any:
        """Which nodes the class of a node rests on."""
        methods = list(dict.fromkeys(method or [DEFAULT]))
        work = lambda: asked_of_model(lambda: explained(question.nodes, methods))  # noqa: E731
        return {"explanations": await served.turns.alone(work), "notes": []}

    return router


def _question(name: str, most: int) -> type[BaseModel]:
    node = Annotated[str, Field(max_length=200)]
    nodes = (list[node], Field(min_length=1, max_length=most))
    return create_model(name, __config__=ConfigDict(extra="forbid"), nodes=nodes)
