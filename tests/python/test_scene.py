import math

import numpy as np
import pytest

from mlnav.config import Config
from mlnav.linkage import linkage
from mlnav.sim import KinematicWorld, traverse
from mlnav.sim.urdf import WHEELS
from mlnav.terrain import Terrain
from mlnav.viz import camera, ground, scene, style
from mlnav.viz.camera import Camera
from mlnav.viz.model import RoverParts
from mlnav.viz.playback import Playback, in_truth
from mlnav.viz.scene import GROUND, MARK, ROVER, SKY, Ribbon, Scene

pytest.importorskip("pybullet")
pytestmark = pytest.mark.viz

GEOMETRY = Config().rover.to_core()
SIZE = (320, 180)


def rolling(size_m: float = 20.0, res: float = 0.1, origin=(3.0, -7.0)) -> Terrain:
    n = round(size_m / res)
    y, x = np.meshgrid(*[np.arange(n) * res] * 2, indexing="ij")
    z = 0.3 * np.sin(0.7 * x) * np.cos(0.5 * y) + 0.05 * x
    return Terrain(z.astype(np.float32), res, origin, name="rolling")


def posed(terrain: Terrain, pose) -> Playback:
    return Playback(terrain, Config(), pose)


@pytest.fixture(scope="module")
def hills():
    """A scene with a rover and a goal."""
    terrain = rolling()
    made = Scene(terrain, GEOMETRY, [(12.0, 2.0)])
    made.pose(posed(terrain, (12.0, 2.0, 0.4)).posture(0))
    made.add_goal((16.0, 5.0))
    yield terrain, made
    made.close()


# --------------------------------------------------------------------------------------- cameras


def test_projection_of_known_points() -> None:
    eye = Camera.looking((1.0, 2.0, 3.0), (1.0, 12.0, 3.0), (200, 100), 90.0)  # looks north
    middle, right, up = eye.project([(1, 12, 3), (6, 7, 3), (1, 12, 8)])
    assert middle == pytest.approx([100.0, 50.0, 10.0])
    assert right == pytest.approx([200.0, 50.0, 5.0])  # 45 deg to the right
    assert up == pytest.approx([100.0, 0.0, 10.0])
    assert np.isnan(eye.project([(1, 1, 3)])[0, 0])  # behind
    assert eye.enlarged(2.0).project([(1, 12, 3)])[0, 0] == pytest.approx(200.0)


def test_a_camera_may_look_straight_down() -> None:
    eye = Camera.looking((0.0, 0.0, 9.0), (0.0, 0.0, 0.0), (100, 100), 60.0)
    assert np.allclose(eye.axes @ eye.axes.T, np.eye(3))
    assert eye.project([(0, 0, 0)])[0] == pytest.approx([50.0, 50.0, 9.0])


def test_the_mast_camera_is_carried_by_the_attitude() -> None:
    terrain = rolling()
    posture = posed(terrain, (12.0, 2.0, 0.4)).posture(0)
    eye = camera.mast_camera(Config(), posture, 300)
    assert eye.eye_m == pytest.approx(posture.point(camera.MAST_M))
    assert np.allclose(eye.axes @ eye.axes.T, np.eye(3))
    assert np.linalg.det(eye.axes @ np.diag([1, 1, -1])) == pytest.approx(1.0)  # not mirrored
    body = posture.rotation.T @ eye.axes.T  # in the rover frame, in columns
    down = math.radians(camera.MAST_ELEVATION_DEG)
    assert body[:, 2] == pytest.approx([math.cos(down), 0.0, math.sin(down)])
    assert body[:, 0] == pytest.approx([0.0, -1.0, 0.0], abs=1e-12)
    left = camera.mast_camera(Config(), posture, 300, math.radians(90.0))
    assert (posture.rotation.T @ left.axes[2])[:2] == pytest.approx([0.0, math.cos(down)])


