"""The writer: what it appends is a BigTIFF that GDAL reads, and whatever was half written is written again."""

import numpy as np
import pytest

pytest.importorskip("rasterio")

import rasterio
from rasterio.transform import from_origin

from mirada.data.geo.grid import Grid
from mirada.errors import MiradaError
from mirada.verbs.maps.tiff_blocks import write_tables
from mirada.verbs.maps.tiles import tiles_of
from mirada.verbs.maps.write import TileStore
from tests.geotiffs import numbers

GRID = Grid("EPSG:7845", from_origin(1000, 2000, 10, 10), (150, 210))
NAMES = ("prediction", "low", "high")
TILES = tiles_of(GRID.size, 64)
PIXELS = numbers(3, 192, 256)
EMPTY = {5, 7}


def store(tmp_path, **facts):
    return TileStore(tmp_path / "map.tif", GRID, NAMES, 64, {"model": "a", **facts})


def bands(tile):
    return None if tile.number in EMPTY else PIXELS[:, slice(*tile.rows), slice(*tile.cols)]


def write_all(into, tiles):
    for tile in tiles:
        into.write(tile, bands(tile))


def test_the_unfinished_file_is_a_sparse_bigtiff(tmp_path):
    with store(tmp_path) as into:
        write_all(into, TILES)
        write_tables(into.blocks_path, into.offset_of, into.num_bytes)
        with rasterio.open(into.blocks_path) as file:
            pixels = file.read()
            assert file.descriptions == NAMES and file.crs.to_epsg() == 7845
            assert file.get_tag_item("BLOCK_OFFSET_1_1", "TIFF", bidx=1) is None
    expected = PIXELS.copy()
    for number in EMPTY:
        expected[:, slice(*TILES[number].rows), slice(*TILES[number].cols)] = np.nan
    assert np.array_equal(pixels, expected[:, :150, :210], equal_nan=True)
    assert into.blocks_path.stat().st_size < 11 * into.num_bytes


@pytest.mark.parametrize(("size", "tile"), [((50, 60), 64), ((50, 100), 64), ((64, 64 * 5), 64), ((300, 300), 256)])
def test_files_of_few_blocks_have_their_tables_elsewhere(tmp_path, size, tile):
    """A table of up to eight bytes lies in its field, and entries have two, four or eight bytes."""
    grid = Grid("EPSG:7845", GRID.transform, size)
    pixels = numbers(2, 512, 512)
    with TileStore(tmp_path / "map.tif", grid, ("a", "b"), tile, {}) as into:
        for one in tiles_of(size, tile):
            into.write(one, pixels[:, slice(*one.rows), slice(*one.cols)])
        into.finish()
    with rasterio.open(tmp_path / "map.tif") as file:
        assert np.array_equal(file.read(), pixels[:, : size[0], : size[1]])


@pytest.mark.parametrize(
    "damage", ["half a block", "half a line", "a block without its line", "a line without its block"]
)
def test_what_was_half_written_is_written_again(tmp_path, damage):
    with store(tmp_path) as into:
        write_all(into, TILES)
        into.finish()
    whole = (tmp_path / "map.tif").read_bytes()
    with store(tmp_path) as into:
        write_all(into, TILES[:6])
    if damage == "half a block":
        _append(into.blocks_path, b"\x01" * (into.num_bytes // 2))
    if damage == "a block without its line":
        _append(into.blocks_path, b"\x01" * into.num_bytes)
    if damage == "half a line":
        _append(into.blocks_path, b"\x01" * into.num_bytes)
        _append(into.journal_path, b'{"tile": 6, "a')
    if damage == "a line without its block":
        _append(into.journal_path, b'{"tile": 6, "at": 123456789}\n{"tile": 7}\n')
    with store(tmp_path) as into:
        assert into.done == set(range(6))
        write_all(into, TILES[6:])
        into.finish()
    assert (tmp_path / "map.tif").read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["map.tif"]


def test_the_order_of_tiles_does_not_matter(tmp_path):
    files = []
    for tiles in (TILES, TILES[::-1]):
        with store(tmp_path) as into:
            write_all(into, tiles)
            into.finish()
        files.append((tmp_path / "map.tif").read_bytes())
    assert files[0] == files[1]


def test_two_processes_do_not_write_one_map(tmp_path):
    pytest.importorskip("fcntl")
    with store(tmp_path), pytest.raises(MiradaError, match=r"map.tif is being made by another process"):
        store(tmp_path).__enter__()


def _append(path, content):
    with open(path, "ab") as file:
        file.write(content)
