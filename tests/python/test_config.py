import json
import math
import re

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mlnav import _core
from mlnav.config import (
    Config,
    ConfigError,
    Enav,
    Limits,
    Network,
    NoHeuristic,
    Settle,
    Sobel,
    Verified,
    core_fields,
    generate,
    json_schema,
    load_config,
    numbers_of,
    parse_config,
)
from mlnav.config.section import filled, key_of
from mlnav.core import HeightMap
from mlnav.parts import SECTIONS, names_of
from mlnav.sim import traverse
from mlnav.terrain import Terrain, benchmark_class

# ------------------------------------------------------------------- what follows from the core


def test_generated_files_are_what_the_field_tables_give() -> None:
    """Otherwise: `python -m mlnav.config.generate`."""
    assert generate.FIELDS_FILE.read_text(encoding="utf-8") == generate.fields_module()
    assert generate.STUB_FILE.read_text(encoding="utf-8") == generate.stub()


@pytest.mark.parametrize("struct", sorted(_core.FIELDS))
def test_defaults_of_sections_are_those_of_the_core_to_the_last_bit(struct: str) -> None:
    section, core = getattr(core_fields, struct), getattr(_core, struct)
    sets = [({}, core())]
    if struct == "SafetyLimits":
        sets = [(numbers, getattr(core, name)()) for name, numbers in section.presets.items()]
    for numbers, expected in sets:
        # Every number another one at first, so that a field that is not filled shows.
        struct_filled = core()
        for field in _core.FIELDS[struct]:
            if field["type"] in ("float", "int"):
                setattr(struct_filled, field["name"], 77)
        filled(struct_filled, section(**numbers))
        for field in _core.FIELDS[struct]:
            name, found = field["name"], getattr(struct_filled, field["name"])
            if field["type"] in _core.FIELDS:
                assert type(found).__name__ == field["type"]  # a section of its own
            elif key_of(field) in section.model_fields:
                assert found == getattr(expected, name), name
            else:
                assert name in generate.NOT_SET_BY_USERS


@pytest.mark.parametrize("struct", sorted(_core.FIELDS))
def test_fields_describe_what_the_struct_has(struct: str) -> None:
    core = getattr(_core, struct)()
    for field in _core.FIELDS[struct]:
        value = getattr(core, field["name"])
        if field["type"] in _core.FIELDS:
            assert type(value) is getattr(_core, field["type"])
            continue
        assert value == field["default"]
        assert field["type"].startswith(type(value).__name__)
        assert (field["unit"] == "rad") == bool(re.search(r"(?<!_per)_rad$", field["name"]))
        for end, beyond in (("lo", -1), ("hi", 1)):
            if field["type"] in ("float", "int") and field[end] not in (None, math.inf):
                broken = getattr(_core, struct)()
                named = f"\\[{field['name']}\\]|incompatible"  # -1 is no size at all
                with pytest.raises((_core.CoreError, TypeError), match=named):
                    setattr(broken, field["name"], type(value)(field[end] + beyond))
                    broken.validate()


def test_faults_of_the_core_have_the_unit_of_the_field() -> None:
    config = _core.EnavConfig()
    config.commit_turn_rad = 0.0
    with pytest.raises(
        _core.CoreError, match=r"\[commit_turn_rad\] is 0 deg, must be 1 to 180 deg"
    ):
        config.validate()
    config = _core.EnavConfig()
    config.turn_cost_per_rad = -1.0
    with pytest.raises(_core.CoreError, match=r"is -1, must be 0 to 1000$"):
        config.validate()


def test_lists_of_the_core_hold_one_to_64_numbers() -> None:
    tree = _core.PathTreeConfig()
    for values in ([], [0.0] * 65):
        with pytest.raises(_core.CoreError, match="turn_rad needs 1 to 64 values"):
            tree.turn_rad = values
    tree.turn_rad = [0.5]
    assert tree.turn_rad == [0.5]