def test_stereo_cameras_say_where_the_mast_is() -> None:
    config = Config().replaced(["sensor.mast_m=[0.5, 0.1, 2.5]", "sensor.width_deg=60"],
                               sensor="stereo")  # fmt: skip
    posture = posed(rolling(), (12.0, 2.0, 0.4)).posture(0)
    eye = camera.mast_camera(config, posture, 300)
    assert eye.width_deg == 60.0
    assert eye.eye_m == pytest.approx(posture.point((0.5, 0.1, 2.5)))


def test_the_chasing_eye_stays_above_ground_and_sees_the_rover() -> None:
    x = np.arange(400) * 0.1
    z = np.tile(3.0 * np.exp(-(((x - 12.0) / 1.5) ** 2)), (300, 1))
    terrain = Terrain(z.astype(np.float32), 0.1)  # a wall across the way
    way = np.column_stack([np.linspace(5, 35, 200), np.full(200, 15.0), np.zeros(200)])
    eyes = camera.chase_eyes(terrain, way, 15.0)
    assert np.all(eyes[:, 2] > np.nan_to_num(terrain.height(eyes[:, 0], eyes[:, 1])) + 0.3)
    assert np.abs(np.diff(eyes[:, 2])).max() < 0.35  # of 0.15 m steps
    after = np.argmin(np.abs(way[:, 0] - 15.5))  # just behind the wall
    share = np.linspace(0.0, 0.9, 30)
    at = (way[after, 0], 15.0, float(terrain.height(way[after, 0], 15.0)) + 1.0)
    sight = eyes[after] + share[:, None] * (np.array(at) - eyes[after])
    assert np.all(sight[:, 2] > np.nan_to_num(terrain.height(sight[:, 0], sight[:, 1]), nan=-9.0))


def test_the_overview_shows_all_points() -> None:
    terrain = rolling()
    points = np.array([[5.0, -5.0], [20.0, 10.0], [12.0, 2.0]])
    eye = camera.overview_camera(terrain, points, SIZE)
    z = terrain.height(points[:, 0], points[:, 1])
    seen = eye.project(np.column_stack([points, z]))[:, :2]
    assert np.all((seen > 0.0) & (seen < SIZE))


# ------------------------------------------------------------------------------------ the ground


def test_tiles_cover_the_ground_once_and_fit_the_renderer() -> None:
    terrain = rolling(70.0)
    near = (10.0, 40.0, 0.0, 30.0)
    tiles = ground.ground_tiles(terrain, near, 90_000, 5_000, side=200)
    assert max(len(t.vertices) for t in tiles) <= 200**2
    area = 0.0
    for tile in tiles:
        a, b, c = (tile.vertices[tile.triangles[:, i], :2].astype(float) for i in range(3))
        area += _area(a, b, c)
    # Coarse squares that reach under fine ground lie there twice.
    assert 69.9**2 <= area + 0.1 < 69.9**2 + 4 * 30 * 1.1
    fine = tiles[0].vertices
    z = terrain.height(fine[:, 0].astype(float), fine[:, 1].astype(float))
    assert np.abs(z - fine[:, 2]).max() < 1e-3


def _area(a, b, c) -> float:
    (ux, uy), (vx, vy) = (b - a).T, (c - a).T
    turned = ux * vy - uy * vx
    assert np.all(turned > 0.0)  # counter-clockwise
    return 0.5 * float(turned.sum())


def test_no_triangle_touches_unknown_ground() -> None:
    z = np.array(rolling(6.0).z)
    z[20:30, 15:25] = np.nan
    terrain = rolling(6.0).with_heights(z)
    mesh = ground.ground_mesh(terrain, terrain.extent_m, 10**6)
    assert len(mesh.triangles) == 2 * (59 * 59 - 11 * 11)
    assert np.isfinite(mesh.vertices).all()


