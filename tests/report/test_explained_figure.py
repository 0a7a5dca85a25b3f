"""Figures of explanations: written, not blank, with scales and labels, legible for long texts."""

import dataclasses

import numpy as np
import pytest
from PIL import Image

from mirada.errors import MiradaError
from mirada.report.explained import explained_figure, graph_figure, save_png, save_svg
from mirada.report.explained_graph import strongest
from mirada.report.explained_tokens import LINE_LETTERS, MAX_LABELS, heat_of, wrapped
from tests.report.fabricated_explained import ENGLISH, SPANISH, image, text, translation, weights

WEIGHTS = np.array([[0.1, 0.6, 0.3], [0.0, 0.25, 0.75]])


def texts_of(figure) -> list[str]:
    return [found.get_text() for found in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


@pytest.mark.parametrize("make", [image, text, translation])
def test_a_picture_is_written_and_not_blank(make, tmp_path):
    path = save_png(make(), tmp_path / "explained.png")
    with Image.open(path) as picture:
        assert picture.format == "PNG" and min(picture.size) > 500
        assert len(picture.convert("RGB").getcolors(picture.width * picture.height)) > 100
    assert list(tmp_path.iterdir()) == [path]


def test_vectors_keep_letters(tmp_path):
    written = save_svg(image(), tmp_path / "explained.svg").read_text("utf-8")
    assert "<svg" in written and "Integrated gradients</text>" in written.replace("\n", "")
    assert "<script>" not in written


def test_every_map_has_a_scale_and_what_it_is_not():
    item = image()
    figure = explained_figure(item)
    said = "\n".join(texts_of(figure))
    measured = item.maps[0].faithfulness
    assert f"deletion AUC {measured.deletion_auc:.3f}, random order {measured.random_deletion_auc:.3f}" in said
    assert f"insertion AUC {measured.insertion_auc:.3f}" in said and "faithfulness not measured" in said
    for map in item.maps:
        assert map.title in said and map.is_not in said
    assert "toucan  83.0 %" in said
    # A picture and what stands below it, of the input and of each map.
    assert len(figure.axes) == 2 * (1 + len(item.maps))


def test_heat_lies_where_its_cells_are():
    item = image()
    figure = explained_figure(item)
    extents = [axes.images[1].get_extent() for axes in figure.axes if len(axes.images) == 2]
    assert extents == [[0, 33, 28, 0], [0, 33, 28, 0], [0, 36, 32, 0]]
    axes = next(axes for axes in figure.axes if len(axes.images) == 2)
    assert axes.get_xlim() == (0, 33) and axes.get_ylim() == (26, 0)
    assert np.array_equal(axes.images[1].get_array(), item.maps[0].relevance_RC)


def test_without_relevance_the_last_attention_is_drawn():
    item = dataclasses.replace(image(), maps=[])
    figure = explained_figure(item)
    (heat,) = [axes.images[1].get_array() for axes in figure.axes if len(axes.images) == 2]
    expected = item.layers[-1].weights_HNM.mean(0)[0, 1:].reshape(4, 6)
    assert np.allclose(heat, expected)
    assert "attention of the class token" in texts_of(figure)


def test_signed_numbers_have_zero_in_the_middle():
    colours, limits = heat_of(np.array([-0.5, 2.0]))
    assert limits == (-2.0, 2.0) and colours.name == "RdBu_r"
    colours, limits = heat_of(np.array([0.5, 2.0]))
    assert limits == (0.5, 2.0) and colours.name == "magma"
    assert heat_of(np.zeros(3))[1] == (0.0, 1.0)


def test_an_alignment_has_tokens_on_both_sides():
    item = translation()
    figure = explained_figure(item)
    (axes,) = [axes for axes in figure.findobj(lambda one: hasattr(one, "get_xticklabels")) if axes.images]
    assert [label.get_text() for label in axes.get_yticklabels()] == ENGLISH
    assert [label.get_text() for label in axes.get_xticklabels()] == SPANISH
    assert np.allclose(axes.images[0].get_array(), item.layers[2].weights_HNM.mean(0))


def test_a_long_text_is_wrapped_and_its_matrix_cropped():
    tokens = [f"word{number}" for number in range(199)]
    figure = explained_figure(text("long", tokens))
    said = texts_of(figure)
    assert set(tokens) <= set(said)
    assert any(f"first {MAX_LABELS} × {MAX_LABELS} of 199 × 199" in line for line in said)
    assert figure.get_size_inches()[0] < 12


def test_lines_of_tokens_do_not_overlap():
    placed = wrapped(["abc", " ", "日本", "x" * 60, *["word"] * 50])
    assert placed[1][2] == "␣" and placed[1][1] > 3
    assert placed[3][1] - placed[2][1] > 4  # wide letters are two wide
    assert max(at + len(written) for _, at, written in placed) <= LINE_LETTERS
    assert [line for line, _, _ in placed] == sorted(line for line, _, _ in placed)


def test_strongest_edges_by_hand():
    edges, found = strongest(WEIGHTS, top_k=3)
    assert edges.tolist() == [[1, 2], [0, 1], [0, 2]] and found.tolist() == [0.75, 0.6, 0.3]
    edges, _ = strongest(WEIGHTS, threshold=0.25)
    assert edges.tolist() == [[1, 2], [0, 1], [0, 2], [1, 1]]
    assert len(strongest(WEIGHTS)[0]) == 4  # two for each that looks
    assert len(strongest(WEIGHTS, top_k=100)[0]) == 5  # none of weight 0


def test_a_graph_draws_its_edges(tmp_path):
    figure = graph_figure(WEIGHTS, ["a", "$b"], ["x", "y", "z"], threshold=0.3, title="Layer $1")
    (lines,) = figure.axes[0].collections
    assert [segment.tolist() for segment in lines.get_segments()] == [
        [[0, 1], [1, 1]],
        [[0, 0], [1, 0]],
        [[0, 0], [1, 1]],
    ]
    assert lines.get_array().tolist() == [0.75, 0.6, 0.3]
    said = texts_of(figure)
    assert {"a", "$b", "y", "z", "Layer $1"} <= set(said) and "x" not in said
    assert any("3 edges of at least 0.3; 1 tokens without one left out" in line for line in said)
    figure.savefig(tmp_path / "graph.png")
    with Image.open(tmp_path / "graph.png") as picture:
        assert len(np.unique(np.asarray(picture.convert("L")))) > 20


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"top_k": 1, "threshold": 0.5}, "give one of them"),
        ({"top_k": 0}, "at least 1"),
        ({"threshold": 0.8}, "the highest is 0.75"),
        ({"keys": ["x"]}, r"shape \(2, 3\) for 2 tokens that look at 1"),
    ],
)
def test_a_graph_refuses_by_name(given, found):
    with pytest.raises(MiradaError, match=found):
        graph_figure(WEIGHTS, ["a", "b"], **{"keys": ["x", "y", "z"], **given})


def test_a_graph_of_many_tokens_leaves_out_those_without_edges():
    tokens = [f"word{number}" for number in range(199)]
    figure = graph_figure(weights(1, 199, 199)[0], tokens, top_k=7)
    assert figure.get_size_inches()[1] < 4