def test_the_certified_checker_with_flight_limits_is_the_default() -> None:
    config = Config()
    assert (config.checker, config.limits.name) == (Verified(), "flight_like")
    assert config.build_checker(100).name == "verified"


@pytest.mark.parametrize("name", names_of("checker"))
def test_every_checker_is_built_with_its_settings(name: str) -> None:
    assert Config().replaced(checker=name).build_checker(100).name == name


@pytest.mark.parametrize(
    ("setting", "checker"),
    [
        ("checker.enclosed_m=1", "verified"),
        ("checker.max_tries=0", "verified"),
        ("checker.max_tries=101", "verified"),
        ("checker.risk_max=1.5", "probabilistic"),
        ("checker.half_width_m=1", "verified"),
    ],
)
def test_settings_that_no_checker_has_are_refused(setting: str, checker: str) -> None:
    with pytest.raises(ConfigError, match=r"checker.*"):
        Config().replaced([setting], checker=checker)


def test_settings_reach_the_checker() -> None:
    """One box, or one large box, certifies fewer poses among rocks than several do."""
    ground = benchmark_class(0.0, 0.20, seed=3)
    poses = np.random.default_rng(0).uniform([10, 10, -3], [40, 40, 3], (400, 3))
    passed = []
    for settings in (
        [],
        ["checker.max_tries=1"],
        ["checker.max_tries=1", "checker.enclosed_m=0.05"],
    ):
        checker = Config().replaced(settings).build_checker(ground.z.size)
        checker.set_map(HeightMap.of(ground).grid)
        passed.append(int((checker.reasons(poses) == 0).sum()))
    assert passed[0] > passed[1] > passed[2]


def test_a_heuristic_brings_its_own_weight() -> None:
    for heuristic, pricing in ((Sobel(), (40.0, 0.3)), (Network(), (5.0, 0.1))):
        risk = Enav().to_core(heuristic).risk
        assert (risk.weight_per_m, risk.to_go_fraction) == pricing
        assert risk.fail_price == heuristic.fail_price == 2.0
    assert Enav().to_core(NoHeuristic()).risk.fail_price == 0.0


def test_a_heuristic_brings_its_own_policy() -> None:
    for heuristic in (Sobel(), Network(persist_cycles=7), NoHeuristic()):
        policy = Enav().to_core(heuristic).risk_policy
        assert (policy.ask, policy.persist_cycles) == (heuristic.policy, heuristic.persist_cycles)
    ours, core = Network(), _core.RiskPolicy()
    assert (ours.policy, ours.persist_cycles) == (core.ask, core.persist_cycles)


def test_the_order_of_poses_reaches_the_core() -> None:
    assert Enav().to_core().riskiest_first
    assert not Config().replaced(["planner.riskiest_first=false"]).planner.to_core().riskiest_first


def test_the_baseline_has_no_policy_to_set() -> None:
    assert "policy" not in yaml.safe_load(Config().to_yaml())["heuristic"]
    with pytest.raises(ConfigError, match="'policy'"):
        parse_config("heuristic: {name: none, policy: always}")


# ------------------------------------------------------------------------------------- YAML in, out


def test_default_survives_yaml() -> None:
    assert parse_config(Config().to_yaml()) == Config()
    assert parse_config("") == Config()


@given(
    tilt=st.floats(1.0, 44.0),
    turn=st.floats(0.0, 100.0),
    budget=st.none() | st.integers(1, 10**6),
    checker=st.sampled_from(names_of("checker")),
    heuristic=st.sampled_from(names_of("heuristic")),
    base=st.sampled_from(sorted(Limits.presets)),
    zone=st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 2), min_size=3, max_size=5),
)
def test_any_configuration_survives_yaml(
    tilt, turn, budget, checker, heuristic, base, zone
) -> None:
    config = Config.model_validate(
        {
            "limits": {"base": base, "tilt_max_deg": tilt},
            "planner": {"turn_cost": turn},
            "traverse": {"ace_budget": budget},
            "checker": checker,
            "heuristic": {"name": heuristic},
            "keep_out": [zone],
        }
    )
    assert parse_config(config.to_yaml()) == config