def test_ridges_are_not_notched() -> None:
    z = np.add.outer(np.arange(12), np.arange(12)) == 11  # a wall along a diagonal
    mesh = ground.ground_mesh(Terrain(z * 1.0, 1.0), (-1, 12, -1, 12), 10**6)
    top = mesh.vertices[:, 2] == 1.0
    level = top[mesh.triangles].sum(axis=1)
    assert (level == 2).sum() == 2 * 11  # both triangles of a square share the crest


def test_shadows_fall_away_from_the_sun() -> None:
    z = np.zeros((60, 60))
    z[30, 30] = 1.0
    shadow = ground.cast_shadow(z, 0.1)
    rows, columns = np.nonzero(shadow > 0.5)
    assert np.all(columns - 30 == 30 - rows)  # to +x, -y
    reach = math.sqrt(2.0) * 0.1 * (columns - 30).max()
    assert reach == pytest.approx(1.0 / math.tan(math.radians(ground.SUN_ELEVATION_DEG)), abs=0.15)
    assert shadow[30, 30] < 0.5


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1), (2, 2), (3, 40)])
def test_tiny_terrains_have_colours_and_maybe_triangles(shape) -> None:
    terrain = Terrain(np.zeros(shape, np.float32), 0.1)
    colours = ground.GroundColours(terrain, terrain.extent_m)
    at = np.zeros(3, np.float32)
    assert colours.at(at, at, np.array([1e-3, 0.1, 50.0], np.float32)).shape == (3, 3)
    tiles = ground.ground_tiles(terrain, terrain.extent_m, 100, 100)
    assert bool(tiles) == (min(shape) > 1)


def test_colours_keep_their_place_at_all_finenesses() -> None:
    z = np.zeros((200, 300), np.float32)
    z[:, 150:] = 3.0  # high ground in the east is pale
    terrain = Terrain(z, 0.1, (-4.0, 9.0))
    colours = ground.GroundColours(terrain, (0.0, 20.0, 10.0, 20.0))
    for footprint in (0.001, 0.02, 0.3, 1.0):
        for y in (12.0, 26.0):  # within the fine part and beyond it
            x = np.array([0.0, 3.0, 20.0, 24.0], np.float32)
            n = len(x)
            seen = colours.at(x, np.full(n, y, np.float32), np.full(n, footprint, np.float32))
            light = seen.mean(axis=1)
            assert light[:2].max() < 0.8 * light[2:].min()
    assert colours.vague(np.float32([0.0]), np.float32([12.0])).mean() < light[2:].min()


# -------------------------------------------------------------------------------------- the rover


def test_parts_are_where_the_linkage_says() -> None:
    terrain = rolling()
    parts = RoverParts(GEOMETRY)
    for pose in ((12.0, 2.0, 0.4), (9.0, -1.0, -2.5)):
        posture = posed(terrain, pose).posture(0)
        assert max(abs(posture.state[k]) for k in ("roll_rad", "pitch_rad")) > 0.02
        frames = parts.placed(posture)
        told = linkage(GEOMETRY, posture.state)
        c, s = math.cos(pose[2]), math.sin(pose[2])
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        for name, axle in zip(WHEELS, told.axles[0], strict=True):
            assert frames[name][1] == pytest.approx(turn @ axle + (*pose[:2], 0.0), abs=1e-9)
        pivot = frames["rocker_left"][1]
        assert pivot == pytest.approx(turn @ told.rocker_pivots[0, 0] + (*pose[:2], 0.0))


def test_shapes_are_closed_and_face_outwards() -> None:
    for link in RoverParts(GEOMETRY).links:
        for shape in link.shapes:
            vertices, normals, triangles = shape.triangles
            a, b, c = (vertices[triangles[:, i]] for i in range(3))
            facing = np.cross(b - a, c - a)
            assert np.all((facing * normals[triangles[:, 0]]).sum(axis=1) > 0.0)
            volume = float((a * np.cross(b, c)).sum()) / 6.0
            box = float(np.prod(shape.size_m))
            assert volume == pytest.approx(box * (0.776 if shape.round else 1.0), rel=0.01)


