"""Ground, engine and rover in PyBullet; the origin is the middle of the map and of its heights."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import math
import os
import sys
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt
from scipy.spatial.transform import Rotation

from mlnav import _core
from mlnav.config import Bullet
from mlnav.io import write_text
from mlnav.linkage import STATE
from mlnav.nav.motion import F64, Pose, wrapped
from mlnav.sim import urdf
from mlnav.sim.world import WorldError
from mlnav.terrain import Terrain

GRAVITY_M_S2 = 3.71
"""Of Mars."""
MAX_NODES_EDGE = 1448
"""Of a square heightfield; PyBullet crashes between this and 1601."""
MAX_RESOLUTION_M = 1.0
"""Of a map; coarser facets are planes to a rover."""
STEER_RAD_S = 0.3

_STEER_TORQUE_NM = 2000.0
_PLAIN_CONTACT = {"rollingFriction": 0.0, "spinningFriction": 0.0, "restitution": 0.0}
_DAMPING_NMS = 30.0
"""Of rockers and bogies of the default rover; proportional to the mass."""
_MARGIN_M = 10.0
"""A standing rover gets a new patch nearer than this to the edge of the old one."""
_RESERVE_M = 3.0
"""A moving one likewise."""


@dataclass(frozen=True)
class Stand:
    """The rover as measured.

    Attributes:
        posture: numbers of `STATE`.
        tilt_rad: of the body's up axis against the vertical.
        climb_rad: of the body's forward axis above the horizontal.
        above_m: least height of the wheels' and the body's middles above the surface.
        speed_m_s: of the body's middle, plus that of its ends by rotation.
    """

    pose: Pose
    posture: Mapping[str, float]
    tilt_rad: float
    climb_rad: float
    above_m: float
    speed_m_s: float


class Ground:
    """The map in the physics frame, unknown ground filled with the nearest height."""

    def __init__(self, terrain: Terrain, settings: Bullet) -> None:
        self._terrain = terrain
        self._edge_m = settings.edge_m
        self.resolution_m = res = terrain.resolution_m
        (ny, nx), (x, y) = terrain.shape, terrain.origin_m
        self._width_m, self._depth_m = (nx - 1) * res, (ny - 1) * res
        self._middle_m = (x + 0.5 * self._width_m, y + 0.5 * self._depth_m)
        if min(self._width_m, self._depth_m) <= 2.0 * self._edge_m:
            raise WorldError(
                f"the terrain is too small: {nx} x {ny} cells of {res:g} m, and the rover must keep"
                f" {self._edge_m:g} m from every edge"
            )
        if res > MAX_RESOLUTION_M:
            raise WorldError(f"cells of {res:g} m are too coarse: at most {MAX_RESOLUTION_M:g} m")
        half = min(round(settings.patch_half_width_m / res), (MAX_NODES_EDGE - 1) // 2)
        self._nodes = (min(ny, 2 * half + 1), min(nx, 2 * half + 1))
        self.patch_half_m = half * res
        if self._nodes != (ny, nx) and self.patch_half_m < 2.0 * _RESERVE_M:
            raise WorldError(
                f"cells of {res:g} m are too fine: the physics holds {MAX_NODES_EDGE} by"
                f" {MAX_NODES_EDGE}, which reach {self.patch_half_m:.1f} m from the rover"
            )
        z = terrain.z.astype(np.float64)
        unknown = np.isnan(z)
        if unknown.any():
            nearest = distance_transform_edt(unknown, return_distances=False, return_indices=True)
            z = z[tuple(nearest)]
        self._datum_m = 0.5 * float(z.min() + z.max())
        self.z = (z - self._datum_m).astype(np.float32)

    def check_start(self, pose: Pose) -> None:
        """Raise WorldError where no rover can be put down."""
        x, y, heading = pose
        if not all(map(math.isfinite, pose)):
            raise WorldError(f"the start must be finite, got ({x:g}, {y:g}, {heading:g})")
        if not self._terrain.contains(x, y):
            raise WorldError(f"the start ({x:g}, {y:g}) is outside the map")
        if self.to_edge_m(pose) < self._edge_m:
            raise WorldError(
                f"the start ({x:g}, {y:g}) is {max(self.to_edge_m(pose), 0.0):.2f} m from the"
                f" map's edge, nearer than {self._edge_m:g} m: there is no ground beyond"
            )
        if math.isnan(self._terrain.height(x, y)):
            raise WorldError(f"the start ({x:g}, {y:g}) is on unknown ground")

    def inner(self, x: float, y: float, z: float = 0.0) -> tuple[float, float, float]:
        """A point of the world in the physics frame."""
        return x - self._middle_m[0], y - self._middle_m[1], z - self._datum_m

    def outer(self, x: float, y: float, z: float) -> tuple[float, float, float]:
        """A point of the physics frame in the world."""
        return x + self._middle_m[0], y + self._middle_m[1], z + self._datum_m

    def to_edge_m(self, pose: Pose) -> float:
        """Distance to the outermost cell centres, where the ground ends."""
        x, y, _ = self.inner(*pose[:2])
        return min(0.5 * self._width_m - abs(x), 0.5 * self._depth_m - abs(y))

    def above_m(self, points: F64) -> F64:
        """Heights of (n, 3) points of the physics frame above the surface.

        Cells are two triangles, their common edge from (ix + 1, iy) to (ix, iy + 1).
        """
        ny, nx = self.z.shape
        u = np.clip(points[:, 0] / self.resolution_m + 0.5 * (nx - 1), 0.0, nx - 1.0)
        v = np.clip(points[:, 1] / self.resolution_m + 0.5 * (ny - 1), 0.0, ny - 1.0)
        ix = np.minimum(u.astype(np.intp), nx - 2)
        iy = np.minimum(v.astype(np.intp), ny - 2)
        right, up = self.z[iy, ix + 1], self.z[iy + 1, ix]
        u, v = u - ix, v - iy
        near = u + v <= 1.0
        corner = np.where(near, self.z[iy, ix], self.z[iy + 1, ix + 1])
        to_right, to_up = np.where(near, u, 1.0 - v), np.where(near, v, 1.0 - u)
        surface = corner + (right - corner) * to_right + (up - corner) * to_up
        above: F64 = points[:, 2] - surface
        return above

    def patch(self, pose: Pose) -> Patch:
        """The patch for a rover at a pose; all have the same shape."""

        def along(at_m: float, n: int, nodes: int) -> tuple[int, float, float, float]:
            """First node, middle and reach."""
            i = round(at_m / self.resolution_m + 0.5 * (n - 1))
            start = min(max(i - nodes // 2, 0), n - nodes)
            ends = start, start + nodes - 1
            low, high = ((i - 0.5 * (n - 1)) * self.resolution_m for i in ends)
            least = -math.inf if start == 0 else low
            return start, 0.5 * (low + high), least, math.inf if start + nodes == n else high

        x, y, _ = self.inner(*pose[:2])
        (ny, nx), (rows, columns) = self.z.shape, self._nodes
        ix, middle_x, x_min, x_max = along(x, nx, columns)
        iy, middle_y, y_min, y_max = along(y, ny, rows)
        z = self.z[iy : iy + rows, ix : ix + columns]
        return Patch(z, (middle_x, middle_y), (x_min, x_max, y_min, y_max))


@dataclass(frozen=True, eq=False)
class Patch:
    """The part of the ground that is in the engine, in the physics frame.

    Attributes:
        z: heights [m].
        middle: x, y [m].
        reach: (x_min, x_max, y_min, y_max) [m], infinite where the map ends.
    """

    z: NDArray[np.float32]
    middle: tuple[float, float]
    reach: tuple[float, float, float, float]

    def to_edge_m(self, x: float, y: float) -> float:
        """Distance to the nearest edge beyond which the map continues."""
        x_min, x_max, y_min, y_max = self.reach
        return min(x - x_min, x_max - x, y - y_min, y_max - y)


# ------------------------------------------------------------------------------------- the engine


def import_pybullet() -> Any:
    """Pybullet, without the banner that its C code prints on the first import."""
    if sys.modules.get("pybullet") is not None:
        return sys.modules["pybullet"]
    flush_c = ctypes.CDLL(None).fflush  # the banner may wait in C's buffer
    flush_c(None)
    with contextlib.ExitStack() as stack:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        stack.callback(os.close, nowhere)
        for number in (1, 2):  # standard output and error; which one depends on its version
            with contextlib.suppress(OSError):  # it may be closed
                kept = os.dup(number)
                stack.callback(os.close, kept)
                stack.callback(os.dup2, kept, number)
                os.dup2(nowhere, number)
        library = importlib.import_module("pybullet")
        flush_c(None)
        return library


def load_library() -> Any:
    """Pybullet; `WorldError` where it is missing."""
    try:
        return import_pybullet()
    except ImportError as fault:
        raise WorldError(
            f"world 'bullet' needs pybullet: pip install 'mlnav[sim]' ({fault})"
        ) from fault


class Engine:
    """A physics engine: the library's functions, bound to one client."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._id = library.connect(library.DIRECT)
        if self._id < 0:
            raise WorldError("pybullet has no engine left: too many worlds are open")
        self.close = weakref.finalize(self, library.disconnect, self._id)

    def __getattr__(self, name: str) -> Any:
        return functools.partial(getattr(self._library, name), physicsClientId=self._id)


