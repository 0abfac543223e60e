"""Parts from outside: found by name, held to their contracts, the same in every process."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from mlnav import campaign, parts
from mlnav.cli import app
from mlnav.config import Config, ConfigError, json_schema, load_config
from mlnav.parts import SECTIONS, PartError, find, names_of
from mlnav.sim import traverse
from mlnav.terrain import Terrain, TerrainError, canonical, check_terrain, library, load

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "parts"
PACKAGE = ROOT / "examples" / "package"
CLASSES = {
    "checker": "Jittered",
    "planner": "Fan",
    "heuristic": "Relief",
    "world": "Sandy",
    "sensor": "Lidar",
    "localization": "DriftingGyro",
    "terrain": "Dunes",
}
MLNAV = shutil.which("mlnav", path=str(Path(sys.executable).parent)) or "mlnav"


def example(kind: str, folder: Path = EXAMPLES) -> str:
    return f"{folder / kind}.py:{CLASSES[kind]}"


def mlnav(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in args])
    assert result.exit_code == code, result.output
    return result.stdout if code < 2 else " ".join(result.stderr.split())


def ran(*command: object, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **more)


def level(side: int = 200) -> Terrain:
    return Terrain(
        np.zeros((side, side)), 0.1, (0.05, 0.05), name="level",
        start_m=(5.0, 10.0), goal_m=(10.0, 10.0),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------ names


def test_every_part_of_this_package_can_be_found() -> None:
    for kind in SECTIONS:
        for name in names_of(kind):
            part = find(kind, name)
            assert not part.outside
            assert part.model.model_fields["name"].default == name
            assert part.model.kind == kind
            assert callable(parts._named(part.maker_at))
    assert load("10/.07", 1).sha256 == find("terrain", "SLOPE/COVER").make(
        "10/.07", library.AS_DECLARED
    ).terrain(1).sha256  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("heuristic", "sobl", "no heuristic 'sobl'; did you mean 'sobel'"),
        ("planner", "xyz", "no planner 'xyz'; known: enav"),
        ("world", f"{EXAMPLES}/world.py:Sandi", "no class 'Sandi'; did you mean 'Sandy'"),
        ("world", f"{EXAMPLES}/wirld.py:Sandy", "wirld.py: cannot be read"),
        ("sensor", "no_such_package.x:Y", "no module 'no_such_package.x' is installed"),
        ("sensor", "json:JSONDecodr", "did you mean 'JSONDecoder'"),
        ("checker", example("planner"), "Settings must derive from mlnav.config.checkers.Checker"),
    ],
)
def test_what_cannot_be_found_is_named(kind: str, name: str, message: str) -> None:
    with pytest.raises(PartError, match=message.replace("(", "\\(")):
        find(kind, name)
    with pytest.raises(ConfigError, match=f"{kind}: .*{message[:20]}"):
        Config().replaced(**{kind: name})


def test_a_file_that_cannot_be_loaded_is_named(tmp_path) -> None:
    (tmp_path / "bad.py").write_text("import nothing_like_this\n")
    with pytest.raises(PartError, match=r"world .*bad\.py:A: .*nothing_like_this"):
        find("world", f"{tmp_path}/bad.py:A")


def test_a_library_that_is_missing_is_named_before_anything_is_made(tmp_path) -> None:
    source = 'class A:\n    needs = {"no_such_library": "pip install it"}\n'
    (tmp_path / "a.py").write_text(source)
    config = Config().replaced(world=f"{tmp_path}/a.py:A")
    with pytest.raises(PartError, match=r"a\.py:A needs no_such_library \(pip install it\)"):
        parts.require_parts(config)
    with pytest.raises(PartError, match="needs no_such_library"):
        traverse(level(), config)


# ---------------------------------------------------------------------------------- configuration


def everything() -> Config:
    return load_config(EXAMPLES / "everything.yaml")


def test_files_are_named_from_the_configuration(tmp_path, monkeypatch) -> None:
    config = everything()
    for kind in SECTIONS:
        assert getattr(config, kind).name == example(kind)
    assert config.world.lost == 0.05
    assert config.checker.jitter_m == 0.02
    monkeypatch.chdir(EXAMPLES)
    assert load_config("everything.yaml").world.name == "world.py:Sandy"
    here = Config().replaced(world="world.py:Sandy").world
    assert here.name == "world.py:Sandy"
    assert type(here) is type(config.world), "a file is loaded once, however it is spelt"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"world\.py: cannot be read"):
        Config().replaced(world="world.py:Sandy")


def test_a_configuration_of_parts_from_outside_is_one_like_any_other(tmp_path) -> None:
    config = everything()
    path = tmp_path / "again.yaml"
    path.write_text(config.to_yaml())
    assert load_config(path) == config
    assert Config.checked(json.loads(config.model_dump_json())) == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(config.world) == hash(everything().world)
    changed = config.replaced(["world.lost=0.2", "heuristic.weight_per_m=7"])
    assert (changed.world.lost, changed.heuristic.weight_per_m) == (0.2, 7.0)
    with pytest.raises(ConfigError, match=r"world: unknown key 'lose'; did you mean 'lost'"):
        config.replaced(["world.lose=0.2"])
    with pytest.raises(ConfigError, match=r"world\.lost"):
        config.replaced(["world.lost=2"])
    with pytest.raises(ValueError, match="frozen"):
        config.world.lost = 0.3


def test_another_process_finds_the_settings_of_a_file(tmp_path) -> None:
    file = tmp_path / "world.py"
    shutil.copy(EXAMPLES / "world.py", file)
    section = Config().replaced(world=f"{file}:Sandy").world
    (tmp_path / "x.pickle").write_bytes(pickle.dumps(section))
    script = f"import pickle; print(pickle.load(open({str(tmp_path / 'x.pickle')!r}, 'rb')).lost)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "0.1", done.stderr
    file.write_text(file.read_text().replace("0.1\n", "0.2\n"))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert "its file was changed while it was in use" in done.stderr


def test_the_schema_takes_names_from_outside() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json_schema()
    jsonschema.validate({"world": "my.py:World", "sensor": "truth"}, schema)
    jsonschema.validate(json.loads(Config().model_dump_json()), schema)
    for wrong in ({"world": "kinematik"}, {"sensor": {"name": "truth", "half_width": 3}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


# ------------------------------------------------------------------------------- commands, workers


@pytest.mark.parametrize("kind", CLASSES)
def test_a_part_of_each_kind_drives(kind: str, tmp_path) -> None:
    ground = tmp_path / "ground.yaml"
    ground.write_text(
        "size_m: [20, 12]\nrelief: {rms_1m_m: 0.01}\n"
        "start: {x_m: 6, y_m: 6}\ngoal: {x_m: 10, y_m: 6}\n"
    )
    name = example(kind)
    terrain = name if kind == "terrain" else ground
    option = () if kind == "terrain" else ("--set", f"{kind}={name}")
    args = ["traverse", "-t", terrain, "--set", "checker=fixed_box", *option]
    if kind == "terrain":
        args += ["--set", "traverse.max_cycles=3"]
    code = 1 if kind == "terrain" else 0
    summary = json.loads(mlnav(*args, "--out", tmp_path / "out", "--json", code=code))
    if kind == "terrain":
        assert (summary["terrain"], summary["outcome"]) == ("dunes-seed0", "timeout")
    else:
        assert (summary[kind], summary["outcome"]) == (name, "goal_reached")


def test_campaigns_replays_and_provenance(tmp_path) -> None:
    """In worker processes, from a definition beside the files."""
    for kind in CLASSES:
        shutil.copy(EXAMPLES / f"{kind}.py", tmp_path)
    definition = tmp_path / "mine.yaml"
    definition.write_text(
        "name: mine\ntrials: 1\n"
        "config: {traverse: {max_cycles: 3}, checker: fixed_box}\n"
        "contenders:\n"
        "  - none\n"
        "  - {name: theirs, planner: 'planner.py:Fan', checker: 'checker.py:Jittered',\n"
        "     heuristic: 'heuristic.py:Relief', world: 'world.py:Sandy',\n"
        "     sensor: 'sensor.py:Lidar', localization: 'localization.py:DriftingGyro'}\n"
    )
    out = tmp_path / "campaign"
    store = campaign.run(
        campaign.load_definition(definition, terrains=[f"{tmp_path}/terrain.py:Dunes"]),
        out,
        workers=2,
    )
    made_with = store.provenance[0]["parts"]
    assert set(made_with) == {"theirs"}
    assert made_with["theirs"]["world"]["name"] == f"{tmp_path}/world.py:Sandy"
    rows = {r["contender"]: r for r in store.trials().to_pylist()}
    assert {r["outcome"] for r in rows.values()} == {"timeout"}
    assert rows["none"]["parts"] is None
    assert rows["theirs"]["parts"] is not None
    assert rows["theirs"]["planner"] == f"{tmp_path}/planner.py:Fan"
    assert rows["none"]["terrain_sha256"] == rows["theirs"]["terrain_sha256"]

    def replay(code: int) -> dict:
        # In a process of its own: this one keeps a file as it first loaded it.
        done = ran(
            MLNAV, "replay", rows["theirs"]["key"], "-C", out, "--no-picture", "--json",
            "-o", tmp_path / "replay", "--force", cwd=tmp_path.parent,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    assert replay(0)["identical"] is True
    world = tmp_path / "world.py"
    world.write_text(world.read_text().replace("self._kept * motion", "0.5 * motion"))
    changed = replay(1)
    assert list(changed["made_with_other"]) == ["parts"]
    assert changed["differences"]


def test_provenance_names_the_file_and_its_digest(tmp_path) -> None:
    assert parts.provenance(Config()) == {}
    assert parts.digest(Config()) is None
    found = parts.provenance(everything(), example("terrain"))
    assert set(found) == set(CLASSES)
    import hashlib

    for kind, origin in found.items():
        assert origin["name"] == example(kind)
        text = (EXAMPLES / f"{kind}.py").read_bytes()
        assert origin["sha256"] == hashlib.sha256(text).hexdigest()
    assert parts.digest(everything()) != parts.digest(Config().replaced(world=example("world")))


def test_an_installed_package_brings_parts(tmp_path) -> None:
    """As `pip install examples/package` leaves it, without pip."""
    import tomllib

    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    site = tmp_path / "site"
    shutil.copytree(PACKAGE / "src", site)
    info = site / "mlnav_windy-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    entries = project["entry-points"]["mlnav.parts"]
    lines = [f"{name} = {at}" for name, at in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(["[mlnav.parts]", *lines]))
    environment = os.environ | {"PYTHONPATH": str(site)}

    def run(*args: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = ran(*args, env=environment, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return done

    (tmp_path / "windy.yaml").write_text(
        "name: windy\ntrials: 1\nconfig: {traverse: {max_cycles: 3}}\ncontenders: [none, windy]\n"
    )
    (tmp_path / "run.py").write_text(
        "from mlnav import campaign\n"
        "if __name__ == '__main__':\n"
        "    windy = campaign.load_definition('windy.yaml', terrains=['windy'])\n"
        "    campaign.run(windy, 'out', workers=2)\n"
    )
    run(sys.executable, "run.py")
    replayed = run(MLNAV, "replay", "windy,0,windy", "-C", "out", "--no-picture", "--json")
    assert json.loads(replayed.stdout)["identical"] is True
    script = (
        "from mlnav import parts; from mlnav.config import Config;"
        "print(parts.names_of('heuristic')[-1],"
        "parts.provenance(Config().replaced(heuristic='windy'))['heuristic']['version'])"
    )
    assert run(sys.executable, "-c", script).stdout.split() == ["windy", "0.1.0"]
    message = run(MLNAV, "traverse", "--heuristic", "windi", code=2).stderr
    assert "did you mean 'windy'" in " ".join(message.split())


# ------------------------------------------------------------------------------------- terrains


def test_terrains_from_outside() -> None:
    dunes = load(example("terrain"), 3)
    assert dunes.sha256 == load(example("terrain"), 3).sha256
    assert dunes.sha256 != load(example("terrain"), 4).sha256
    assert canonical("./examples//parts/terrain.py:Dunes") == "examples/parts/terrain.py:Dunes"
    assert check_terrain(example("terrain")) == 0.1
    with pytest.raises(TerrainError, match="band, nodata and vertical unit are of GeoTIFFs"):
        load(example("terrain"), reading=library.Reading(band=2))


def test_a_name_is_checked_without_making_the_terrain(monkeypatch) -> None:
    def never(*args: object) -> None:
        raise AssertionError("generated")

    monkeypatch.setattr(library, "generate", never)
    assert check_terrain("10/.07") == 0.1
    assert check_terrain("demo") == 0.1
    for name, message in (("deno", "did you mean 'demo'"), ("90/.07", "no class 90/.07")):
        with pytest.raises(TerrainError, match=message):
            check_terrain(name)


# ------------------------------------------------------------------------------------- contracts

PREFIX = """
import numpy as np
from dataclasses import replace
from mlnav.core import HeightMap
from mlnav.nav import Plan
from mlnav.risk import RiskMap
from mlnav.sim import KinematicWorld, RoverState, TruthSensor
from mlnav.terrain import Terrain

