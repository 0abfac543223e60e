from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_runs import Made, analysed, made_trial, slots
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from mlnav import viz
from mlnav.config import Config, names_of
from mlnav.report.picture import compare_figure
from mlnav.sim import Motion, TraverseResult, one_cycle, traverse
from mlnav.sim.explain import explain
from mlnav.sim.loop import make_world
from mlnav.sim.standing import standing
from mlnav.terrain import Terrain, benchmark_class
from mlnav.viz import style
from mlnav.viz.relief import hillshade, relief_image, window
from mlnav.viz.states import state_figure, view
from mlnav.viz.style import contender_colours
from mlnav.viz.traverse import numbers


@pytest.fixture(scope="module")
def rocky() -> Terrain:
    return benchmark_class(5.0, 0.05, seed=2)


def with_holes(terrain: Terrain) -> Terrain:
    z = np.array(terrain.z)
    z[10:60, 300:380] = np.nan
    return terrain.with_heights(z)


def saved(figure: Figure, path: Path, dpi: int = 60) -> None:
    """Save a figure, every panel of which has to show something that goes with its data."""
    canvas, dpi_before = FigureCanvasAgg(figure), figure.dpi
    figure.set_dpi(40)  # enough to see a difference by

    def pixels() -> np.ndarray:
        canvas.draw()
        return np.asarray(canvas.buffer_rgba()).copy()

    whole = pixels()
    assert figure.axes
    for axes in figure.axes:
        shown = [
            artist
            for artist in (*axes.lines, *axes.images, *axes.collections, *axes.patches, *axes.texts)
            if artist.get_visible()
        ]
        if not shown and not axes.axison:
            continue  # a place kept for a legend or a scale
        assert shown, axes.get_title()
        for artist in shown:
            artist.set_visible(False)
        assert (pixels() != whole).any(axis=-1).sum() > 100, axes.get_title()
        for artist in shown:
            artist.set_visible(True)
    figure.set_dpi(dpi_before)
    viz.save_figure(figure, path, dpi=dpi)
    with Image.open(path) as image:
        image.load()
        assert min(image.size) > 100


# ------------------------------------------------------------------------------------------- relief


def test_slopes_that_face_the_light_are_brighter() -> None:
    # The light comes from the upper left: from -x, +y. Ground rising to +x faces -x.
    x = np.tile(np.arange(60) * 0.1, (40, 1))
    toward = hillshade(np.concatenate([0.4 * x, 0.4 * x[:, ::-1]], axis=1), 0.1)
    assert toward[20, 30] > toward[20, 90] + 0.1
    y = np.arange(60)[:, None] * 0.1 * np.ones((1, 40))
    faces_south = hillshade(np.concatenate([0.4 * y, 0.4 * y[::-1]], axis=0), 0.1)
    assert faces_south[90, 20] > faces_south[30, 20] + 0.1


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 3), (40, 30)])
def test_any_shape_can_be_shaded(shape) -> None:
    z = np.random.default_rng(0).normal(0, 1, shape).astype(np.float32)
    image = relief_image(z, 0.1)
    assert image.shape == (*shape, 4)
    assert np.all((image >= 0.0) & (image <= 1.0))


def test_unknown_ground_is_transparent() -> None:
    z = np.zeros((20, 30), np.float32)
    z[5:9, 7:11] = np.nan
    image = relief_image(z, 0.1)
    assert np.all(image[5:9, 7:11, 3] == 0.0)
    assert np.isfinite(image).all()
    assert image[..., 3].sum() == z.size - 16


def test_windows_hold_their_points_and_stay_on_the_map() -> None:
    terrain = Terrain(np.zeros((100, 200)), 0.1, (5.0, 5.0))
    points = np.array([[6.0, 6.0], [9.0, 8.0]])
    x_min, x_max, y_min, y_max = window(terrain, points, 1.0, aspect=1.0)
    left, right, bottom, top = terrain.extent_m
    assert left <= x_min < 6.0
    assert 9.0 < x_max <= right
    assert bottom <= y_min < 6.0
    assert 8.0 < y_max <= top
    assert x_max - x_min == pytest.approx(y_max - y_min)


# ------------------------------------------------------------------------------------------ figures


def test_terrain_figure(rocky: Terrain, tmp_path) -> None:
    saved(viz.terrain_figure(with_holes(rocky)), tmp_path / "t.png")