def test_degrees_become_radians() -> None:
    config = Config().replaced(["limits.tilt_max_deg=20", "planner.commit_turn_deg=45"])
    assert config.limits.to_core().tilt_max_rad == math.radians(20)
    assert config.planner.to_core().commit_turn_rad == math.radians(45)
    assert config.limits.name == "custom"


def test_names_are_short_for_sections() -> None:
    config = parse_config("checker: settle\nheuristic: sobel\nlimits: flight_like\n")
    assert config.checker == Settle()
    assert config.heuristic == Sobel()
    assert config.limits.clearance_min_m == 0.20
    assert config.limits.name == "flight_like"


def test_parts_and_settings_replace_in_order() -> None:
    config = Config().replaced(
        ["checker.half_width_m=0.3", "traverse.max_cycles=7", "keep_in=[[[0,0],[1,0],[1,1]]]"],
        checker="fixed_box",
        heuristic="sobel",
        planner=None,
    )
    assert config.checker.half_width_m == 0.3
    assert config.traverse.max_cycles == 7
    assert config.heuristic.name == "sobel"
    assert len(config.keep_in) == 1
    assert Config().traverse.max_cycles != 7


def test_wheel_drop_of_a_box_is_no_limit_of_settled_states() -> None:
    enav, flight = Config().replaced(limits="enav_like"), Config()
    assert enav.rover_model().limits.wheel_drop_max_m == 0.22
    assert math.isinf(enav.rover_model().limits.relief_max_m)
    assert flight.rover_model().limits.relief_max_m == 0.30