class Rig:
    """An engine with the rover and the patch of ground about it."""

    def __init__(
        self,
        library: Any,
        rover_urdf: str,
        geometry: _core.RoverGeometry,
        ground: Ground,
        settings: Bullet,
    ) -> None:
        self._engine = engine = Engine(library)
        self.close = engine.close
        self._ground = ground
        self._settings = settings
        self._patch: Patch | None = None
        self._shape: int | None = None
        self._reach_m = geometry.front_x_m - geometry.rear_x_m
        self._middle = np.array(urdf.body_origin_m(geometry))
        engine.setGravity(0.0, 0.0, -GRAVITY_M_S2)
        engine.setPhysicsEngineParameter(
            fixedTimeStep=1.0 / settings.steps_per_s,
            numSolverIterations=settings.solver_iterations,
            **dict.fromkeys(("erp", "contactERP", "frictionERP"), 0.2),
            deterministicOverlappingPairs=1,
        )
        with tempfile.TemporaryDirectory() as folder:  # the library reads files only
            path = Path(folder) / "rover.urdf"
            write_text(path, rover_urdf)
            flags = library.URDF_USE_INERTIA_FROM_FILE | library.URDF_USE_IMPLICIT_CYLINDER
            self._rover = engine.loadURDF(str(path), flags=flags)
        parts = range(engine.getNumJoints(self._rover))
        link = {engine.getJointInfo(self._rover, i)[12].decode(): i for i in parts}
        self._wheels = [link[name] for name in urdf.WHEELS]
        self._steers = [link[name] for name in urdf.STEERS]
        self._joints = [link[name] for name in (*urdf.ROCKERS, *urdf.BOGIES)]
        self._velocity, self._position = library.VELOCITY_CONTROL, library.POSITION_CONTROL
        self._heightfield, self._sphere = library.GEOM_HEIGHTFIELD, library.GEOM_SPHERE
        self._step = engine.stepSimulation  # looked up once: called in every step
        self._contacts = engine.getContactPoints
        damping = _DAMPING_NMS * settings.mass_kg / urdf.ROVER_MASS_KG
        for part in (-1, *parts):
            engine.changeDynamics(
                *(self._rover, part),
                lateralFriction=settings.friction,
                linearDamping=0.0,
                angularDamping=0.0,
                jointDamping=damping if part in self._joints else 0.0,
                **_PLAIN_CONTACT,
            )
        for joint in self._joints:  # the library brakes every joint
            engine.setJointMotorControl2(self._rover, joint, self._velocity, force=0.0)
        # The differential. Joints of opposite angles: in this library a gear of ratio +1.
        gear = engine.createConstraint(
            *(self._rover, self._joints[0], self._rover, self._joints[1], library.JOINT_GEAR),
            *([0, 1, 0], [0, 0, 0], [0, 0, 0]),
        )
        engine.changeConstraint(gear, gearRatio=1.0, erp=0.2, maxForce=1e6)

    def as_built(self) -> dict[str, float]:
        """Settings that can be read back from the engine."""
        engine = self._engine.getPhysicsEngineParameters()
        parts = range(-1, self._engine.getNumJoints(self._rover))
        dynamics = [self._engine.getDynamicsInfo(self._rover, part) for part in parts]
        return {
            "mass_kg": round(sum(part[0] for part in dynamics), 6),
            "friction": dynamics[self._wheels[0] + 1][1],
            "steps_per_s": round(1.0 / engine["fixedTimeStep"], 6),
            "solver_iterations": engine["numSolverIterations"],
        }

    def steps_in(self, seconds: float) -> int:
        """Steps in a time."""
        return max(1, round(seconds * self._settings.steps_per_s))

    def put(self, pose: Pose, posture: Mapping[str, float]) -> None:
        """Put the rover down at rest, brakes on, wheels straight. Posture: numbers of `STATE`."""
        engine, rover = self._engine, self._rover
        angles = [pose[2], posture["roll_rad"], -posture["pitch_rad"]]
        turned = Rotation.from_euler("ZXY", angles)
        origin = self._ground.inner(pose[0], pose[1], posture["origin_z_m"])
        middle = np.array(origin) + turned.apply(self._middle)
        engine.resetBasePositionAndOrientation(rover, middle.tolist(), turned.as_quat().tolist())
        differential = posture["differential_rad"]
        turns = (differential, -differential, *(posture[f"bogie_{s}_rad"] for s in urdf.SIDES))
        for joint, turn in zip(self._joints, turns, strict=True):
            engine.resetJointState(rover, joint, turn)
        self.follow(pose, standing=True)
        self.steer([0.0] * len(self._steers))
        self.brake()

    def follow(self, pose: Pose, *, standing: bool) -> None:
        """Load a new patch near the edge of the old one: early for a standing rover, else late."""
        x, y, _ = self._ground.inner(*pose[:2])
        margin_m = min(_MARGIN_M, 0.5 * self._ground.patch_half_m) if standing else _RESERVE_M
        if self._patch is None:
            self._patch = self._first_patch(pose)
        elif self._patch.to_edge_m(x, y) < margin_m:
            self._patch = self._ground.patch(pose)
            self._lay(self._patch.z)
            place = [*self._patch.middle, 0.0]
            self._engine.resetBasePositionAndOrientation(self._field, place, [0.0, 0.0, 0.0, 1.0])

    def _first_patch(self, pose: Pose) -> Patch:
        engine = self._engine
        patch = self._ground.patch(pose)
        # The library keeps the bounding box and mid-height of the first heights. So the map's
        # lowest and highest, equally far from zero, go into two corners: every patch fits in.
        first = patch.z.copy()
        first[0, 0], first[-1, -1] = self._ground.z.min(), self._ground.z.max()
        self._shape = self._lay(first)
        # A visual of its own, or the library makes one of the ground, with twice the memory.
        speck = engine.createVisualShape(self._sphere, radius=0.001)
        self._field = engine.createMultiBody(0.0, self._shape, speck, [*patch.middle, 0.0])
        # The library multiplies frictions.
        engine.changeDynamics(self._field, -1, lateralFriction=1.0, **_PLAIN_CONTACT)
        self._lay(patch.z)
        return patch

    def _lay(self, z: NDArray[np.float32]) -> Any:
        """Create the heightfield, or replace its heights; gives its number."""
        replaced = {} if self._shape is None else {"replaceHeightfieldIndex": self._shape}
        return self._engine.createCollisionShape(
            self._heightfield,
            meshScale=[self._ground.resolution_m, self._ground.resolution_m, 1.0],
            heightfieldData=z.ravel(),
            numHeightfieldRows=z.shape[1],
            numHeightfieldColumns=z.shape[0],
            **replaced,
        )

    def brake(self) -> None:
        """Hold the wheels."""
        self.drive(np.zeros(len(self._wheels)))

    def drive(self, rates_rad_s: F64) -> None:
        """Turn the wheels, forward positive."""
        self._engine.setJointMotorControlArray(
            self._rover,
            self._wheels,
            self._velocity,
            targetVelocities=rates_rad_s.tolist(),
            forces=[self._settings.wheel_torque_nm] * len(self._wheels),
        )

    def steer(self, angles_rad: list[float]) -> None:
        """Begin to steer the corner wheels, left positive."""
        for joint, angle in zip(self._steers, angles_rad, strict=True):
            self._engine.setJointMotorControl2(
                *(self._rover, joint, self._position),
                targetPosition=angle,
                positionGain=0.2,
                velocityGain=1.0,
                force=_STEER_TORQUE_NM,
                maxVelocity=STEER_RAD_S,
            )

    def steering_rad(self) -> F64:
        """(6,) angle of each wheel against the rover, in the core's order, left positive."""
        states = self._engine.getJointStates(self._rover, self._steers)
        angles = [float(state[0]) for state in states]
        return np.insert(angles, [1, 3], 0.0)  # the middle wheels

    def steering_left_rad(self, angles_rad: list[float]) -> float:
        """The most that a wheel still has to steer."""
        return float(np.abs(np.delete(self.steering_rad(), [1, 4]) - angles_rad).max())

    def step(self, steps: int, *, stop_at_touch: bool = False) -> tuple[int, float]:
        """Simulate; gives the steps made and the largest force on the belly [N]."""
        step, contacts, rover = self._step, self._contacts, self._rover
        most_n = 0.0
        for done in range(1, steps + 1):
            step()
            touching = contacts(bodyA=rover, linkIndexA=-1)
            if touching:
                most_n = max(most_n, sum(contact[9] for contact in touching))
                if stop_at_touch and most_n > 0.0:
                    return done, most_n
        return steps, most_n

    def stand(self) -> Stand | None:
        """The rover as measured; None where the physics gives numbers that are not finite."""
        engine, rover = self._engine, self._rover
        middle, quaternion = engine.getBasePositionAndOrientation(rover)
        joints = [state[0] for state in engine.getJointStates(rover, self._joints)]
        wheels = [state[0] for state in engine.getLinkStates(rover, self._wheels)]
        velocity, spin = engine.getBaseVelocity(rover)
        numbers = np.array([*middle, *quaternion, *joints, *velocity, *spin])
        if not (np.isfinite(numbers).all() and np.isfinite(wheels).all()):
            return None
        turned = Rotation.from_quat(quaternion).as_matrix()
        ahead, left, up = turned.T
        x, y, z = self._ground.outer(*(np.array(middle) - turned @ self._middle).tolist())
        differential = 0.5 * (joints[0] - joints[1])
        # Body rotation Rz(heading) Rx(roll) Ry(-pitch), roll within 90 degrees.
        roll = math.asin(min(max(float(left[2]), -1.0), 1.0))
        pitch = math.atan2(ahead[2], up[2])
        heading = wrapped(math.atan2(-left[0], left[1]))
        return Stand(
            pose=(x, y, heading),
            posture=dict(zip(STATE, (roll, pitch, differential, *joints[2:], z), strict=True)),
            tilt_rad=math.acos(min(max(float(up[2]), -1.0), 1.0)),
            climb_rad=math.asin(min(max(float(ahead[2]), -1.0), 1.0)),
            above_m=float(self._ground.above_m(np.array([middle, *wheels])).min()),
            speed_m_s=math.hypot(*velocity) + math.hypot(*spin) * self._reach_m,
        )