def test_terrain_statistics_of_a_known_slope() -> None:
    x = np.arange(200) * 0.1
    slope = Terrain(np.tile(x * np.tan(np.radians(12.0)), (150, 1)), 0.1, name="ramp")
    stats = viz.terrain_statistics(slope)
    assert stats["slope_deg"]["median"] == pytest.approx(12.0, abs=0.01)
    assert stats["roughness_m"]["max"] == pytest.approx(0.0, abs=1e-3)
    assert stats["known_share"] == 1.0
    assert stats["cells"] == [200, 150]


@pytest.mark.parametrize("settings", [[], ["traverse.max_cycles=4"], ["traverse.ace_budget=5"]])
def test_traverse_figure(rocky: Terrain, tmp_path, settings) -> None:
    config = Config().replaced([*settings, "keep_out=[[[30, 30], [33, 30], [33, 34]]]"])
    result = traverse(rocky, config)
    saved(viz.traverse_figure(with_holes(rocky), result, config), tmp_path / "r.png")


def test_traverse_figure_without_cycles(rocky: Terrain, tmp_path) -> None:
    result = traverse(rocky, Config(), start=rocky.goal_m)
    saved(viz.traverse_figure(rocky, result, Config()), tmp_path / "r.png")
    viz.save_traverse_gif(tmp_path / "r.gif", rocky, result, Config())


def test_gif_has_a_frame_a_cycle_and_the_end(rocky: Terrain, tmp_path) -> None:
    config = Config().replaced(["traverse.max_cycles=5"])
    result = traverse(rocky, config)
    viz.save_traverse_gif(tmp_path / "r.gif", rocky, result, config)
    with Image.open(tmp_path / "r.gif") as film:
        assert film.n_frames == 6


@pytest.mark.parametrize("heading", [None, 2.0])
def test_plan_figure(rocky: Terrain, tmp_path, heading) -> None:
    navigator, cycle, pose, goal = one_cycle(rocky, Config(), heading_rad=heading)
    figure = viz.plan_figure(rocky, navigator, cycle, pose, goal, Config())
    saved(figure, tmp_path / "p.png")