# ----------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("planer: enav", ["'planer'", "did you mean 'planner'"]),
        ("planner: {comit_length_m: 1}", ["planner:", "did you mean 'commit_length_m'"]),
        ("planner: {tree: {turn_dg: [1]}}", ["planner.tree:", "did you mean 'turn_deg'"]),
        ("limits: {base: enav_like, tilt_max: 3}", ["limits:", "did you mean 'tilt_max_deg'"]),
        ("checker: fixed_bx", ["checker:", "did you mean 'fixed_box'"]),
        ("checker: {name: settle, half_length_m: 1}", ["checker:", "'half_length_m'"]),
        ("world: bulet", ["world", "did you mean 'bullet'"]),
        ("heuristic: {name: 3}", ["heuristic:", "'3'"]),
        ("heuristic: netwrk", ["heuristic:", "did you mean 'network'"]),
        ("heuristic: {name: sobel, policy: sometimes}", ["heuristic.policy", "on_failure"]),
        ("heuristic: {name: network, threads: 0}", ["heuristic.threads"]),
        ("heuristic: {name: network, model: ''}", ["heuristic.model"]),
        ("heuristic: {name: network, bins: 8}", ["heuristic:", "'bins'"]),
        ("heuristic: {name: oracle, bins: 0}", ["heuristic.bins"]),
        ("heuristic: {name: oracle, reach_m: 0}", ["heuristic.reach_m"]),
        ("limits: flight", ["limits:", "did you mean 'flight_like'"]),
        ("limits: {tilt_max_deg: 3}", ["limits.clearance_min_m", "required"]),
        ("limits: {base: enav_like, tilt_max_deg: steep}", ["limits.tilt_max_deg"]),
        (
            "limits: {base: enav_like, tilt_max_deg: 95}",
            ["limits.tilt_max_deg: is 95, must be at most 44.999"],
        ),
        ("sensor: {half_width_m: .nan}", ["sensor.half_width_m", "finite"]),
        ("sensor: {half_width_m: .inf}", ["sensor.half_width_m", "finite"]),
        ("planner: {turn_cost: -1}", ["planner.turn_cost"]),
        ("planner: {tree: {turn_deg: [0, a]}}", ["planner.tree.turn_deg.1"]),
        ("planner: {tree: {turn_deg: []}}", ["planner.tree.turn_deg"]),
        ("traverse: {max_cycles: 0}", ["traverse.max_cycles"]),
        ("traverse: 3", ["traverse"]),
        ("keep_out: [[[0, 1], [1, 2]]]", ["keep_out.0", "three points"]),
        ("traverse: {max_cycles: 1, max_cycles: 2}", ["'max_cycles'", "twice"]),
        ("a: [", ["not YAML"]),
        ("- 1", ["mapping"]),
    ],
)
def test_faults_are_named(text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as fault:
        parse_config(text, "mine.yaml")
    message = str(fault.value)
    assert "\n" not in message
    for word in ["mine.yaml", *words]:
        assert word in message, message


@pytest.mark.parametrize(
    "setting", ["planner", "=1", "planner.=1", "planner.turn_cost.x=1", "planner.turn_cost=[", ""]
)
def test_bad_settings_are_refused(setting: str) -> None:
    with pytest.raises(ConfigError):
        Config().replaced([setting])


def test_files_that_cannot_be_read_are_named(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        load_config(tmp_path / "nowhere.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"bytes\.yaml"):
        load_config(tmp_path / "bytes.yaml")


def test_what_only_the_core_can_refuse_is_a_config_error_too() -> None:
    with pytest.raises(ConfigError, match="planner"):
        Config().replaced(["planner.tree.ace_step_m=0.7"]).planner.to_core()
    with pytest.raises(ConfigError, match="front_x_m"):
        Config().replaced(["rover.front_x_m=-3"]).rover_model()


# ------------------------------------------------------------------------------------------- schema


def test_schema_knows_every_name_and_key() -> None:
    schema = json.loads(json.dumps(json_schema()))
    assert set(schema["properties"]) == set(Config.model_fields)
    for kind in SECTIONS:
        named = schema["properties"][kind]["anyOf"][0]["anyOf"][0]
        assert named["enum"] == names_of(kind)
    assert schema["$defs"]["Enav"]["additionalProperties"] is False
    assert "ACE" in schema["$defs"]["Enav"]["properties"]["overthink_evaluations"]["description"]
    assert yaml.safe_load(Config().to_yaml()).keys() == schema["properties"].keys()


def test_a_commitment_between_checked_poses_is_refused_with_the_step() -> None:
    with pytest.raises(ConfigError, match=r"commit_length_m.*steps of 0\.25 m"):
        Config().replaced(["planner.commit_length_m=0.6"])


# ----------------------------------------------------------------- the core's ranges, at load time


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        (
            "planner.overthink_evaluations=0",
            r"planner\.overthink_evaluations: is 0, must be at least 1",
        ),
        ("planner.visit_radius_m=20", r"planner\.visit_radius_m: is 20, must be at most 10"),
        ("planner.memory_poses=200000", r"memory_poses: is 200000, must be at most 100000"),
        ("planner.commit_turn_deg=0.5", r"commit_turn_deg: is 0\.5, must be at least 1"),
        ("planner.costmap.tilt_scale_deg=91", r"tilt_scale_deg: is 91, must be at most 90"),
        ("planner.tree.turn_deg=[0, 200]", r"turn_deg\.1: is 200, must be at most 180"),
        ("checker.half_length_m=2", r"checker\.half_length_m: is 2, must be at most 1"),
        ("limits.tilt_max_deg=60", r"limits\.tilt_max_deg: is 60, must be at most 44\.999"),
        ("world.limits.bogie_max_deg=80", r"world\.limits\.bogie_max_deg: is 80, must be at most"),
        # Ranges that other fields decide are the core's to hold.
        ("rover.pan_rear_x_m=1", r"\[pan_rear_x_m\] is 1, must be -20 to 0\.899"),
        ("limits.clearance_min_m=0.7", r"\[clearance_min_m\] is 0\.7, must be 0 to 0\.6"),
        ("planner.commit_length_m=4", r"\[commit_length_m\] is 4, must be 0\.25 to 3"),
    ],
)
def test_what_the_core_refuses_is_refused_when_it_is_read(setting: str, told: str) -> None:
    config = Config().replaced(["world.limits=enav_like"])
    checker = "fixed_box" if "half_length" in setting else None
    with pytest.raises(ConfigError, match=told):
        config.replaced([setting], checker=checker)


@pytest.mark.parametrize("checker", names_of("checker"))
def test_every_number_that_is_accepted_is_accepted_by_the_core(checker: str) -> None:
    """Whatever number is tried at whatever key: a configuration is refused, or it can be used."""
    base = Config().replaced(checker=checker, heuristic="sobel", sensor="stereo", world="bullet")
    tried = refused = 0
    for key in numbers_of("", base):
        path = key.removeprefix(".")
        for value in (-1e9, -1.0, 0.0, 1e-9, 0.3, 1.0, 7.0, 100.0, 1e5, 1e9):
            try:
                config = base.with_values({path: value})
            except ConfigError as fault:
                assert path.split(".")[-1] in str(fault) or "must" in str(fault), str(fault)
                refused += 1
                continue
            tried += 1
            _core.EnavPlanner(config.to_core_planner(100), config.build_checker(100))
    assert tried > 200 and refused > 200


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("planner: {commit_length_m: 010}", "010 would be read as 8"),
        ("planner: {commit_length_m: 12:30}", "12:30 would be read as 750"),
        ("planner: {commit_length_m: 1:30.5}", r"1:30\.5 would be read as 90\.5"),
        ("planner: {memory_poses: 1_000}", "1_000 would be read as 1000"),
        ("planner: {short_paths: yes}", "yes would be read as true"),
        ("planner: {short_paths: off}", "off would be read as false"),
        ("planner: {commit_length_m: true}", "commit_length_m is a number, not true or false"),
        ("planner: {tree: {turn_deg: [0, true]}}", "turn_deg is a number, not true or false"),
    ],
)
def test_numbers_that_yaml_reads_as_something_else_are_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_config(text)
    key, value = text.removesuffix("}").replace("planner: {", "planner.").split(": ", 1)
    if "tree" not in key:
        with pytest.raises(ConfigError, match=told):
            Config().replaced([f"{key}={value}"])