# --------------------------------------------------------------------------------------- playback


def test_wheels_roll_as_far_as_they_go() -> None:
    terrain = Terrain(np.zeros((300, 300), np.float32), 0.1)
    config = Config()
    result = traverse(terrain, config, (5.0, 15.0), (20.0, 15.0))
    played = Playback(terrain, config, result.start, result.cycles)
    assert len(played) == 1 + sum(len(c.states) for c in result.cycles)
    assert played.driven_m[-1] == pytest.approx(result.driven_m, rel=1e-3)
    straight = played.spin_rad[-1] * config.rover.wheel_radius_m
    assert straight == pytest.approx(np.full(6, result.driven_m), rel=1e-3)
    middle = played.at(0.5 * played.way_m[-1])
    assert middle.pose == pytest.approx((5.0 + 0.5 * result.driven_m, 15.0, 0.0), abs=0.02)


def test_wheels_are_steered_square_to_a_turn() -> None:
    terrain = Terrain(np.zeros((300, 300), np.float32), 0.1)
    result = traverse(terrain, Config(), (15.0, 15.0), (25.0, 15.0), heading_rad=2.0)
    played = Playback(terrain, Config(), result.start, result.cycles)
    turning = int(np.flatnonzero(played.way_m > 0.0)[0])  # the first state of the turn in place
    assert turning > 10  # before it the wheels steer, and the rover stands
    assert np.all(np.diff(np.abs(played.steer_rad[: turning + 1, 0])) >= 0.0)
    front_left, rear_left, front_right, rear_right = played.steer_rad[turning]
    assert front_left == pytest.approx(-math.atan2(1.185, 1.0625))
    assert (front_right, rear_left) == pytest.approx((-front_left, math.atan2(1.075, 1.0625)))
    assert rear_right == pytest.approx(-rear_left)
    # Turning right: the left wheels go forward, the right ones back, the corners further.
    spin = played.spin_rad[turning]
    assert np.all(spin[:3] > 0.0)
    assert spin[:3] == pytest.approx(-spin[3:])
    assert played.way_m[turning] > 0.0
    assert played.driven_m[turning] == 0.0


def test_headings_do_not_jump_where_they_wrap() -> None:
    terrain = Terrain(np.zeros((300, 300), np.float32), 0.1)
    result = traverse(terrain, Config(), (15.0, 15.0), (5.0, 14.8), heading_rad=3.0)
    played = Playback(terrain, Config(), result.start, result.cycles)
    assert np.abs(np.diff(played.poses[:, 2])).max() < 0.2


def test_plans_of_a_rover_that_errs_are_shown_where_it_is() -> None:
    terrain = Terrain(np.zeros((300, 300), np.float32), 0.1)
    config = Config().replaced(["localization.heading_sigma_deg=2.0"], localization="visual")
    result = traverse(terrain, config, (5.0, 15.0), (20.0, 15.0), seed=3)
    record = result.cycles[-1]
    assert record.pose != record.estimated_pose
    path = in_truth(record, record.path)
    assert path[0] == pytest.approx(record.pose)
    steps = [np.hypot(*np.diff(p[:, :2], axis=0).T) for p in (path, record.path)]
    assert steps[0] == pytest.approx(steps[1])


# --------------------------------------------------------------------------------------- pictures


def looking_at(terrain: Terrain, at, away=(-6.0, -5.0, 3.0), size=SIZE) -> Camera:
    z = float(terrain.height(*at)) + 0.8
    return Camera.looking((at[0] + away[0], at[1] + away[1], z + away[2]), (*at, z), size, 60.0)


def share(picture, kind) -> float:
    return float((picture.kind == kind).mean())


def pixels(picture, box) -> np.ndarray:
    return np.asarray(picture.image.crop(box), float)


