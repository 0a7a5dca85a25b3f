"""Images and masks from folders and archives: which belong together, and what their pixels mean."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from tests.shapes import make_shapes

from mirada.data.masks.classes import IGNORED, MaskClasses, judged_of
from mirada.data.masks.table import is_masks, open_masks
from mirada.errors import MiradaError


def read(source, classes=None, ignore=None):
    return open_masks(source, classes=classes, ignore=ignore)


def save(path, array, mode=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array, mode).save(path) if mode else Image.fromarray(array).save(path)


@pytest.fixture
def folder(tmp_path):
    return make_shapes(tmp_path / "shapes", num=5)


def test_folders_of_images_and_masks(folder):
    assert is_masks(folder)
    table = read(folder)
    assert table.classes == MaskClasses((0, 1, 2), ("background", "1", "2"))
    assert len(table) == 5 and table.splits is None
    image, mask = table.read_image(3), table.read_mask(3)
    assert image.shape == (24, 32, 3) and mask.shape == (24, 32)
    assert set(np.unique(mask)) <= {0, 1, 2}
    assert table.pixels_NC[3].tolist() == np.bincount(mask.ravel(), minlength=3).tolist()


def test_names_of_classes_as_a_list_and_as_a_table(folder):
    assert read(folder, ["ground", "square", "disc"]).classes.names == ("ground", "square", "disc")
    (folder / "classes.csv").write_text("value,name\n0,background\n2,disc\n1,square\n")
    assert read(folder).classes == MaskClasses((0, 2, 1), ("background", "disc", "square"))


def test_splits_above_and_below(tmp_path):
    for split, num in (("train", 4), ("test", 2)):
        make_shapes(tmp_path / "above" / split, num=num)
        made = make_shapes(tmp_path / split, num=num, seed=num)
        for part in ("images", "masks"):
            (tmp_path / "below" / part).mkdir(parents=True, exist_ok=True)
            (made / part).rename(tmp_path / "below" / part / split)
    for layout in ("above", "below"):
        table = read(tmp_path / layout)
        assert sorted(table.splits) == ["test"] * 2 + ["train"] * 4, layout


def test_masks_beside_their_images(tmp_path, folder):
    together = tmp_path / "together"
    together.mkdir()
    for image in (folder / "images").iterdir():
        image.rename(together / image.name)
        (folder / "masks" / f"{image.stem}.png").rename(together / f"{image.stem}_mask.png")
    assert is_masks(together)
    assert len(read(together)) == 5


def test_a_folder_in_a_folder_and_other_names(tmp_path, folder):
    inner = tmp_path / "archive" / "archive"
    inner.mkdir(parents=True)
    (folder / "images").rename(inner / "imgs")
    (folder / "masks").rename(inner / "annotations")
    for mask in (inner / "annotations").iterdir():
        mask.rename(mask.with_name(f"{mask.stem}_Mask.png"))
    assert len(read(tmp_path / "archive")) == 5


def test_a_folder_per_class_holds_no_masks(tmp_path):
    save(tmp_path / "cat" / "a.png", np.zeros((4, 4), np.uint8))
    save(tmp_path / "dog" / "b.png", np.zeros((4, 4), np.uint8))
    assert not is_masks(tmp_path)


def test_archives(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (6, 9, 11, 3), dtype=np.uint8)
    masks = np.arange(6 * 9 * 11).reshape(6, 9, 11) % 2 == 0
    np.savez(tmp_path / "a.npz", images=images, masks=masks, ids=np.arange(6))
    assert is_masks(tmp_path / "a.npz")
    table = read(tmp_path / "a.npz")
    assert table.classes.names == ("background", "foreground")
    np.testing.assert_array_equal(table.read_mask(2), masks[2])
    np.savez(tmp_path / "b.npz", x_train=images, y_train=np.zeros(6))
    assert not is_masks(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", train_images=images, train_masks=masks, test_images=images, test_masks=masks)
    assert read(tmp_path / "c.npz").splits.tolist() == ["train"] * 6 + ["test"] * 6


def test_palettes_have_the_numbers_not_the_colours(folder):
    for path in (folder / "masks").iterdir():
        image = Image.open(path).convert("P")
        image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255] + [0] * 759)
        image.save(path)
    assert read(folder).classes.codes == (0, 1, 2)


COLOURS = np.array([(0, 0, 0), (255, 0, 0), (0, 0, 255)], np.uint8)
NAMED = {"#000000": "background", "#ff0000": "square", "#0000ff": "disc"}


def with_palette(path, order=(0, 1, 2)):
    """The same colours, under numbers in this order."""
    image = Image.fromarray(np.argsort(order).astype(np.uint8)[np.asarray(Image.open(path))]).convert("P")
    image.putpalette(COLOURS[list(order)].ravel().tolist())
    image.save(path)


def test_a_palette_has_the_colours_where_classes_are_colours(folder):
    expected = [read(folder).read_mask(row) for row in range(5)]
    for path in sorted((folder / "masks").iterdir()):
        with_palette(path, (2, 0, 1))
    table = read(folder, NAMED)
    assert table.pixels_NC.tolist() == [np.bincount(mask.ravel(), minlength=3).tolist() for mask in expected]
    for row in range(5):
        np.testing.assert_array_equal(table.read_mask(row), expected[row])


def test_palettes_among_colours(folder):
    expected = [read(folder).read_mask(row) for row in range(5)]
    for number, path in enumerate(sorted((folder / "masks").iterdir())):
        if number % 2:
            with_palette(path, (1, 2, 0))
        else:
            save(path, COLOURS[np.asarray(Image.open(path))])
    for table in (read(folder), read(folder, NAMED)):
        assert set(table.classes.codes) == {0, 0xFF0000, 0x0000FF}
        number_of = np.array([table.classes.codes.index(code) for code in (0, 0xFF0000, 0x0000FF)])
        for row in range(5):
            np.testing.assert_array_equal(table.read_mask(row), number_of[expected[row]])


def test_colours_found_and_named(folder):
    colours = np.array([(0, 0, 0), (255, 0, 0), (0, 0, 255)], np.uint8)
    for path in (folder / "masks").iterdir():
        save(path, colours[np.asarray(Image.open(path))])
    table = read(folder)
    assert table.classes.names == ("background", "#0000ff", "#ff0000") and table.classes.are_colours
    named = read(folder, {"#000000": "background", "255,0,0": "square", "#0000FF": "disc"})
    assert named.classes.codes == (0, 0xFF0000, 0x0000FF)
    (folder / "class_dict.csv").write_text("name,r,g,b\nbackground,0,0,0\nsquare,255,0,0\ndisc,0,0,255\n")
    assert read(folder).classes == named.classes


def test_255_is_a_border_beside_others_and_foreground_alone(folder):
    for path in (folder / "masks").iterdir():
        mask = np.array(Image.open(path))
        mask[0] = 255
        save(path, mask)
    table = read(folder)
    assert table.classes.ignored == (255,) and "border" in table.notes[0]
    assert (table.read_mask(0)[0] == IGNORED).all()
    assert table.ignored_N.tolist() == [32] * 5
    for path in (folder / "masks").iterdir():
        save(path, ((np.array(Image.open(path)) > 1) * 255).astype(np.uint8))
    assert read(folder).classes == MaskClasses((0, 255), ("background", "foreground"))


def test_a_code_can_be_ignored(folder):
    table = read(folder, ignore=[2])
    assert table.classes.names == ("background", "foreground")
    assert (table.read_mask(0) == IGNORED).any()


def test_a_code_with_a_name_can_be_ignored(folder):
    mask = np.array(Image.open(folder / "masks" / "00.png"))
    mask[0] = 255
    save(folder / "masks" / "00.png", mask)
    table = read(folder, {0: "background", 1: "square", 2: "disc", 255: "void"}, [255])
    assert table.classes == MaskClasses((0, 1, 2), ("background", "square", "disc"), (255,))
    assert (table.read_mask(0)[0] == IGNORED).all()


def test_255_is_a_border_where_a_list_has_no_name_for_it(folder):
    mask = np.array(Image.open(folder / "masks" / "00.png"))
    mask[0] = 255
    save(folder / "masks" / "00.png", mask)
    assert read(folder, ["ground", "square", "disc"]).classes.ignored == (255,)
    assert read(folder, ["ground", "square", "disc", "void"]).classes.ignored == ()
    assert "names 2 classes, but the masks have 4" in refused(folder, classes=["ground", "square"])


def test_masks_one_folder_further_in(folder):
    """As Oxford Pets has them: images/ and annotations/trimaps/."""
    (folder / "masks").rename(folder / "trimaps")
    (folder / "annotations").mkdir()
    (folder / "trimaps").rename(folder / "annotations" / "trimaps")
    (folder / "annotations" / "xmls").mkdir()
    assert is_masks(folder) and len(read(folder)) == 5


# --- what cannot be used ---


def refused(folder, **options) -> str:
    with pytest.raises(MiradaError) as caught:
        read(folder, **options)
    return str(caught.value)


def test_a_mask_of_another_size(folder):
    save(folder / "masks" / "02.png", np.zeros((24, 31), np.uint8))
    assert "02.png: is 31 x 24 pixels, but its image 02.jpg is 32 x 24" in refused(folder)


def test_a_missing_mask(folder):
    (folder / "masks" / "03.png").unlink()
    said = refused(folder)
    assert "03.jpg: has no mask" in said and "1 of 5 images" in said


def test_an_unknown_colour_and_an_unknown_number(folder):
    said = refused(folder, classes={"0": "ground", "1": "square"})
    assert "pixels have 2, which is no class (0, 1)" in said and "data.ignore" in said
    save(folder / "masks" / "01.png", np.full((24, 32, 3), (9, 8, 7), np.uint8))
    assert "#090807" in refused(folder, classes={"#000000": "ground", "#010101": "a", "#020202": "b"})


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (np.ones((24, 32), np.uint16), "more than 8 bits"),
        (np.ones((24, 32), np.int32), "more than 8 bits"),
        (np.ones((24, 32), np.float32), "decimal numbers"),
    ],
)
def test_masks_of_16_bits_and_of_decimal_numbers(folder, made, said):
    name = "02.png" if made.dtype == np.uint16 else "02.tif"
    (folder / "masks" / "02.png").unlink()
    save(folder / "masks" / name, made)
    found = refused(folder)
    assert said in found and name in found and "8-bit PNG" in found


def test_a_mask_of_which_nothing_counts(folder):
    save(folder / "masks" / "04.png", np.full((24, 32), 255, np.uint8))
    assert "04.jpg: its mask has only pixels that count for nothing (1 of 5 masks)" in refused(folder)


def test_masks_with_one_class_or_with_far_too_many(folder):
    for path in (folder / "masks").iterdir():
        save(path, np.zeros((24, 32), np.uint8))
    assert "show 1 class (0)" in refused(folder)
    for path in (folder / "masks").iterdir():
        save(path, np.random.default_rng(0).integers(0, 200, (24, 32), dtype=np.uint8))
    assert "JPEG" in refused(folder)


def test_archives_that_do_not_fit(tmp_path):
    images = np.zeros((3, 5, 7, 3), np.uint8)
    for masks, said in (
        (np.zeros((3, 5, 6), np.uint8), "a mask has the size of its image"),
        (np.zeros((3, 5, 7), np.float32), "whole numbers"),
        (np.full((3, 5, 7), 300), "0 to 255"),
        (np.zeros((3, 5, 7, 3), np.uint8), "expected (N, height, width)"),
    ):
        np.savez(tmp_path / "a.npz", images=images, masks=masks)
        assert said in refused(tmp_path / "a.npz")


@pytest.mark.parametrize("classes", [["a", "b"], {"x": "a"}])
def test_names_that_do_not_fit(folder, classes):
    assert "data.classes" in refused(folder, classes=classes)


def test_a_table_of_classes_without_names(folder):
    (folder / "classes.csv").write_text("id,title\n0,a\n")
    assert "classes.csv: has the columns id, title" in refused(folder)


def test_a_mask_of_greys_among_colours(folder):
    colours = np.array([(255, 255, 255), (255, 0, 0), (0, 0, 255)], np.uint8)
    for path in (folder / "masks").iterdir():
        save(path, colours[np.asarray(Image.open(path))])
    save(folder / "masks" / "02.png", np.full((24, 32), 255, np.uint8))
    table = read(folder, {"#ffffff": "background", "#ff0000": "square", "#0000ff": "disc"})
    assert not table.read_mask(2).any() and table.read_mask(1).any()


@pytest.mark.parametrize("codes", [("#000000", "#010101", "#020202"), ("0,0,0", "1,1,1", "2,2,2")])
def test_colours_may_name_greys(folder, codes):
    named = read(folder, dict(zip(codes, ("background", "square", "disc"), strict=True)))
    plain = read(folder, {0: "background", 1: "square", 2: "disc"})
    np.testing.assert_array_equal(named.read_mask(1), plain.read_mask(1))
    assert "which is no class" in refused(folder, classes={"#ff0000": "square"})


def test_255_counts_if_nothing_is_to_be_ignored(folder):
    mask = np.array(Image.open(folder / "masks" / "00.png"))
    mask[0] = 255
    save(folder / "masks" / "00.png", mask)
    assert read(folder, ignore=None).classes.ignored == (255,)
    assert read(folder, ignore=()).classes.names == ("background", "1", "2", "255")


def test_a_split_without_masks_is_not_used(tmp_path):
    make_shapes(tmp_path / "train", num=4)
    (tmp_path / "test" / "images").mkdir(parents=True)
    save(tmp_path / "test" / "images" / "a.png", np.zeros((4, 4), np.uint8))
    assert is_masks(tmp_path)
    table = read(tmp_path)
    assert len(table) == 4 and "has no folder of masks" in table.notes[0]


def test_images_that_end_as_masks_do(folder):
    for path in [*(folder / "images").iterdir(), *(folder / "masks").iterdir()]:
        path.rename(path.with_name(f"{path.stem}_gt{path.suffix}"))
    assert len(read(folder)) == 5


def test_masks_turn_as_their_images_do(folder):
    """Both say that they are to be shown upside down."""
    before = read(folder).read_mask(1)
    exif = Image.Exif()
    exif[0x0112] = 3
    for path in (folder / "images" / "01.jpg", folder / "masks" / "01.png"):
        with Image.open(path) as image:
            image.load()
            image.save(path, exif=exif)
    np.testing.assert_array_equal(read(folder).read_mask(1), before[::-1, ::-1])


def test_damaged_files(folder):
    (folder / "classes.csv").write_text("value,name\n0,background,what\n1,square\n2,disc\n")
    assert read(folder).classes.names == ("background", "square", "disc")
    (folder / "masks" / "02.png").unlink()
    (folder / "masks" / "02.npy").write_bytes(b"no array")
    assert "02.npy: cannot be read" in refused(folder)


def test_names_must_differ_and_the_background_may_have_a_capital(folder):
    assert "two classes are called 'a'" in refused(folder, classes=["a", "b", "a"])
    assert judged_of(read(folder, ["Background", "a", "b"]).classes.names) == (1, 2)


def test_no_images_beside_masks(folder):
    for image in (folder / "images").iterdir():
        image.unlink()
    assert "images: has no images, expected one for each mask" in refused(folder)


def test_what_is_ignored_is_blamed_on_the_right_setting(folder):
    assert "data.ignore: 'x' names no code" in refused(folder, ignore=["x"])
    assert "data.classes: 'x' names no code" in refused(folder, classes={"x": "a"})
    assert "count for nothing, as data.ignore has 0, 1, 2" in refused(folder, ignore=[0, 1, 2])


def test_colours_of_16_bits(folder):
    """Pillow opens such a PNG as one of 8 bits."""
    mask = folder / "masks" / "02.png"
    mask.write_bytes(png_of_16_bits(24, 32))
    with Image.open(mask) as opened:
        assert opened.mode == "RGB"
    said = refused(folder)
    assert "02.png: is a mask of more than 8 bits (RGB)" in said and "8-bit PNG" in said


def png_of_16_bits(height: int, width: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(6 * width)) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
