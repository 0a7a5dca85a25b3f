"""Batches: a pure function of seed, epoch and step; the same from memory and from a stream."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from mirada.data import (
    STRENGTHS,
    Augmentation,
    ImageShape,
    ImageTable,
    Normalisation,
    StreamedImages,
    TrainBatches,
    evaluation_batches,
    load_images,
    make_split,
    open_images,
    open_source,
)
from mirada.data.order import balanced_weights, epoch_order
from mirada.errors import MiradaError

NORMAL = Normalisation((0.5,), (0.25,))


@pytest.fixture(scope="module")
def digits():
    return load_images(open_source("digits"))


def batches_of(store, rows=None, **options) -> TrainBatches:
    rows = np.arange(len(store)) if rows is None else rows
    settings = {"batch_size": 64, "normalisation": NORMAL, "augmentation": STRENGTHS["strong"], "seed": 5, **options}
    return TrainBatches(store, rows, **settings)


def assert_same(first, second):
    assert len(first) == len(second) > 0
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.inputs, other.inputs)
        assert torch.equal(one.targets, other.targets)
        assert torch.equal(one.rows, other.rows)


def test_an_epoch_is_a_shuffle(digits):
    rows = np.arange(10, 1000)
    batches = batches_of(digits, rows, batch_size=99, augmentation=Augmentation())
    seen = [torch.cat([batch.rows for batch in batches]) for _ in range(2)]
    for epoch in seen:
        assert epoch.sort()[0].tolist() == rows.tolist()
    assert not torch.equal(*seen)
    assert batches.epoch == 2
    batch = batches.batch(0, 3)
    assert torch.allclose(batch.inputs, (digits.images[batch.rows] / 255 - 0.5) / 0.25, atol=1e-6)
    assert torch.equal(batch.targets, torch.from_numpy(digits.table.targets)[batch.rows])


@pytest.mark.parametrize("balanced", [False, True])
def test_restore_in_the_middle_of_an_epoch_is_exact(digits, balanced):
    straight = batches_of(digits, balanced=balanced)
    whole = [batch for _ in range(2) for batch in straight]
    stopped = batches_of(digits, balanced=balanced)
    for step, _ in enumerate(stopped):
        if step == 10:
            break
    saved = pickle.loads(pickle.dumps(stopped.state_dict()))
    assert (saved["epoch"], saved["step"]) == (0, 11)
    resumed = batches_of(digits, balanced=balanced)
    resumed.load_state_dict(saved)
    rest = [batch for _ in range(2) for batch in resumed]
    assert_same(whole[11:], rest)
    assert_same([straight.batch(1, 4)], [whole[len(straight) + 4]])


def test_small_images_are_augmented_several_batches_at_a_time(digits, monkeypatch):
    monkeypatch.setattr("mirada.data.batches.VALUES_AT_ONCE", 5 * 64 * 8 * 8)
    straight = batches_of(digits)
    assert straight.group == 5 and len(straight) == 28  # so that the last group is not full
    whole = list(straight)
    for begin in (0, 4, 5, 26, 27):
        resumed = batches_of(digits)
        resumed.step = begin
        assert_same(whole[begin:], list(resumed))
        assert_same([whole[begin]], [resumed.batch(0, begin)])
    large = batches_of(digits, batch_size=1000)
    assert large.group == 1 and [len(batch.rows) for batch in large] == [1000]


def test_position_at_the_end_of_an_epoch(digits):
    batches = batches_of(digits)
    for _ in batches:
        saved = batches.state_dict()
    assert saved["step"] == len(batches)
    resumed = batches_of(digits)
    resumed.load_state_dict(saved)
    assert list(resumed) == []
    assert (resumed.epoch, resumed.step) == (1, 0)


def test_position_of_another_run_is_refused(digits):
    saved = batches_of(digits).state_dict()
    for other in ({"seed": 6}, {"batch_size": 32}, {"balanced": True}):
        with pytest.raises(MiradaError, match="keep it the same"):
            batches_of(digits, **other).load_state_dict(saved)


def test_global_random_state_does_not_matter(digits):
    torch.manual_seed(1)
    first = batches_of(digits).batch(3, 2)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    assert_same([first], [batches_of(digits).batch(3, 2)])
    assert torch.equal(state, torch.get_rng_state())
    assert not torch.equal(first.inputs, batches_of(digits, seed=6).batch(3, 2).inputs)


def test_small_sets_give_one_incomplete_batch(digits):
    batches = batches_of(digits, np.arange(7))
    assert [len(batch.rows) for batch in batches] == [7]
    with pytest.raises(MiradaError, match="no training images"):
        batches_of(digits, np.arange(0))
    with pytest.raises(MiradaError, match="batch_size is 0"):
        batches_of(digits, batch_size=0)


def test_balanced_order_by_hand():
    targets = torch.tensor([0] * 90 + [1] * 10)
    order = epoch_order(100, 0, 0, balanced_weights(targets))
    assert (targets[order] == 1).sum() == 50
    counts = torch.bincount(order, minlength=100)
    assert set(counts[90:].tolist()) == {5}
    assert set(counts[:90].tolist()) == {0, 1}
    assert not torch.equal(order, epoch_order(100, 0, 1, balanced_weights(targets)))


def test_balanced_weights_of_other_tasks():
    labels = torch.tensor([[1.0, 0], [1, 0], [1, 1], [0, 0]])
    assert balanced_weights(labels).tolist() == [1 / 3, 1 / 3, 1, 1 / 4]
    with pytest.raises(MiradaError, match="regression"):
        balanced_weights(torch.tensor([[0.3], [2.0]]))


def test_evaluation_sees_every_row_once_in_order(digits):
    rows = np.arange(1797)[::-3].copy()
    found = list(evaluation_batches(digits, rows, batch_size=100, normalisation=NORMAL))
    assert torch.cat([batch.rows for batch in found]).tolist() == rows.tolist()
    assert len(found[-1].rows) == len(rows) % 100
    assert list(evaluation_batches(digits, [], batch_size=10, normalisation=NORMAL)) == []


def test_multi_label_and_regression_targets_pass_through():
    pixels = np.zeros((6, 4, 4, 1), np.uint8)
    for task, targets, names in (
        ("multi-label", np.eye(6, 3, dtype=np.float32), ("a", "b", "c")),
        ("regression", np.arange(6, dtype=np.float32)[:, None], ()),
    ):
        store = load_images(ImageTable("x", "npz", task, targets, names, pixels=pixels))
        batch = batches_of(store, batch_size=6, augmentation=Augmentation()).batch(0, 0)
        assert torch.equal(batch.targets, torch.from_numpy(targets)[batch.rows])
        assert batches_of(store, batch_size=6).batch(0, 0).targets.shape == targets.shape


# Streaming

SHAPE = ImageShape((8, 9), 3, "test")


@pytest.mark.parametrize("workers", [0, 2])
def test_stream_equals_memory(class_folders, workers):
    table = open_source(class_folders)
    memory = load_images(table, SHAPE)
    stream = open_images(table, SHAPE, workers=workers, memory_limit=0)
    assert isinstance(stream, StreamedImages)
    rows = np.arange(12)
    assert stream.normalisation(rows) == memory.normalisation(rows)
    normal = memory.normalisation(rows)
    both = [batches_of(store, rows, batch_size=4, normalisation=normal) for store in (memory, stream)]
    for _ in range(2):
        assert_same(list(both[0]), list(both[1]))
    resumed = batches_of(stream, rows, batch_size=4, normalisation=normal)
    resumed.load_state_dict({**resumed.state_dict(), "epoch": 1, "step": 1})
    assert_same(list(resumed), [both[0].batch(1, 1), both[0].batch(1, 2)])
    evaluated = [list(evaluation_batches(s, rows, batch_size=5, normalisation=normal)) for s in (memory, stream)]
    assert_same(*evaluated)


def test_an_evaluation_in_the_middle_of_a_streamed_epoch_changes_nothing(class_folders):
    table, rows = open_source(class_folders), np.arange(12)
    stream = open_images(table, SHAPE, workers=2, memory_limit=0)
    normal = stream.normalisation(rows)
    batches = batches_of(stream, rows, batch_size=1, normalisation=normal)
    batches.group = 1  # as of images too large to be augmented together
    seen = []
    for number, batch in enumerate(batches):
        seen.append(batch.rows.item())
        if number in (3, 7):
            assert len(list(evaluation_batches(stream, rows, batch_size=5, normalisation=normal))) == 3
    assert sorted(seen) == rows.tolist() and (batches.epoch, batches.step) == (1, 0)
    assert len(stream._resting) == 2  # and no more are ever started


def test_broken_images_in_a_stream(class_folders):
    (class_folders / "cat" / "3.png").write_text("broken")
    (class_folders / "cat" / "4.png").unlink()
    (class_folders / "cat" / "4.png").symlink_to(class_folders / "nowhere")
    table = open_source(class_folders)
    stream = StreamedImages(table, SHAPE, workers=0)
    normal = Normalisation((0.5,) * 3, (1.0,) * 3)
    found = list(evaluation_batches(stream, np.arange(12), batch_size=2, normalisation=normal))
    assert torch.cat([batch.rows for batch in found]).tolist() == [0, 1, 2, 5, 6, 7, 8, 9, 10, 11]
    assert [broken.name[-5:] for broken in stream.broken] == ["3.png", "4.png"]
    assert stream.hashes()[4] is None
    strict = StreamedImages(table, SHAPE, workers=0, on_broken="error")
    with pytest.raises(MiradaError, match=r"3\.png"):
        list(strict.fetch([torch.arange(12)]))


def test_training_goes_on_past_broken_images(class_folders):
    for name in ("3.png", "4.png"):
        (class_folders / "cat" / name).write_text("broken")
    stream = StreamedImages(open_source(class_folders), SHAPE, workers=0)
    batches = TrainBatches(stream, np.arange(12), batch_size=1, normalisation=Normalisation((0.5,) * 3, (1.0,) * 3))
    assert batches.group > 1
    order = epoch_order(12, 0, 0).tolist()
    assert [batch.rows.item() for batch in batches] == [row for row in order if row not in (3, 4)]
    assert (batches.epoch, batches.step) == (1, 0)
    with pytest.raises(MiradaError, match="no image of batch"):
        batches.batch(0, order.index(3))


def test_stream_can_be_sent_to_another_process(class_folders):
    stream = StreamedImages(open_source(class_folders), SHAPE, workers=0)
    again = pickle.loads(pickle.dumps(stream._new_loader().dataset))
    assert again[0][0] == 0


def test_memory_or_stream_is_decided_by_bytes(class_folders):
    table = open_source(class_folders)
    needed = 12 * 3 * 8 * 9
    assert not isinstance(open_images(table, SHAPE, memory_limit=needed), StreamedImages)
    assert isinstance(open_images(table, SHAPE, memory_limit=needed - 1, workers=0), StreamedImages)


@pytest.mark.parametrize("workers", [1, 3])
def test_loading_does_not_depend_on_workers(class_folders, workers):
    seen = []
    table = open_source(class_folders)
    loaded = load_images(table, SHAPE, workers=workers, progress=lambda done, total: seen.append((done, total)))
    assert torch.equal(loaded.images, load_images(table, SHAPE, workers=2).images)
    assert seen[-1] == (12, 12)
    assert len(set(loaded.hashes())) == 12


def test_from_folder_to_batches(class_folders):
    store = open_images(open_source(class_folders))
    split = make_split(store.table, hashes=store.hashes())
    batches = TrainBatches(store, split.train, batch_size=4, normalisation=store.normalisation(split.train))
    for batch in batches:
        assert batch.inputs.shape == (4, 3, 11, 13)
        assert set(batch.rows.tolist()) <= set(split.train.tolist())


def test_importing_the_package_does_not_import_torch():
    code = "import sys, mirada.data as d; d.inspect; d.render; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
