import numpy as np
import pytest

from mlnav.terrain import Terrain, TerrainError, with_rocks


@pytest.fixture(scope="module")
def ground() -> Terrain:
    x = np.arange(300) * 0.1
    z = np.broadcast_to(0.1 * x, (200, 300)).astype(np.float32).copy()
    z[30:60, 40:70] = np.nan
    layer = np.broadcast_to(x, z.shape).astype(np.float32)
    return Terrain(
        z, 0.1, (-14.95, -3.0), (5.0, 6.0, 7.0), "slope", (-8.0, 5.0), (10.0, 5.0), {"x": layer}
    )


def test_rocks_add_height_and_leave_all_else(ground: Terrain) -> None:
    rocky = with_rocks(ground, 0.1, seed=4)
    assert np.array_equal(np.isnan(rocky.z), np.isnan(ground.z))
    raised = rocky.z - ground.z
    known = np.isfinite(raised)
    assert (raised[known] >= 0.0).all()
    assert raised[known].max() > 0.2
    assert np.array_equal(rocky.z[raised == 0.0], ground.z[raised == 0.0])
    assert 0.02 < (raised[known] > 0.01).mean() < 0.12  # those below 0.15 m are left out
    for name in ("resolution_m", "origin_m", "datum", "start_m", "goal_m", "attribution"):
        assert getattr(rocky, name) == getattr(ground, name)
    assert np.array_equal(rocky.layers["x"], ground.layers["x"])
    assert rocky.name != ground.name


def test_rocks_lie_all_over_the_map(ground: Terrain) -> None:
    raised = np.nan_to_num(with_rocks(ground, 0.15, seed=1).z - ground.z)
    quarters = [q for half in np.split(raised, 2) for q in np.split(half, 2, axis=1)]
    assert all((q > 0.1).mean() > 0.01 for q in quarters)


def test_start_goal_and_given_places_are_clear(ground: Terrain) -> None:
    places = [(-2.0, 12.0), (0.0, 0.0)]
    raised = np.nan_to_num(with_rocks(ground, 0.2, 2, clear=places).z - ground.z)
    everywhere = np.nan_to_num(with_rocks(ground.with_ends(None, None), 0.2, 2).z - ground.z)
    (ny, nx), (ox, oy) = ground.shape, ground.origin_m
    x, y = np.meshgrid(ox + 0.1 * np.arange(nx), oy + 0.1 * np.arange(ny))
    for px, py in [*places, ground.start_m, ground.goal_m]:
        near = np.hypot(x - px, y - py) < 2.5
        assert raised[near].max() == 0.0
        assert everywhere[near].max() > 0.0
    far = np.full(x.shape, True)
    for px, py in [*places, ground.start_m, ground.goal_m]:
        far &= np.hypot(x - px, y - py) > 6.0
    assert np.array_equal(raised[far], everywhere[far])  # nothing else has moved


def test_the_same_seed_gives_the_same_rocks(ground: Terrain) -> None:
    assert with_rocks(ground, 0.1, 3).sha256 == with_rocks(ground, 0.1, 3).sha256
    assert with_rocks(ground, 0.1, 3).sha256 != with_rocks(ground, 0.1, 4).sha256
    assert with_rocks(ground, 0.0, 3) is ground


@pytest.mark.parametrize(("cfa", "seed"), [(-0.1, 0), (0.4, 0), (float("nan"), 0), (0.1, -1)])
def test_bad_covers_and_seeds_are_refused(ground: Terrain, cfa: float, seed: int) -> None:
    with pytest.raises(TerrainError):
        with_rocks(ground, cfa, seed)
