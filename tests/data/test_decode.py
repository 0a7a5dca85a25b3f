"""Every kind of image file has one defined result."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from mirada.data.decode import MAX_PIXELS, decode_image, read_header
from mirada.data.resize import fit_image, match_channels
from mirada.errors import MiradaError

GREY = np.arange(7 * 5, dtype=np.uint8).reshape(5, 7) * 7
RGB = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


def saved(image: Image.Image, file_format: str = "PNG", **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, file_format, **options)
    return stream.getvalue()


def huge_png(side: int) -> bytes:
    """A valid 1-bit PNG of side x side zeros; a few kilobytes."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes((side // 8 + 1) * side), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_grey_and_rgb_are_exact():
    np.testing.assert_array_equal(decode_image(saved(Image.fromarray(GREY))), GREY[..., None])
    np.testing.assert_array_equal(decode_image(saved(Image.fromarray(RGB))), RGB)


def test_one_bit():
    bits = Image.fromarray(GREY).point(lambda v: 255 * (v > 100)).convert("1")
    np.testing.assert_array_equal(decode_image(saved(bits))[..., 0], np.where(GREY > 100, 255, 0))


@pytest.mark.parametrize("file_format", ["PNG", "TIFF"])
def test_sixteen_bits_are_divided_by_257(file_format):
    deep = np.array([[0, 128, 129, 257], [32768, 65406, 65407, 65535]], dtype=np.uint16)
    expected = [[0, 0, 1, 1], [128, 254, 255, 255]]
    np.testing.assert_array_equal(decode_image(saved(Image.fromarray(deep), file_format))[..., 0], expected)


def test_float_tiff():
    unit = np.array([[0.0, 0.5, 1.0]], dtype=np.float32)
    assert decode_image(saved(Image.fromarray(unit), "TIFF"))[0, :, 0].tolist() == [0, 128, 255]
    assert decode_image(saved(Image.fromarray(unit * 200), "TIFF"))[0, :, 0].tolist() == [0, 100, 200]
    for bad in (unit - 1, unit * 1000, unit * np.nan):
        with pytest.raises(MiradaError, match=r"expected 0\.\.1 or 0\.\.255"):
            decode_image(saved(Image.fromarray(bad), "TIFF"))


def test_transparency_is_laid_over_white():
    rgba = np.zeros((1, 3, 4), dtype=np.uint8)
    rgba[0, :, 3] = 0, 51, 255  # black at 0, 20 and 100 %
    assert decode_image(saved(Image.fromarray(rgba)))[0, :, 0].tolist() == [255, 204, 0]
    grey_alpha = decode_image(saved(Image.fromarray(rgba).convert("LA")))
    assert grey_alpha.shape == (1, 3, 1)
    assert grey_alpha[0, :, 0].tolist() == [255, 204, 0]


def test_palette_with_and_without_transparency():
    palette = Image.new("P", (2, 1))
    palette.putpalette([250, 10, 20, 30, 240, 40])
    palette.putdata([0, 1])
    assert decode_image(saved(palette)).tolist() == [[[250, 10, 20], [30, 240, 40]]]
    assert decode_image(saved(palette, transparency=0)).tolist() == [[[255, 255, 255], [30, 240, 40]]]


def test_cmyk_becomes_rgb():
    ink = Image.new("CMYK", (8, 8), (0, 255, 255, 0))  # magenta and yellow make red
    red = decode_image(saved(ink, "TIFF"))
    assert red.shape == (8, 8, 3)
    assert red[0, 0].tolist() == [255, 0, 0]
    assert decode_image(saved(ink, "JPEG")).shape == (8, 8, 3)


def test_exif_orientation_is_applied():
    upright = Image.fromarray(np.repeat(GREY.repeat(8, 0).repeat(8, 1)[..., None], 3, 2))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: show it rotated by 90 degrees clockwise
    turned = saved(upright, "JPEG", exif=exif, quality=95)
    assert decode_image(turned).shape == (56, 40, 3)
    plain = decode_image(saved(upright, "JPEG", quality=95))
    np.testing.assert_array_equal(decode_image(turned), np.rot90(plain, -1))
    assert (read_header(turned).height, read_header(turned).width) == (56, 40)