class Heuristic:
    def __init__(self, settings, config):
        self.calls = 0
    def max_cells(self, cells):
        return cells
    def risk(self, local_map, pose):
        self.calls += 1
        return self.made(local_map, RiskMap(np.zeros((1, *local_map.shape)), 0.1, (0.0, 0.0)))

class Checker:
    def __init__(self, settings, model, cells):
        self.calls = 0
    def set_map(self, grid):
        pass
    def reasons(self, poses):
        self.calls += 1
        return self.made(np.zeros(len(poses), np.uint16))

class Planner:
    def __init__(self, settings, config, checker, cells, risk_cells):
        pass
    def plan(self, request):
        return self.made(request)

class World:
    def __init__(self, settings, config, terrain):
        self.world = KinematicWorld(terrain, config.rover_model())
    def place(self, pose):
        return self.world.place(pose)
    def execute(self, pose, motion):
        return self.made(self.world.execute(pose, motion))

class Sensor:
    def __init__(self, settings, config, terrain, rng):
        self.truth = TruthSensor(terrain, 8.0)
        self.max_cells = self.truth.max_cells
    def sense(self, state):
        return self.made(self.truth.sense(state))

class Localization:
    def __init__(self, settings, config, rng):
        pass
    def update(self, before, execution):
        return self.made(RoverState(execution.pose, before.settled, execution.pose))