def test_plan_figure_of_a_cycle_that_ranked_nothing(rocky: Terrain, tmp_path) -> None:
    z = np.array(rocky.z)
    z[:, : z.shape[1] // 2] += np.tile([0.0, 0.0, 0.0, 1.5], z.shape[1] // 8).astype(np.float32)
    for terrain, outcome in ((rocky.with_heights(z), "start_unsafe"), (rocky, "goal_reached")):
        start = rocky.goal_m if outcome == "goal_reached" else None
        navigator, cycle, pose, goal = one_cycle(terrain, Config(), start)
        assert cycle.result.outcome == outcome
        figure = viz.plan_figure(terrain, navigator, cycle, pose, goal, Config())
        assert len(figure.axes) == 1  # the map alone
        saved(figure, tmp_path / "p.png")


def test_a_detour_of_nothing_has_no_sign(rocky: Terrain) -> None:
    result = traverse(rocky, Config())
    assert result.success
    almost = replace(result, driven_m=result.straight_line_m * 0.9999)
    assert "(inefficiency 0.00)" in numbers(almost)[1][0]


def test_figures_repeat_byte_for_byte(rocky: Terrain, tmp_path) -> None:
    for name in ("a.png", "b.png"):
        viz.save_figure(viz.terrain_figure(rocky), tmp_path / name, dpi=50)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


# -------------------------------------------------------------------------------- standing, its map


def test_ace_figure(rocky: Terrain, tmp_path) -> None:
    ground = with_holes(rocky)
    config = Config().replaced(checker="fixed_box", limits="enav_like")
    verdicts = standing(ground, config, bins=4)
    assert np.isnan(verdicts.share[0, 0])
    known = verdicts.share[np.isfinite(verdicts.share)]
    assert 0.5 < known.mean() < 1.0
    assert set(np.unique(known)) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    figure = viz.ace_figure(ground, verdicts.share, verdicts.rejects, config)
    saved(figure, tmp_path / "a.png")


def test_standing_by_poses_is_standing_by_map() -> None:
    """The settle checker has no dense map: rows of poses must land in the right cells."""
    z = np.zeros((60, 90))
    z[:, 60:] = 2.0
    terrain = Terrain(z, 0.1, (3.0, -2.0), name="step")
    done = []
    config = Config().replaced(limits="enav_like")
    settle = standing(
        terrain, config.replaced(checker="settle"), 2, lambda at, of: done.append((at, of))
    )
    box = standing(terrain, config.replaced(checker="fixed_box"), 2)
    verified = standing(terrain, config, 2)
    assert done[-1] == (60, 60)
    assert settle.share.shape == box.share.shape == verified.share.shape == (60, 90)
    # far from the step all pass, astride it none does
    assert settle.share[30, 25] == box.share[30, 25] == verified.share[30, 25] == 1.0
    assert settle.share[30, 60] == box.share[30, 60] == verified.share[30, 60] == 0.0


# ------------------------------------------------------------------------------------- one pose


def rock(height_m: float = 0.2, size: int = 64) -> Terrain:
    """Level ground with a rounded rock at its middle."""
    ys, xs = np.meshgrid(*[(np.arange(size) - 0.5 * size) * 0.1] * 2, indexing="ij")
    half = 0.05 * size
    z = height_m * np.exp(-(xs**2 + ys**2) / 0.3**2)
    return Terrain(z, 0.1, (-half, -half), name="rock")


ON_A_ROCK = (-1.1, -1.0, 0.0)  # the left front wheel is on it


@pytest.mark.parametrize("checker", ["verified", "fixed_box", "probabilistic", "settle"])
def test_explain_figure(tmp_path, checker: str) -> None:
    config = Config().replaced(checker=checker)
    told = explain(rock(), config, ON_A_ROCK)
    saved(viz.explain_figure(rock(), told, config), tmp_path / "e.png")


def text_of(figure) -> str:
    texts = [*figure.texts, *(t for a in figure.axes for t in [*a.texts, a.title])]
    return " ".join(t.get_text() for t in texts)


def test_the_figure_says_what_is_known(tmp_path) -> None:
    terrain = rock()
    told = explain(terrain, Config(), ON_A_ROCK)
    text = text_of(viz.explain_figure(terrain, told, Config()))
    low, high = (np.degrees(v) for v in told.bounds["roll_rad"])
    assert f"{low:.2f} to {high:.2f}°" in text
    assert f"at least {told.clearance_min_m:.2f} m" in text
    assert "rock: safe" in text
    assert "front left" in text


@pytest.mark.parametrize(
    ("pose", "words"),
    [
        ((0.0, -3.1, 0.5), ["rejected: border", "not settled", "no bound", "gave no bounds"]),
        ((0.0, 1.2, 0.0), ["rejected: unknown", "not settled (unknown)"]),
        ((0.2, -0.2, 0.0), ["rejected: clearance", "unsafe (clearance)"]),
    ],
)
def test_explain_figure_of_what_is_rejected(tmp_path, pose, words) -> None:
    z = np.array(rock(0.7).z)
    z[48:, :] = np.nan
    terrain = rock().with_heights(z)
    told = explain(terrain, Config(), pose)
    figure = viz.explain_figure(terrain, told, Config())
    text = text_of(figure)
    assert [w for w in words if w not in text] == []
    saved(figure, tmp_path / "e.png", 50)


def test_a_checkers_timid_rejection_is_called_so() -> None:
    config = Config().replaced(["limits.bogie_max_deg=4.1"], checker="fixed_box")
    terrain = rock(0.12)
    told = explain(terrain, config, ON_A_ROCK)
    assert (told.safe, told.settled_faults) == (False, ())
    assert "timid" in text_of(viz.explain_figure(terrain, told, config))


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("limits.relief_max_m=0.15", ["relief: wheel front_left", "limit 0.15 m"]),
        ("limits.bogie_max_deg=2", ["bogie: bogie left", "limit 2°"]),
        ("limits.tilt_max_deg=2", ["tilt: body", "limit 2°"]),
        ("limits.clearance_min_m=0.45", ["clearance: pan", "limit 0.45 m"]),
    ],
)
def test_unsafe_figure_names_what_is_at_fault_and_its_limit(tmp_path, limit, words) -> None:
    terrain, config = rock(0.2, 128), Config().replaced(checker="fixed_box")
    world = make_world(terrain, config.replaced([limit]))  # stricter than the planner
    left = 0.0 if "clearance" in limit else -0.95
    motion = Motion(0.0, 0.0, 3.0)
    start = (-3.0, left, 0.0)
    result = drive(terrain, config, world, start, motion)
    assert result.unsafe is not None and result.unsafe.constraint == words[0].split(":")[0]
    figure = viz.unsafe_figure(terrain, result, config)
    text = text_of(figure)
    assert [w for w in words if w not in text] == []
    assert str(result.unsafe) in text
    saved(figure, tmp_path / "u.png", 50)