def test_a_picture_shows_ground_rover_and_sky(hills) -> None:
    terrain, made = hills
    picture = made.picture(looking_at(terrain, (12.0, 2.0), (-7.0, -5.0, 1.6)))
    assert picture.image.size == SIZE
    assert picture.kind.shape == (2 * SIZE[1], 2 * SIZE[0])
    assert share(picture, GROUND) > 0.3
    assert share(picture, SKY) > 0.05
    assert 0.03 < share(picture, ROVER) < 0.4
    height, width = picture.kind.shape
    assert picture.kind[height // 2, width // 2] == ROVER  # looked at
    assert np.asarray(picture.image.convert("L"), float).std() > 15.0
    grey = np.ptp(np.asarray(picture.image, float), axis=-1)[picture.kind[1::2, 1::2] == ROVER]
    assert (grey < 25.0).mean() > 0.4  # white deck, grey arms, dark wheels; the ground is brown
    assert np.isinf(picture.depth_m[picture.kind == SKY]).all()


def test_things_are_rendered_where_they_project(hills) -> None:
    terrain, made = hills
    goal = (16.0, 5.0)
    top = np.array([*goal, float(terrain.height(*goal)) + scene.GOAL_POLE_M])
    for away in ((-6.0, -5.0, 3.0), (3.0, -7.0, 2.0), (-1.0, 5.0, 6.0)):
        eye = looking_at(terrain, (15.0, 4.0), away)
        picture = made.picture(eye, oversampling=1.0)
        column, row, depth = eye.project(top[None])[0]
        rows, columns = np.nonzero(picture.kind == MARK)
        ball = np.hypot(columns + 0.5 - column, rows + 0.5 - row) < 3.0
        assert ball.sum() > 10
        front = picture.depth_m[int(row), int(column)]
        assert front == pytest.approx(depth - scene.GOAL_BALL_M, abs=0.03)
        assert np.median(columns[ball]) + 0.5 == pytest.approx(column, abs=1.0)
        assert np.median(rows[ball]) + 0.5 == pytest.approx(row, abs=1.0)


def test_the_depth_of_the_ground_is_right(hills) -> None:
    terrain, made = hills
    eye = looking_at(terrain, (12.0, 2.0))
    picture = made.picture(eye, oversampling=1.0)
    x, y = np.meshgrid(np.linspace(8.0, 18.0, 25), np.linspace(-2.0, 8.0, 25))
    points = np.column_stack([x.ravel(), y.ravel(), terrain.height(x.ravel(), y.ravel())])
    seen = eye.project(points)
    inside = (seen[:, :2] > 1.0).all(axis=1) & (seen[:, :2] < np.array(SIZE) - 1.0).all(axis=1)
    seen = seen[inside]
    at = seen[:, :2].astype(int)
    ground_there = picture.kind[at[:, 1], at[:, 0]] == GROUND
    found = picture.depth_m[at[:, 1], at[:, 0]][ground_there]
    error = np.abs(found - seen[ground_there, 2])
    assert len(error) > 100
    assert np.median(error) < 0.05


def test_the_ground_has_its_own_colours(hills) -> None:
    """Texture and geometry agree: seen from above, the picture is the map."""
    terrain, made = hills
    eye = Camera.looking((12.5, 7.0, 30.0), (12.5, 7.0, 0.0), (200, 200), 20.0)
    picture = np.asarray(made.picture(eye, oversampling=1.0).image, float).mean(axis=-1)
    y, x = np.meshgrid(np.linspace(4.0, 10.0, 40), np.linspace(9.5, 15.5, 40), indexing="ij")
    z = terrain.height(x, y)
    seen = eye.project(np.column_stack([x.ravel(), y.ravel(), z.ravel()]))
    shown = picture[seen[:, 1].astype(int), seen[:, 0].astype(int)]
    colours = ground.ground_colours(terrain).mean(axis=-1)
    rows = np.round((y - terrain.origin_m[1]) / terrain.resolution_m).astype(int)
    columns = np.round((x - terrain.origin_m[0]) / terrain.resolution_m).astype(int)
    mapped = colours[rows, columns].ravel()
    assert np.corrcoef(shown, mapped)[0, 1] > 0.8
    assert np.corrcoef(shown, mapped.reshape(40, 40).T.ravel())[0, 1] < 0.6  # not transposed


def test_the_rover_throws_a_shadow(hills) -> None:
    terrain, made = hills
    eye = Camera.looking((12.0, 2.0, 25.0), (12.0, 2.0, 0.0), (200, 200), 24.0)
    here = made.picture(eye, oversampling=1.0)
    made.pose(posed(terrain, (6.0, -4.0, 0.0)).posture(0))
    gone = made.picture(eye, oversampling=1.0)
    made.pose(posed(terrain, (12.0, 2.0, 0.4)).posture(0))
    light = [np.asarray(p.image, float).mean(axis=-1) for p in (here, gone)]
    darker = (light[0] < 0.8 * light[1]) & (here.kind == GROUND)
    assert darker.sum() > 300
    rows, columns = np.nonzero(darker)
    # Away from the sun: to +x (right) and -y (down).
    assert columns.mean() > 103.0
    assert rows.mean() > 103.0


def test_ribbons_lie_on_the_ground_where_they_should(hills) -> None:
    terrain, made = hills
    line = np.array([[13.0, -3.0], [17.0, -3.0], [17.0, 0.0]])
    eye = Camera.looking((14.0, -9.0, 6.0), (15.0, -2.0, 0.5), (320, 240), 60.0)
    ribbon = Ribbon([line], 0.25, style.CHOSEN)
    plain, drawn = made.picture(eye, (), 1.0), made.picture(eye, [ribbon], 1.0)
    changed = np.abs(np.asarray(plain.image, int) - np.asarray(drawn.image, int)).sum(axis=-1) > 60
    for point, there in (((15.0, -3.0), True), ((17.0, -1.5), True), ((15.0, -1.5), False)):
        seen = eye.project([(*point, float(terrain.height(*point)))])[0]
        assert changed[int(seen[1]), int(seen[0])] == there
    assert 100 < changed.sum() < 6000
    dashed = made.picture(eye, [Ribbon([line], 0.25, style.CHOSEN, dashed=True)], 1.0)
    other = np.abs(np.asarray(plain.image, int) - np.asarray(dashed.image, int)).sum(axis=-1) > 60
    assert 0.3 * changed.sum() < other.sum() < 0.7 * changed.sum()


def test_lines_without_length_draw_nothing(hills) -> None:
    terrain, made = hills
    eye = looking_at(terrain, (12.0, 2.0))
    lines = [[], [np.zeros((0, 2))], [np.array([[12.0, 1.0]])], [np.array([[12.0, 1.0]] * 3)]]
    ribbons = [Ribbon(line, 0.3, "white") for line in lines]
    plain, drawn = (made.picture(eye, r, 1.0).image.tobytes() for r in ([], ribbons))
    assert plain == drawn


def test_what_a_ridge_hides() -> None:
    x = np.arange(200) * 0.1
    z = np.tile(1.2 * np.exp(-(((x - 10.0) / 0.8) ** 2)), (120, 1)).astype(np.float32)
    terrain = Terrain(z, 0.1)
    made = Scene(terrain, GEOMETRY, [(3.0, 10.0)])
    made.pose(posed(terrain, (3.0, 10.0, 0.0)).posture(0))
    eye = Camera.looking((3.0, 6.0, 1.6), (12.0, 6.0, 0.5), SIZE, 60.0)
    line = np.array([[11.0, 6.0], [16.0, 6.0]])
    behind = (11.8, 6.0, 0.0)
    pictures = [
        made.picture(eye, [Ribbon([line], 0.3, style.CHOSEN, 1.0, hidden)]) for hidden in (0.0, 1.0)
    ]
    column, row, _ = eye.project([behind])[0]
    spot = (int(column) - 2, int(row) - 2, int(column) + 3, int(row) + 3)
    teal = [pixels(p, spot)[..., 1].max() - pixels(p, spot)[..., 0].min() for p in pictures]
    assert teal[0] < 60.0
    assert teal[1] > 150.0
    made.close()


def test_unknown_ground_is_a_hole() -> None:
    z = np.array(rolling().z)
    z[100:130, 100:130] = np.nan
    terrain = rolling().with_heights(z)
    made = Scene(terrain, GEOMETRY, [(14.0, 4.0)])
    eye = Camera.looking((14.5, 0.5, 9.0), (14.5, 4.5, 0.5), SIZE, 70.0)
    picture = made.picture(eye, [Ribbon([np.array([[11.0, 4.0], [18.0, 5.0]])], 0.2, "white")], 1.0)
    column, row, _ = eye.project([(14.5, 4.5, 0.5)])[0]
    assert picture.kind[int(row), int(column)] == SKY
    hole = pixels(picture, (int(column) - 3, int(row) + 6, int(column) + 3, int(row) + 12))
    assert np.ptp(hole.reshape(-1, 3).mean(axis=0)) < 30.0  # grey
    made.close()


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (2, 2), (12, 12)])
def test_tiny_terrains_make_pictures(shape) -> None:
    terrain = Terrain(np.zeros(shape, np.float32), 0.1)
    made = Scene(terrain, GEOMETRY, [(0.0, 0.0)])
    made.pose(posed(terrain, (0.0, 0.0, 0.0)).posture(0))
    made.add_goal((0.0, 0.0))
    picture = made.picture(Camera.looking((-5.0, -3.0, 3.0), (0.0, 0.0, 0.0), SIZE, 60.0))
    assert share(picture, ROVER) > 0.02
    made.close()