def test_numbers_written_plainly_are_read() -> None:
    text = "planner: {memory_poses: 0x10, short_paths: false, commit_length_m: 1.0e+0}"
    planner = parse_config(text).planner
    assert (planner.memory_poses, planner.short_paths, planner.commit_length_m) == (16, False, 1.0)


# --------------------------------------------------------------------------------- what was built


@pytest.mark.parametrize(
    "parts",
    [
        {"checker": "verified", "heuristic": "sobel"},
        {"checker": "probabilistic", "limits": "enav_like", "heuristic": "oracle"},
        {"checker": "fixed_box", "limits": "enav_like", "heuristic": "failures"},
        {"sensor": "stereo", "localization": "wheel", "heuristic": "network"},
    ],
)
def test_every_number_is_read_back_from_what_was_built(parts: dict) -> None:
    """Every number changed, so that a default that stayed would show."""
    config = Config().replaced(**parts)
    changed: dict[str, float] = {}
    for key, value in numbers_of("", config).items():
        path = key.removeprefix(".")
        for new in (value * 0.98, value * 1.02, value + 1, value - 1):
            try:
                config = config.with_values({path: new})
            except ConfigError:
                continue
            changed[path] = new
            break
    assert len(changed) > 45
    terrain = Terrain(np.zeros((300, 300)), 0.1)
    result = traverse(
        terrain, config.replaced(["traverse.max_cycles=1"]), (10.0, 15.0), (25.0, 15.0)
    )
    changed["traverse.max_cycles"] = 1
    whole_cells = {"sensor.half_width_m": 0.1}
    for path, value in changed.items():
        assert result.built[path] == pytest.approx(
            value, rel=1e-9, abs=whole_cells.get(path, 0.0)
        ), path