def test_animation_gives_its_first_frame():
    frames = [Image.new("RGB", (4, 3), colour) for colour in ("red", "blue")]
    gif = saved(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decode_image(gif)[0, 0].tolist() == [255, 0, 0]
    assert read_header(gif).frames == 2


@pytest.mark.parametrize("file_format", ["WEBP", "BMP", "TIFF", "PPM"])
def test_other_formats(file_format):
    assert decode_image(saved(Image.fromarray(RGB), file_format)).shape == (5, 7, 3)


def test_large_jpeg_is_decoded_smaller_but_not_too_small():
    picture = Image.new("RGB", (1600, 1200))
    assert decode_image(saved(picture, "JPEG"), (64, 64)).shape == (150, 200, 3)
    assert decode_image(saved(picture, "JPEG"), (500, 500)).shape == (1200, 1600, 3)


def test_npy_carries_any_number_of_bands(tmp_path):
    bands = np.random.default_rng(0).integers(0, 256, (5, 7, 6), dtype=np.uint8)
    np.save(tmp_path / "a.npy", bands)
    np.testing.assert_array_equal(decode_image(tmp_path / "a.npy"), bands)
    np.save(tmp_path / "b.npy", bands.astype(float))
    with pytest.raises(MiradaError, match="expected uint8"):
        decode_image(tmp_path / "b.npy")
    np.save(tmp_path / "c.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(MiradaError, match=r"c\.npy"):
        decode_image(tmp_path / "c.npy")


@pytest.mark.parametrize("side", [9_000, 10_000, 20_000])  # Pillow: silent, warns, refuses
def test_too_many_pixels_are_refused_from_the_header(side):
    assert side**2 > MAX_PIXELS
    with pytest.raises(MiradaError, match="million"):
        decode_image(huge_png(side))


def test_truncated_jpeg(tmp_path):
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    path = tmp_path / "cut.jpg"
    path.write_bytes(saved(picture, "JPEG")[:1500])
    with pytest.raises(MiradaError, match=r"cut\.jpg: cannot be decoded"):
        decode_image(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"dear diary\n", "it holds text"),
        (b"", "empty"),
        (bytes(100), "unknown format"),
        (b"II*\0" + bytes(50), "fake"),
    ],
)
def test_not_an_image(tmp_path, content, reason):
    path = tmp_path / "fake.jpg"
    path.write_bytes(content)
    with pytest.raises(MiradaError, match=reason) as caught:
        decode_image(path)
    assert str(path) in str(caught.value)


def test_missing_file_folder_and_unreadable_file(tmp_path, monkeypatch):
    with pytest.raises(MiradaError, match="does not exist"):
        decode_image(tmp_path / "none.png")
    with pytest.raises(MiradaError):
        decode_image(tmp_path)

    def deny(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Image, "open", deny)  # root may read everything, so the refusal is simulated
    with pytest.raises(MiradaError, match="permission denied"):
        decode_image(tmp_path / "secret.png")


def test_postscript_is_not_run(tmp_path):
    (tmp_path / "a.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n")
    with pytest.raises(MiradaError, match="not an image"):
        decode_image(tmp_path / "a.png")


def test_fit_crop_keeps_the_centre():
    wide = np.zeros((4, 12, 3), dtype=np.uint8)
    wide[:, 4:8] = 200
    np.testing.assert_array_equal(fit_image(wide, (4, 4), "crop"), np.full((4, 4, 3), 200))


def test_fit_pad_and_squash_keep_everything():
    wide = np.full((4, 12, 1), 200, dtype=np.uint8)
    padded = fit_image(wide, (12, 12), "pad")
    assert padded[4:8].min() == 200
    assert padded[:4].max() == padded[8:].max() == 0
    assert fit_image(wide, (5, 3), "squash").shape == (5, 3, 1)
    assert fit_image(np.zeros((9, 4, 6), np.uint8), (3, 2)).shape == (3, 2, 6)
    with pytest.raises(MiradaError, match="expected one of crop, squash, pad"):
        fit_image(wide, (3, 3), "stretch")


def test_channels():
    grey = match_channels(RGB, 1)
    expected = np.asarray(Image.fromarray(RGB).convert("L")).astype(int)
    assert np.abs(grey[..., 0] - expected).max() <= 1
    np.testing.assert_array_equal(match_channels(GREY[..., None], 3)[..., 2], GREY)
    with pytest.raises(MiradaError, match="6 channels where 3"):
        match_channels(np.zeros((2, 2, 6), np.uint8), 3)