def drive(terrain: Terrain, config: Config, world, start, motion) -> TraverseResult:
    """A run of one planned cycle, in which the rover makes a given motion instead."""
    goal = (start[0] + 5.0, start[1])
    result = traverse(terrain, config.replaced(["traverse.max_cycles=1"]), start[:2], goal)
    execution = world.execute(start, motion)
    cycle = replace(
        result.cycles[0], states=execution.states, unsafe=execution.unsafe,
        unsafe_states=execution.unsafe_states, driven_m=execution.driven_m,
    )  # fmt: skip
    return replace(result, outcome=execution.ending or result.outcome, cycles=[cycle])


def test_unsafe_figure_of_a_safe_run_is_refused(rocky: Terrain) -> None:
    config = Config().replaced(["traverse.max_cycles=1"])
    result = traverse(rocky, config, rocky.start_m, rocky.goal_m)
    with pytest.raises(ValueError, match="no unsafe state"):
        viz.unsafe_figure(rocky, result, config)


# --------------------------------------------------------------------------------------- comparison


def test_contenders_have_colours_of_their_own() -> None:
    usual = contender_colours({"none": "none", "sobel": "sobel"})
    assert usual["sobel"] == contender_colours({"sobel": "sobel"})["sobel"]
    many = {f"{p}+{h}": h for p in "abcd" for h in ("none", "sobel", "oracle")}
    assert len(set(contender_colours(many).values())) >= 9


@pytest.mark.parametrize("most", [1, 7, 12, 40])
def test_folded_names_lose_nothing(most: int) -> None:
    for name in ("sobel:weight_per_m=20;to_go_fraction=0", "DTEEC_0123/a.tif +.10", "x" * 30, ""):
        lines = style.folded(name, most)
        assert all(len(line) <= most for line in lines)
        assert "".join(lines).replace(" ", "") == name.replace(" ", "")


def test_compare_figure(tmp_path) -> None:
    rng = np.random.default_rng(0)
    failed = {"success": False, "outcome": "stuck", "inefficiency": None}

    def trials(moved: bool) -> list[Made]:
        return [
            made_trial(
                terrain, k, name, rng.integers(20, 400, 12).tolist() if moved else [],
                wall_heuristic_s=0.01,
                **(failed if (k, name) == (2, "none") or not moved else {"inefficiency": 0.1 * k}),
            )
            for terrain in ("a_very_long_name_of_a_map", "10/.07")
            for k in range(3)
            for name in ("none", "sobel")
        ]  # fmt: skip

    made = trials(moved=True)
    figure = compare_figure(analysed(made), slots(made))
    saved(figure, tmp_path / "compare.png")
    text = text_of(compare_figure(analysed(made), slots(made)))
    assert "0/3\n0/km" in text
    assert "fixed_box, enav_like: none, sobel" in text
    assert "12 trials" in text
    still = trials(moved=False)  # nobody ever moved
    figure = compare_figure(analysed(still), slots(still))
    viz.save_figure(figure, tmp_path / "still.png", dpi=40)
    assert "n/a" in text_of(figure)


def test_state_figure_of_all_heuristics(rocky: Terrain, tmp_path) -> None:
    base = Config().replaced(checker="fixed_box", limits="enav_like")
    pose, goal = (20.0, 26.0, 0.4), (44.0, 26.0)
    views = [
        view(name, rocky, base.replaced(heuristic=name), pose, goal, 0.0)
        for name in names_of("heuristic")
    ]
    risks = {v.name: v.risk for v in views}
    assert risks["none"] is None
    assert len(risks["sobel"].p) == 1
    assert len(risks["oracle"].p) == 16  # asked for the picture, needed or not
    figure = state_figure(rocky, views, pose, goal, "a title", "a note")
    saved(figure, tmp_path / "state.png", 50)


def test_state_figure_where_nothing_can_be_planned(rocky: Terrain, tmp_path) -> None:
    hole = np.array(rocky.z)
    hole[240:280, 180:220] = np.nan
    terrain = rocky.with_heights(hole)
    config = Config().replaced(checker="fixed_box", limits="enav_like")
    pose, goal = (20.0, 26.0, 0.0), (44.0, 26.0)
    views = [view(n, terrain, config, pose, goal, float("inf")) for n in ("a", "b")]
    assert views[0].cycle.result.outcome == "start_unsafe"
    saved(state_figure(terrain, views, pose, goal, "t", "n"), tmp_path / "state.png", 50)