def test_pictures_leave_physics_alone(hills) -> None:
    """Scenes have clients of their own; another one does not see them."""
    import pybullet

    client = pybullet.connect(pybullet.DIRECT)
    assert pybullet.getNumBodies(physicsClientId=client) == 0
    terrain, made = hills
    made.picture(looking_at(terrain, (12.0, 2.0)), oversampling=1.0)
    assert pybullet.getNumBodies(physicsClientId=client) == 0
    pybullet.disconnect(client)


def test_pictures_repeat(hills) -> None:
    terrain, made = hills
    eye = looking_at(terrain, (12.0, 2.0))
    ribbons = [Ribbon([np.array([[10.0, 0.0], [14.0, 3.0]])], 0.2, "white", 0.5)]
    first, again = (made.picture(eye, ribbons).image.tobytes() for _ in range(2))
    assert first == again


def test_a_closed_scene_closes_its_clients() -> None:
    import pybullet

    terrain = rolling(4.0)
    before = {i for i in range(64) if pybullet.isConnected(i)}
    made = Scene(terrain, GEOMETRY, [(0.0, 0.0)])
    made.picture(Camera.looking((-2.0, -2.0, 3.0), (1.0, 1.0, 0.0), SIZE, 60.0))
    opened = {i for i in range(64) if pybullet.isConnected(i)} - before
    assert opened
    made.close()
    assert not any(pybullet.isConnected(i) for i in opened)
    made.close()  # once more does no harm


def test_start_on_unsafe_ground_has_a_posture() -> None:
    z = np.zeros((40, 40), np.float32)
    z[:, :20] = np.nan
    terrain = Terrain(z, 0.1)
    states = KinematicWorld(terrain, Config().rover_model()).place((2.1, 2.0, 0.0))
    assert not np.isfinite(states.columns["roll_rad"]).all()
    assert posed(terrain, (2.1, 2.0, 0.0)).posture(0).state["origin_z_m"] == 0.0