class Source:
    calls = 0
    def terrain(self, seed):
        Source.calls += 1
        return self.made(Terrain(np.full((9, 9), 1.0), 0.1))
"""

BREACHES = [
    ("heuristic", "return good.p", "risk() gives a ndarray, no RiskMap"),
    ("heuristic", "return RiskMap(np.zeros((9, 99, 999)), 0.1, (0.0, 0.0))", "max_cells() says"),
    ("heuristic", "return replace(good, p=good.p + self.calls / 9)", "risk() gives two maps"),
    ("heuristic", "return replace(good, resolution_m=-1.0)", "resolution_m -1 is not positive"),
    ("heuristic", "return replace(good, origin_m=(np.nan, 0.0))", "are not finite"),
    ("heuristic", "return 1 / 0", "ZeroDivisionError: division by zero"),
    ("checker", "return good == 0", "must give 1 whole numbers"),
    ("checker", "return good[:, None]", "of shape"),
    ("checker", "return good + (1 << 14)", "must give bits of _core.REASONS"),
    ("checker", "return good + self.calls % 2", "two answers about the same poses"),
    ("checker", "return 1 / 0", "ZeroDivisionError"),
    ("planner", "return None", "plan() must give a Plan, not NoneType"),
    ("planner", "return Plan('gone')", "outcome 'gone' is none of"),
    ("planner", "return Plan('path')", "a path without a motion"),
    ("planner", "return Plan('path', length_m=np.nan)", "is not finite"),
    ("planner", "return Plan('path', length_m=99.0)", "checker verified rejects: "),
    ("world", "return None", "execute() gives a NoneType, no Execution"),
    ("world", "return replace(good, driven_m=np.nan)", "are not finite"),
    ("world", "return replace(good, driven_m=-1.0)", "driven_m -1 is negative"),
    ("world", "good.states.columns.pop('tilt_rad'); return good", "a row of tilt_rad"),
    ("sensor", "return good.z", "sense() gives a ndarray, no HeightMap"),
    ("sensor", "return replace(good, z=np.full(good.shape, np.nan))", "no height is known"),
    ("sensor", "return HeightMap(np.zeros((900, 900)), 0.1, (0.0, 0.0))", "max_cells is less"),
    ("localization", "return None", "update() gives a NoneType, no RoverState"),
    ("localization", "return replace(good, true_pose=(0.0, 0.0, 0.0))", "is not where the motion"),
    ("localization", "return replace(good, estimated_pose=(0.0, 0.0, np.inf))", "is not finite"),
    ("terrain", "return good.z", "terrain() gives a ndarray, no Terrain"),
    ("terrain", "return replace(good, z=good.z * self.calls)", "terrain(0) gives two terrains"),
    ("terrain", "return 1 / 0", "ZeroDivisionError"),
]


@pytest.mark.parametrize(("kind", "breach", "message"), BREACHES)
def test_a_breach_of_contract_names_the_part(kind, breach, message, tmp_path) -> None:
    base = {"terrain": "Source"}.get(kind, kind.capitalize())
    given = "local_map, good" if kind == "heuristic" else "good"
    source = f"{PREFIX}\nclass Mine({base}):\n    def made(self, {given}):\n        {breach}\n"
    (tmp_path / "mine.py").write_text(source)
    name = f"{tmp_path}/mine.py:Mine"
    with pytest.raises(PartError) as fault:
        if kind == "terrain":
            load(name, 0)
        else:
            part = {"name": name, "policy": "always"} if kind == "heuristic" else name
            traverse(level(), Config().replaced(**{kind: part}))
    assert str(fault.value).startswith(f"{kind} {name}: ")
    assert message in str(fault.value)


def test_a_planner_from_outside_keeps_out_of_zones(tmp_path) -> None:
    """Whatever it says: its motions are held against forbidden cells as well."""
    source = PREFIX + (
        "\nclass Mine(Planner):\n    def made(self, request):\n"
        "        return Plan('path', length_m=3.0)\n"
    )
    (tmp_path / "mine.py").write_text(source)
    config = Config().replaced(planner=f"{tmp_path}/mine.py:Mine")
    assert traverse(level(), config.replaced(["traverse.max_cycles=1"])).cycles
    zone = [(7.5, 9.0), (8.5, 9.0), (8.5, 11.0), (7.5, 11.0)]
    with pytest.raises(PartError, match="enters forbidden ground"):
        traverse(level(), config.replaced(keep_out=[zone]))
