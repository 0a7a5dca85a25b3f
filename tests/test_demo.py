"""`make demo` in a few seconds: it learns, says so as it goes, and draws."""

import pytest
import torch
from PIL import Image

from mirada import demo
from mirada.core import record


@pytest.fixture(scope="module")
def two_blocks():
    torch.manual_seed(0)
    return demo.DigitsModel(dim=12, depth=2, num_heads=3)


def test_demo_learns_reports_and_draws(tmp_path, capsys):
    accuracy = demo.main(tmp_path / "new", epochs=6)
    printed = capsys.readouterr().out
    picture = tmp_path / "new" / "attention.png"
    assert accuracy > 0.9
    assert printed.count("epoch") == 6
    assert f"test accuracy {accuracy:.1%}" in printed
    assert f"where it looks: {picture}" in printed
    with Image.open(picture) as image:
        assert image.width > 1000 and image.getextrema()[0][0] < 50


def test_train_and_test_digits_are_apart():
    train, train_labels, test, test_labels = demo.load_digits()
    assert train.shape == (1347, 8, 8) and test.shape == (450, 8, 8)
    assert (len(train_labels), len(test_labels)) == (1347, 450)
    assert 0 <= train.min() and train.max() == 1
    assert set(test_labels.tolist()) == set(range(10))


def test_model_has_a_class_token_and_one_token_per_pixel(two_blocks):
    with record(two_blocks) as maps:
        assert two_blocks(torch.rand(5, 8, 8)).shape == (5, 10)
    assert len(maps) == 2
    assert maps[-1].shape == (5, 3, 65, 65)
    torch.testing.assert_close(maps[-1].sum(-1), torch.ones(5, 3, 65))
