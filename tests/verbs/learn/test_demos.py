"""The numbers of every demo: those of the lectures, of the papers, or computed by hand."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import asdict

import pytest
import torch

from mirada.errors import MiradaError
from mirada.verbs.learn import DEMOS, run_demo
from mirada.verbs.learn.demos.demo import Matrix, Text


def numbers(name: str, **inputs: float | str) -> dict[str, float]:
    return {number.label.en: number.value for number in run_demo(name, inputs).numbers}


def matrices(name: str, **inputs: float | str) -> list[torch.Tensor]:
    return [torch.tensor(p.values) for p in run_demo(name, inputs).pictures if isinstance(p, Matrix)]


def number(name: str, beginning: str, **inputs: float | str) -> float:
    (found,) = (value for label, value in numbers(name, **inputs).items() if label.startswith(beginning))
    return found


def test_B15_column_softmax_of_the_table():
    assert number("key-query-table", "creature → fluffy") == pytest.approx(0.4013, abs=1e-4)
    assert number("key-query-table", "creature → blue") == pytest.approx(0.5987, abs=1e-4)
    assert number("key-query-table", "roamed → the") == pytest.approx(0.9926, abs=1e-4)
    assert number("key-query-table", "verdant → creature") == pytest.approx(0.0074, abs=1e-4)
    assert number("key-query-table", "sum of the column") == pytest.approx(1, abs=1e-6)
    assert number("key-query-table", "the same sum") > 2
    assert number("key-query-table", "creature → blue", gap=0) == pytest.approx(0.5)


def test_B16_h_negro():
    first, second = (number("convex-combination", f"h_negro, {channel}") for channel in ("first", "second"))
    assert first == pytest.approx(0.4 * 1 + 0.5 * 3.2 + 0.025 * (0 + 4.2 + 0.6 + 2.4), abs=1e-5)
    assert second == pytest.approx(0.4 * 3 + 0.5 * 2.6 + 0.025 * (0.2 + 0.8 + 1.3 - 0.4), abs=1e-5)
    assert number("convex-combination", "sum") == pytest.approx(1, abs=1e-6)
    assert number("convex-combination", "between", gato=0, negro=0.95) == 1
    with pytest.raises(MiradaError, match="more than 1"):
        run_demo("convex-combination", {"gato": 0.9, "negro": 0.9})


@pytest.mark.parametrize(("width", "unscaled"), [(16, 3.997), (64, 7.93), (256, 16.3), (512, 22.8)])
def test_E11_spread_of_the_logits(width, unscaled):
    found = numbers("scale", width=width)
    assert found["std of the logits, q·k"] == pytest.approx(unscaled, rel=0.05)
    assert found["std of the logits, q·k / √d_k"] == pytest.approx(1, rel=0.05)
    assert found["std of the logits, q·k / d_k"] == pytest.approx(width**-0.5, rel=0.05)


def test_B23_without_a_scale_one_key_takes_all():
    found = numbers("scale", width=512, num_keys=24)
    equal = found["entropy of equal weights"]
    assert equal == pytest.approx(math.log(24))
    assert found["entropy of the weights, q·k"] < 0.1 * equal
    assert found["entropy of the weights, q·k / d_k"] > 0.99 * equal
    assert 0.7 * equal < found["entropy of the weights, q·k / √d_k"] < 0.95 * equal


def test_C5_E30_table_of_i_am_a_robot():
    (table,) = matrices("sinusoidal-table")
    expected = [[0, 1, 0, 1], [0.84, 0.54, 0.10, 1.00], [0.91, -0.42, 0.20, 0.98], [0.14, -0.99, 0.30, 0.96]]
    torch.testing.assert_close(table, torch.tensor(expected), atol=0.006, rtol=0)
    assert number("sinusoidal-table", "squared length") == pytest.approx(2)
    assert number("sinusoidal-table", "largest error", dim=32, base=10_000) < 1e-12
    assert number("sinusoidal-table", "longest wave, base", dim=4, base=100) == pytest.approx(2 * math.pi * 10)
    assert number("sinusoidal-table", "longest wave if") == pytest.approx(2 * math.pi * 4000**0.5)


def test_C2_collision():
    assert number("normalised-position", "difference") == 0
    assert number("normalised-position", "pos/N of position 4") == pytest.approx(2 / 3)
    assert number("normalised-position", "distance") > 1
    assert number("normalised-position", "difference", other_position=1) == pytest.approx(1 / 3)


def test_C3_binary():
    code, table = matrices("binary-code")
    assert code.tolist() == [[0, 0, 0, 0, 0, 0, 1, 1]]
    assert table[:, -1].tolist() == [0, 1] * 8 and table[:, -3].tolist() == [0, 0, 0, 0, 1, 1, 1, 1] * 2
    assert number("binary-code", "flips of the last") == 255 and number("binary-code", "flips of the first") == 1
    assert number("binary-code", "channels that change") == 4
    assert matrices("binary-code", position=1, num_bits=1)[0].tolist() == [[1]]


def test_C4_harmonic():
    assert number("harmonic-code", "longest wave of the toy", dim=5) == pytest.approx(10 * math.pi)
    assert number("harmonic-code", "longest wave of the paper", dim=4) == pytest.approx(2 * math.pi * 100)
    assert number("harmonic-code", "least distance of two positions, toy", dim=2, length=2) == pytest.approx(
        math.hypot(math.sin(1), math.sin(0.5))
    )


def test_E33_sign_of_the_rotary_block():
    found = numbers("rotary-sign")
    assert found["determinant, right"] == pytest.approx(1)
    assert found["determinant, with −sin"] == pytest.approx(0.16997, abs=1e-5)
    assert found["largest entry of RᵀR − I, right"] < 1e-12
    assert found["largest entry of RᵀR − I, with −sin"] == pytest.approx(math.sin(1.4))
    assert number("rotary-sign", "change of q_i·k_j when both move by 7, right", position=5, shift=7) < 1e-12
    assert number("rotary-sign", "change of q_i·k_j when both move by 7, with", position=5, shift=7) > 0.01
    right, _ = matrices("rotary-sign", theta=1.0)
    expected = [[math.cos(1), -math.sin(1)], [math.sin(1), math.cos(1)]]
    torch.testing.assert_close(right, torch.tensor(expected))


def test_E22_strided_has_two_halves():
    local, strided, local_two, strided_two = matrices("strided", length=5, stride=2)
    assert local.tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1]]
    assert strided[4].tolist() == [1, 0, 1, 1, 1]
    assert number("strided", "not reached") == 0 and number("strided", "earlier tokens not reached") == 28
    assert local_two.sum() == 15 and strided_two.sum() == 15


def test_E18_neighbours_on_a_grid():
    found = numbers("grid")
    assert [found[place] for place in ("corner", "border", "inside")] == [4, 6, 9]
    counts, steps = matrices("grid", rows=3, columns=3)
    assert counts.tolist() == [[4, 6, 4], [6, 9, 6], [4, 6, 4]]
    assert steps.tolist() == [[3, 4, 3], [4, 5, 4], [3, 4, 3]]


def test_E45_hiding_is_not_replacing():
    assert number("mask-token", "weight on later words, causal") == 0
    assert number("mask-token", "weight on later words, [MASK]") > 1
    assert number("mask-token", "mean weight of earlier words on position 4, causal") == 0
    assert number("mask-token", "the same, [MASK]") > 0
    causal, full = matrices("mask-token")
    torch.testing.assert_close(causal.sum(1), torch.ones(6))
    assert (full > 0).all()


def test_E37_variance():
    found = numbers("variance")
    assert found["variance with 1/N"] == pytest.approx(1.5556, abs=1e-4)
    assert found["variance with 1/(N − 1)"] == pytest.approx(2.3333, abs=1e-4)
    assert found["variance of what batch normalisation gives"] == pytest.approx(1, abs=1e-4)
    assert found["variance if 1/(N − 1) were used"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["variance it remembers for later (with 1/(N − 1))"] == pytest.approx(2.3333, abs=1e-4)


def test_E38_pre_norm_grows_and_post_norm_does_not():
    assert number("norm-order", "std after the last layer, post") == pytest.approx(1, abs=0.01)
    deep, shallow = (number("norm-order", "std after the last layer, pre", depth=depth) for depth in (16, 4))
    assert deep > shallow > 1.2


def test_E49_length_of_a_patch():
    found = numbers("patch-length")
    assert found["length of a patch, P²·C"] == 768 and found["length as given, P·C"] == 48
    assert found["patches N = HW/P²"] == 196
    assert found["numbers in all patches"] == found["numbers of the image, H·W·C"] == 150_528
    assert number("patch-length", "length of a patch", height=12, width=20, patch=4, channels=5) == 80
    with pytest.raises(MiradaError, match="not whole patches"):
        run_demo("patch-length", {"patch": 15})


def test_B28_order():
    assert number("order-blindness", "largest difference") < 1e-5
    for position in ("sinusoidal", "rotary"):
        assert number("order-blindness", "largest difference", position=position) > 0.05


def test_H5_noam():
    found = numbers("noam")
    assert found["rate at step 1"] == pytest.approx(1.746928e-7, rel=1e-6)
    assert found["rate at step 100"] == pytest.approx(1.746928e-5, rel=1e-6)
    assert found["rate at step 100000"] == pytest.approx(1.397542e-4, rel=1e-6)
    assert number("noam", "rate at the end") == pytest.approx(6.987712e-4, rel=1e-6)
    assert found["step of the highest rate"] == 4000
    assert number("noam", "largest relative difference", dim=37, warmup=11) < 1e-12


def test_B22_swin():
    assert number("windows-cost", "Ω(MSA)") == 2_003_828_736
    assert number("windows-cost", "Ω(W-MSA)") == 145_108_992


def test_every_demo_says_all_in_both_languages_and_names_its_item():
    def texts(value: object) -> list[Text]:
        if isinstance(value, dict) and set(value) == {"en", "es"}:
            return [Text(**value)]
        children = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        return [text for child in children for text in texts(child)]

    for name, demo in DEMOS.items():
        assert demo.items and demo.given and all(item[0].isupper() and item[1:].isdigit() for item in demo.items), name
        described = {key: value for key, value in asdict(demo).items() if key != "run"}
        found = texts(described) + texts(asdict(run_demo(name)))
        assert len(found) > 5 and all(text.en and text.es for text in found), name


@pytest.mark.parametrize("name", DEMOS)
def test_every_demo_takes_the_ends_of_its_inputs_or_says_why_not(name):
    for one in DEMOS[name].inputs:
        for value in one.choices or (one.low, one.high):
            with suppress(MiradaError):
                answer = run_demo(name, {one.name: value})
                assert all(math.isfinite(number.value) for number in answer.numbers), (one.name, value)
                json.dumps([asdict(picture) for picture in answer.pictures], allow_nan=False)


@pytest.mark.parametrize(
    ("name", "inputs", "sentence"),
    [
        ("rotary", {}, "did you mean 'rotary-sign'"),
        ("grid", {"size": 3}, "no input 'size'"),
        ("grid", {"rows": 2}, "rows is 2: must be between 3 and 12"),
        ("grid", {"rows": 3.5}, "whole number"),
        ("grid", {"rows": math.nan}, "rows is nan"),
        ("grid", {"rows": "4"}, "rows is '4'"),
        ("order-blindness", {"position": "first"}, "must be one of none"),
        ("binary-code", {"position": 9, "num_bits": 3}, "needs more than 3 bits"),
    ],
)
def test_what_a_demo_cannot_do_is_said_in_a_sentence(name, inputs, sentence):
    with pytest.raises(MiradaError) as error:
        run_demo(name, inputs)
    assert sentence in str(error.value)
