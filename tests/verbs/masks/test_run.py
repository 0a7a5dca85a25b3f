"""From a folder of images and masks to a trained, judged and used model."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import mirada
from mirada.cli.app import app
from mirada.errors import MiradaError
from mirada.tasks.judged_masks import JudgedMasks
from mirada.train.folder import RunFolder
from mirada.verbs.held_out import held_out_pixels, num_held_out
from mirada.verbs.looks import look_at_image
from mirada.verbs.masks.output import polygons_of
from mirada.verbs.masks.trained import masks_run
from tests.shapes import TINY, make_shapes, run, shapes, tiled_run


def on_command_line(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(word) for word in words])
    return found.exit_code, found.output


def test_check_shows_the_imbalance():
    found = mirada.check(shapes())
    assert found.num_images == 24 and list(found.classes) == ["background", "1", "2"]
    shares = [share for share, _ in found.classes.values()]
    assert sum(shares) == pytest.approx(1) and shares[0] > 0.7
    code, said = on_command_line("check", shapes())
    assert code == 0 and "24 images with masks" in said and "ready to train" in said


def test_the_command_line_tells_what_it_does(tmp_path):
    code, said = on_command_line(
        "train", shapes(), *TINY, "--steps", 2, "--baseline", "none", "--out", tmp_path / "run"
    )
    assert code == 0 and "images" in said and "dice on" in said, said
    code, said = on_command_line("evaluate", tmp_path / "run")
    assert code == 0 and "dice 0." in said and "on 4 images" in said, said


def test_large_images_and_rare_classes_are_told(tmp_path):
    folder = make_shapes(tmp_path / "large", num=6, size=(500, 520))
    mask = np.array(Image.open(folder / "masks" / "00.png"))
    mask[0, 0] = 3
    Image.fromarray(mask).save(folder / "masks" / "00.png")
    warnings = " ".join(mirada.check(folder).warnings)
    assert "only 1 images show 3" in warnings and "data.fit=tile" in warnings


def test_a_run_is_whole():
    folder = RunFolder(run())
    result, data = folder.read_result(), folder.read_data()
    assert result["metric"] == "dice" and result["n"] == data["num_images"]["test"]
    assert result["low"] <= result["value"] <= result["high"]
    assert [row["name"] for row in result["per_class"]] == ["background", "1", "2"]
    assert folder.baseline.is_finished and folder.baseline.read_result()["system"] == "unet"
    masks = JudgedMasks.read(folder.masks)
    assert masks.predicted.shape == masks.targets.shape == (result["n"], *data["image_size"])
    report = folder.report.read_text(encoding="utf-8")
    for words in ("Class by class", "Worst cases", "Best cases", "attention of these places", "Dice"):
        assert words in report, words
    assert (folder.figures / "masks.png").exists()


def test_evaluating_again_gives_the_same_numbers(tmp_path):
    again = mirada.evaluate(run())
    assert again.result["value"] == pytest.approx(RunFolder(run()).read_result()["value"])
    other = mirada.evaluate(run(), make_shapes(tmp_path / "other", num=5, seed=9))
    assert other.result["n"] == 5 and "dice_1" in other.rows[0]
    with pytest.raises(MiradaError, match="holds no images with masks"):
        mirada.evaluate(run(), tmp_path / "other" / "images")


def test_images_without_objects_cannot_judge(tmp_path):
    blank = make_shapes(tmp_path / "blank", num=3, seed=9)
    for mask in (blank / "masks").iterdir():
        Image.new("L", (32, 24)).save(mask)
    with pytest.raises(MiradaError, match=r"blank: none of the 3 images shows 1, 2; give"):
        mirada.evaluate(run(), blank)


def test_resuming_ends_in_the_same_bits(tmp_path):
    from mirada.train.stopping import Stopped, StopRequest
    from mirada.verbs.stages import Watcher

    settings = [*TINY, "train.steps=6", "baseline.name=none"]
    whole = mirada.train(shapes(), settings=settings, out=tmp_path / "whole")
    request = StopRequest()

    class Stopping(Watcher):
        def advances(self, progress):
            if progress.step == 3:
                request.request()

    with pytest.raises(Stopped):
        mirada.train(shapes(), settings=settings, out=tmp_path / "stopped", watcher=Stopping(), stop=request)
    again = mirada.resume(tmp_path / "stopped")
    assert (again.best / "model.safetensors").read_bytes() == (whole.best / "model.safetensors").read_bytes()
    assert again.read_result()["value"] == whole.read_result()["value"]


def test_masks_of_new_images(tmp_path):
    new = make_shapes(tmp_path / "new", num=3, size=(48, 40), seed=4) / "images"
    (new / "broken.jpg").write_bytes(b"no image")
    code, said = on_command_line("segment", run(), new, "-o", tmp_path / "out", "--overlay")
    assert code == 2 and "broken.jpg" in said and "background" in said
    with Image.open(tmp_path / "out" / "01.png") as mask:
        assert mask.mode == "P" and mask.size == (40, 48)
        np.testing.assert_array_equal(np.asarray(mask), masks_run(run()).segment(str(new / "01.jpg")))
    with Image.open(tmp_path / "out" / "01-overlay.png") as overlay:
        assert overlay.size == (40, 48)


def test_predict_gives_shares():
    rows = mirada.predict(run(), str(shapes() / "images" / "00.jpg"))
    assert sum(value for key, value in rows[0].items() if key.startswith("share_")) == pytest.approx(1, abs=1e-5)
    assert mirada.load(run()).predict(str(shapes() / "images" / "00.jpg"))[0].keys() == {
        "share_background", "share_1", "share_2",
    }  # fmt: skip


def test_tiles_are_segmented_as_they_are(tmp_path):
    trained = masks_run(tiled_run())
    assert trained.data["fit"] == "tile"
    image = np.random.default_rng(0).integers(0, 256, (61, 45, 3), dtype=np.uint8)
    mask = trained.segment(image)
    assert mask.shape == (61, 45) and mask.max() < 3
    assert trained.segment(image[:9, :7]).shape == (9, 7)


def test_tiles_are_explained_and_looked_at(tmp_path):
    image = shapes() / "images" / "00.jpg"
    with Image.open(image) as opened:
        pixels = np.asarray(opened)
    (item,) = mirada.explain(tiled_run(), image, method="chefer").items
    np.testing.assert_array_equal(item.picture_HWC, pixels[4:20, 8:24])
    looked = look_at_image(mirada.load(tiled_run()), "a", pixels[:9, :7], method=["chefer"])
    np.testing.assert_array_equal(looked.given[:, :9, :7].transpose(1, 2, 0), pixels[:9, :7])
    assert looked.given.shape == (3, 16, 16) and not looked.given[:, 9:].any() and not looked.given[:, :, 7:].any()


def test_held_out_tiles_are_shown_again():
    for index in (0, 5):
        name, pixels = held_out_pixels(RunFolder(tiled_run()), index)
        path, _, corner = name.rpartition(" (")
        top, left = (int(number) for number in corner.rstrip(")").split(", "))
        with Image.open(path) as whole:
            np.testing.assert_array_equal(pixels, np.asarray(whole)[top : top + 16, left : left + 16])


@pytest.mark.parametrize("fit", ["squash", "tile"])
def test_held_out_images_of_an_archive_that_needs_its_classes(tmp_path, fit):
    images = np.random.default_rng(0).integers(0, 256, (12, 24, 24, 3), dtype=np.uint8)
    codes = images[..., 0] % 65  # more numbers than are taken as classes
    np.savez(tmp_path / "a.npz", images=images, masks=codes)
    named = ", ".join(f"{code}: c{code}" for code in range(65))
    settings = [*TINY, f"data.classes={{{named}}}", f"data.fit={fit}", "data.image_size=[16,16]", "train.steps=1"]
    made = mirada.train(tmp_path / "a.npz", settings=[*settings, "baseline.name=none"], out=tmp_path / "run")
    num = num_held_out(made, "masks")
    name, pixels = held_out_pixels(made, num - 1)
    assert pixels.shape == (16, 16, 3)
    if fit == "tile":
        row, top, left = map(int, re.findall(r"\d+", name))
        np.testing.assert_array_equal(pixels, images[row, top : top + 16, left : left + 16])


def test_a_geotiff_stays_where_it_lies(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    from rasterio.transform import from_origin

    pixels = np.random.default_rng(1).integers(0, 256, (3, 40, 50), dtype=np.uint8)
    place = {"crs": "EPSG:32630", "transform": from_origin(500000, 4500000, 10, 10)}
    with rasterio.open(
        tmp_path / "field.tif", "w", driver="GTiff", width=50, height=40, count=3, dtype="uint8", **place
    ) as file:
        file.write(pixels)
    for folder in (run(), tiled_run()):
        (done,) = mirada.segment(folder, str(tmp_path / "field.tif"), tmp_path / "out", polygons=True)
        assert [path.name for path in done.files] == ["field.tif", "field.geojson"]
        with rasterio.open(done.files[0]) as made:
            assert made.crs.to_epsg() == 32630 and made.transform == place["transform"] and made.shape == (40, 50)
            assert made.tags(1)["class_0"] == "background"
            expected = masks_run(folder).segment(pixels.transpose(1, 2, 0))
            np.testing.assert_array_equal(made.read(1), expected)
        outlines = json.loads(done.files[1].read_text())
        lons = [point[0] for feature in outlines["features"] for point in feature["geometry"]["coordinates"][0]]
        assert all(-3.01 < lon < -2.99 for lon in lons)


def test_outlines_that_have_no_degrees(tmp_path):
    """Ten thousand kilometres from where its projection is meant for."""
    rasterio = pytest.importorskip("rasterio")
    from rasterio.transform import from_origin

    profile = {"crs": rasterio.CRS.from_epsg(3035), "transform": from_origin(1e9, 1e9, 10, 10)}
    with pytest.raises(MiradaError, match=r"its outlines cannot be given in degrees .*; leave --polygons out"):
        polygons_of(np.ones((4, 4), np.uint8), ["background", "field"], profile)


def test_every_image_that_has_no_mask_is_named(tmp_path):
    np.save(tmp_path / "six.npy", np.zeros((9, 9, 6), np.uint8))
    image = shapes() / "images" / "00.jpg"
    code, said = on_command_line("segment", run(), tmp_path / "six.npy", image, "-o", tmp_path / "out")
    assert code == 2 and "six.npy: an image has 6 channels where 3 are expected" in said
    rows = mirada.load(run()).rows([str(tmp_path / "six.npy"), str(image)])
    assert "six.npy: an image has 6 channels" in rows[0]["error"] and rows[1]["error"] is None


def test_rasters_are_read_as_images_are(tmp_path):
    """Of 16 bits, with one band, with transparency: as Pillow's decoder has it, whichever way it comes in."""
    rasterio = pytest.importorskip("rasterio")
    from rasterio.transform import from_origin

    place = {"crs": "EPSG:32630", "transform": from_origin(500000, 4500000, 10, 10), "driver": "GTiff"}
    generator = np.random.default_rng(2)
    for name, bands, dtype in (("grey", 1, "uint16"), ("alpha", 4, "uint8"), ("one", 1, "uint8")):
        pixels = generator.integers(0, np.iinfo(dtype).max, (bands, 24, 32)).astype(dtype)
        path = tmp_path / f"{name}.tif"
        with rasterio.open(path, "w", width=32, height=24, count=bands, dtype=dtype, **place) as file:
            file.write(pixels)
        (done,) = mirada.segment(run(), str(path), tmp_path / "out")
        with rasterio.open(done.files[0]) as made:
            np.testing.assert_array_equal(made.read(1), masks_run(run()).segment(str(path)), err_msg=name)
    whole = (tmp_path / "grey.tif").read_bytes()
    (tmp_path / "cut.tif").write_bytes(whole[: len(whole) // 2])
    (bad, good) = mirada.segment(run(), [str(tmp_path / "cut.tif"), str(tmp_path / "one.tif")], tmp_path / "more")
    assert "cut.tif" in bad.error and good.error is None


def test_an_exported_model_is_evaluated(tmp_path):
    mirada.export(run(), to="safetensors", out=tmp_path / "exported")
    other = make_shapes(tmp_path / "other", num=4, seed=9)
    assert mirada.evaluate(tmp_path / "exported", other).result["n"] == 4


def test_tiles_of_one_image_are_one_witness():
    folder = RunFolder(tiled_run())
    data, result = folder.read_data(), folder.read_result()
    assert sum(data["num_images"].values()) == 24 and result["n"] == data["num_images"]["test"]


def test_what_segment_refuses(tmp_path):
    from tests.verbs.trained_run import run as classifier

    image = shapes() / "images" / "00.jpg"
    with pytest.raises(MiradaError, match="was not trained on masks"):
        mirada.segment(classifier(), str(image), tmp_path)
    (tmp_path / "twice").mkdir()
    shutil.copy(image, tmp_path / "twice" / "00.jpg")
    with pytest.raises(MiradaError, match="two images are called 00"):
        mirada.segment(run(), [str(image), str(tmp_path / "twice" / "00.jpg")], tmp_path / "out")
    with pytest.raises(MiradaError, match="none of 1 images has a mask"):
        mirada.segment(run(), str(tmp_path / "missing.png"), tmp_path / "out")
    png = tmp_path / "a.png"
    Image.new("RGB", (9, 9)).save(png)
    with pytest.raises(MiradaError, match="is the image itself"):
        mirada.segment(run(), str(png), tmp_path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["data.task=segment"], "holds no masks"),
        (["data.classes=[a,b]"], "names 2 classes, but the masks have 3"),
        (["system.name=vit"], "takes images, but"),
        (["train.batch_size=1"], "two at a time"),
        (["system.arguments.decoder_widths=[8,8,4]"], "must be 4 numbers"),
    ],
)
def test_what_train_refuses(tmp_path, settings, words):
    source = shapes()
    if "data.task=segment" in settings:
        source = tmp_path / "plain"
        (source / "a").mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(source / "a" / "x.png")
    with pytest.raises(MiradaError, match=words):
        mirada.train(source, settings=settings, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_too_few_images_and_nothing_but_background(tmp_path):
    with pytest.raises(MiradaError, match="too few images to hold some out"):
        mirada.train(make_shapes(tmp_path / "two", num=2), settings=[*TINY], out=tmp_path / "run")
    folder = make_shapes(tmp_path / "blank", num=12)
    for mask in sorted((folder / "masks").iterdir())[2:]:
        Image.new("L", (32, 24)).save(mask)
    with pytest.raises(MiradaError, match="shows 1, 2"):
        mirada.train(folder, settings=[*TINY], out=tmp_path / "run")


def test_thirteen_bands_are_too_many_for_jpeg_but_not_for_an_archive(tmp_path):
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (12, 16, 16, 13), dtype=np.uint8)
    np.savez(tmp_path / "bands.npz", images=images, masks=images[..., 0] > 128)
    made = mirada.train(tmp_path / "bands.npz", settings=[*TINY, "train.steps=1", "baseline.name=none"],
                        out=tmp_path / "run")  # fmt: skip
    assert made.read_data()["in_channels"] == 13
    assert torch.isfinite(torch.tensor(made.read_result()["loss"]))
