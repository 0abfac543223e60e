import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from campaign_cases import content, tiny

from mlnav.campaign import CampaignError, Store, load, store
from mlnav.campaign.store import CYCLES, TRIALS, Writer, create, locked, part_path, writer_of
from mlnav.trials.records import Outcome, run_trial, unfinished


@pytest.fixture(scope="module")
def recipes(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("recipes")


@pytest.fixture(scope="module")
def outcomes(recipes) -> list[Outcome]:
    """Two trials of everyone, in an order of their own; the last has no run."""
    definition = tiny(recipes)
    trials = [t for k in (1, 0) for t in definition.trials_of([k])]
    return [*map(run_trial, trials[:-1]), unfinished(trials[-1], "crashed", "it died", 2)]


def made(folder: Path, recipes: Path, *parts: list[Outcome], **changes) -> Store:
    """A campaign with a part of each list of outcomes."""
    folder.mkdir(exist_ok=True)
    with locked(folder):
        create(folder, tiny(recipes, **changes))
        with Writer(folder, {"what": "run"}) as writer:
            for outcomes in parts:
                for outcome in outcomes:
                    writer.add(Outcome(dict(outcome.trial), outcome.cycles))
                writer.flush()
    return load(folder)


def test_tables_come_back_typed_and_in_the_definitions_order(tmp_path, recipes, outcomes) -> None:
    campaign = made(tmp_path, recipes, outcomes[:3], outcomes[3:])
    trials, cycles = campaign.trials(), campaign.cycles()
    assert trials.schema.equals(TRIALS)
    assert cycles.schema.equals(CYCLES)
    assert trials.schema.metadata[b"mlnav_schema"] == b"3"
    slots = [(r["terrain"], r["trial"], r["contender"]) for r in trials.to_pylist()]
    assert slots == [(g, k, c) for g in "ab" for k in (0, 1) for c in ("none", "sobel")]
    assert campaign.damaged == ()
    assert cycles.num_rows == sum(len(o.cycles) for o in outcomes)
    counts = [c["cycle"] for c in cycles.to_pylist() if c["key"] == trials["key"][1].as_py()]
    assert counts == list(range(len(counts)))
    lost = trials.to_pylist()[-3]
    by_key = {o.trial["key"]: o for o in outcomes}
    for row in trials.to_pylist():
        given = by_key[row["key"]].trial
        assert {k: row[k] for k in given} == given  # every float to the last bit
    assert lost["terrain"] == "b"


def test_a_store_is_read_in_two_lines(tmp_path, recipes, outcomes) -> None:
    made(tmp_path, recipes, outcomes)
    parts = tmp_path / "parts"
    polars = pytest.importorskip("polars")
    trials = polars.read_parquet(parts / "trials-*.parquet")
    assert trials.group_by("contender").agg(polars.col("success").mean()).height == 2
    assert polars.from_arrow(load(tmp_path).cycles()).height > 0
    pandas = pytest.importorskip("pandas")
    trials = pandas.read_parquet(part_path(tmp_path, "trials", 1))
    assert trials.groupby("contender")["driven_m"].mean()["none"] >= 5
    assert str(trials["recorded_utc"].dt.tz) == "UTC"
    duckdb = pytest.importorskip("duckdb")
    query = f"select contender, avg(ace_evaluations) from '{parts}/cycles-*.parquet' group by all"
    assert len(duckdb.sql(query).fetchall()) == 2


def test_the_newest_row_of_a_trial_counts_with_its_own_cycles(tmp_path, recipes, outcomes) -> None:
    again = Outcome(outcomes[0].trial | {"driven_m": 99.0}, outcomes[0].cycles[:2])
    again.trial["cycles"] = 2
    campaign = made(tmp_path, recipes, outcomes, [again], outcomes[1:3])
    assert campaign.trials().num_rows == len(outcomes)
    row = campaign.find(again.trial["key"])
    assert row["driven_m"] == 99.0
    assert campaign.cycles(row["key"]).num_rows == 2
    assert campaign.cycles().num_rows == 2 + sum(len(o.cycles) for o in outcomes[1:])


@pytest.mark.parametrize("name", ["10/.10", "10/0.1", "10/.1"])
def test_trials_of_a_class_are_found_however_it_is_written(tmp_path, recipes, name) -> None:
    (first, *_) = tiny(recipes, terrains=["10/0.1"]).trials_of([0])
    campaign = made(tmp_path, recipes, [unfinished(first, "hung", "")], terrains=["10/0.1"])
    assert campaign.find(f"{name},0,none")["key"] == first.key


def test_trials_are_found(tmp_path, recipes, outcomes) -> None:
    campaign = made(tmp_path, recipes, outcomes)
    key = outcomes[0].trial["key"]
    assert campaign.find(key)["key"] == campaign.find(key[:12])["key"] == key
    assert campaign.find("b,0,none")["trial"] == 0
    with pytest.raises(CampaignError, match="no trial 'c,0,none'"):
        campaign.find("c,0,none")
    with pytest.raises(CampaignError, match="8 trials fit ''"):
        campaign.find("")


# ------------------------------------------------------------------------------------------ damage


@pytest.mark.parametrize("kind", ["trials", "cycles"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_a_truncated_part_is_left_out_and_named(tmp_path, recipes, outcomes, kind, share) -> None:
    made(tmp_path, recipes, outcomes[:4], outcomes[4:])
    path = part_path(tmp_path, kind, 1)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    campaign = load(tmp_path)
    assert campaign.trials().num_rows == len(outcomes) - 4
    assert campaign.cycles().num_rows == sum(len(o.cycles) for o in outcomes[4:])
    assert len(campaign.damaged) == 1
    assert path.name in campaign.damaged[0]


def test_flipped_bits_are_damage(tmp_path, recipes, outcomes) -> None:
    made(tmp_path, recipes, outcomes[:4], outcomes[4:])
    for kind, number in (("trials", 1), ("cycles", 2)):
        path = part_path(tmp_path, kind, number)
        content = bytearray(path.read_bytes())
        for at in range(200, 260):
            content[at] ^= 0xFF
        path.write_bytes(content)
    campaign = load(tmp_path)
    campaign.verify()
    assert campaign.trials().num_rows == 0
    assert len(campaign.damaged) == 2


def test_a_part_whose_twin_is_gone_is_damaged(tmp_path, recipes, outcomes) -> None:
    made(tmp_path, recipes, outcomes[:4], outcomes[4:])
    part_path(tmp_path, "cycles", 1).unlink()
    campaign = load(tmp_path)
    assert campaign.trials().num_rows == len(outcomes) - 4
    assert "cycles-000001" in campaign.damaged[0]


def test_cycles_without_their_trials_count_nothing_and_go(tmp_path, recipes, outcomes) -> None:
    made(tmp_path, recipes, outcomes[:4], outcomes[4:])
    part_path(tmp_path, "trials", 2).unlink()
    (tmp_path / "parts" / ".trials-000009.parquet").write_text("half")
    campaign = load(tmp_path)
    assert campaign.damaged == ()
    assert campaign.cycles().num_rows == sum(len(o.cycles) for o in outcomes[:4])
    with locked(tmp_path), Writer(tmp_path, {"what": "resume"}) as writer:
        assert sorted(p.name for p in (tmp_path / "parts").iterdir()) == [
            "cycles-000001.parquet", "trials-000001.parquet",
        ]  # fmt: skip
        writer.add(outcomes[0])
    assert not part_path(tmp_path, "trials", 2).exists()
    assert part_path(tmp_path, "trials", 3).exists()


def test_columns_that_a_store_lacks_are_null(tmp_path, recipes, outcomes) -> None:
    made(tmp_path, recipes, outcomes[:4], outcomes[4:])
    path = part_path(tmp_path, "trials", 2)
    older = pq.read_table(path).drop_columns(["unsafe_states", "unsafe_json"])
    pq.write_table(older.replace_schema_metadata({"mlnav_schema": "3"}), path)
    campaign = Store(tmp_path)
    assert campaign.damaged == ()
    assert len(campaign.trials()) == len(outcomes)
    known = [n is not None for n in campaign.trials()["unsafe_states"].to_pylist()]
    assert known.count(False) == older.num_rows > 0
    assert any(known)


@pytest.mark.parametrize(("schema", "which"), [("4", "newer"), ("2", "older")])
def test_another_schema_is_refused(tmp_path, recipes, outcomes, schema, which) -> None:
    made(tmp_path, recipes, outcomes[:4], outcomes[4:])
    path = part_path(tmp_path, "trials", 2)
    table = pq.read_table(path)
    other = table.append_column("mood", pa.array(["fine"] * table.num_rows))
    pq.write_table(other.replace_schema_metadata({"mlnav_schema": schema}), path)
    with pytest.raises(
        CampaignError, match=rf"trials-000002.parquet is of schema {schema}.* {which} mlnav"
    ):
        load(tmp_path)


def test_folders_without_a_campaign_are_named(tmp_path, recipes) -> None:
    with pytest.raises(CampaignError, match="holds no campaign"):
        load(tmp_path / "nowhere")
    with pytest.raises(CampaignError, match="holds no campaign"):
        load(tmp_path)
    (tmp_path / "campaign.yaml").write_text("name: [")
    with pytest.raises(CampaignError, match=r"campaign.yaml: not YAML"):
        load(tmp_path)
    (tmp_path / "campaign.yaml").write_text(tiny(recipes).to_yaml())
    assert load(tmp_path).trials().num_rows == load(tmp_path).cycles().num_rows == 0
    (tmp_path / "provenance.json").write_text("[")
    with pytest.raises(CampaignError, match=r"provenance.json: cannot be read"):
        load(tmp_path)


def test_a_campaign_is_not_begun_over_another(tmp_path, recipes, outcomes) -> None:
    made(tmp_path, recipes, outcomes[:2])
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.*") if p.is_file()}
    with pytest.raises(CampaignError, match=r"holds a campaign already .* resume"):
        made(tmp_path, recipes, outcomes)
    assert {p: p.read_bytes() for p in before} == before


# ----------------------------------------------------------------------------------------- writing


def test_one_writer_at_a_time(tmp_path) -> None:
    assert writer_of(tmp_path) is None
    with locked(tmp_path):
        assert writer_of(tmp_path).startswith(f"process {os.getpid()} on ")
        said = f"being written by process {os.getpid()}"
        with pytest.raises(CampaignError, match=said), locked(tmp_path):
            pass
    assert writer_of(tmp_path) is None
    with locked(tmp_path):
        pass


def test_a_writer_that_is_killed_leaves_no_lock(tmp_path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from mlnav.campaign.store import locked\n"
        f"with locked(Path({str(tmp_path)!r})): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert writer_of(tmp_path) is None
    with locked(tmp_path):
        pass


def test_parts_are_written_after_a_while_and_at_the_end(
    tmp_path, recipes, outcomes, monkeypatch
) -> None:
    monkeypatch.setattr(store, "FLUSH_TRIALS", 3)
    monkeypatch.setattr(store, "FLUSH_LEAST_S", 600.0)
    monkeypatch.setattr(store, "FLUSH_MOST_S", 600.0)
    tmp_path.mkdir(exist_ok=True)
    with locked(tmp_path):
        create(tmp_path, tiny(recipes))
        with Writer(tmp_path, {"what": "run"}) as writer:
            counts = []
            for outcome in outcomes[:7]:
                writer.add(outcome)
                counts.append(load(tmp_path).trials().num_rows)
    assert counts == [0, 0, 3, 3, 3, 6, 6]
    campaign = load(tmp_path)
    assert campaign.trials().num_rows == 7
    assert set(campaign.trials()["run"].to_pylist()) == {0}
    assert {"what", "started_utc", "ended_utc"} <= set(campaign.provenance[0])


def test_a_disk_that_fills_costs_what_waited(tmp_path, recipes, outcomes, monkeypatch) -> None:
    whole = made(tmp_path / "whole", recipes, outcomes)
    folder = tmp_path / "full"
    made(folder, recipes, outcomes[:4])

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(store.os, "fsync", full)
        with (
            pytest.raises(CampaignError, match=r"No space left .*; 4 trials .* resume"),
            locked(folder),
            Writer(folder, {"what": "resume"}) as writer,
        ):
            for outcome in outcomes[4:]:
                writer.add(Outcome(dict(outcome.trial), outcome.cycles))
    assert [p.name for p in (folder / "parts").iterdir() if p.name.startswith(".")] == []
    assert load(folder).trials().num_rows == 4
    with locked(folder), Writer(folder, {"what": "resume"}) as writer:
        for outcome in outcomes[4:]:
            writer.add(Outcome(dict(outcome.trial), outcome.cycles))
    assert content(load(folder)) == content(whole)


def test_replay_files_are_trials(tmp_path, recipes, outcomes) -> None:
    made(tmp_path, recipes, outcomes)
    trial = next(tiny(recipes).trials_of([0]))
    with locked(tmp_path), Writer(tmp_path, {"what": "resume"}) as writer:
        writer.add_replay(trial.key, trial.as_dict())
    assert json.loads((tmp_path / "replays" / f"{trial.key}.json").read_text()) == trial.as_dict()


def test_ten_thousand_trials_are_small_and_load(tmp_path, recipes, outcomes) -> None:
    """As large as they would be: forty cycles a trial, no value twice."""
    rng = np.random.default_rng(0)
    source = next(o for o in outcomes if o.cycles)
    cycle = source.cycles[0]
    reals = [f.name for f in CYCLES if f.type == pa.float64()]

    def part(first: int, count: int) -> tuple[pa.Table, pa.Table]:
        rows = [
            source.trial
            | {"key": f"{i:016x}", "identity": f"{i * 7919:016x}", "trial": i, "cycles": 40,
               "run": 0, "driven_m": rng.normal()}
            for i in range(first, first + count)
        ]  # fmt: skip
        trials = pa.Table.from_pylist(rows, TRIALS)
        n = 40 * count
        columns = {f.name: pa.array([cycle[f.name]] * n, f.type) for f in CYCLES}
        columns |= {name: pa.array(rng.normal(size=n)) for name in reals}
        columns["key"] = pa.array(np.repeat([r["key"] for r in rows], 40))
        columns["trial"] = pa.array(np.repeat([r["trial"] for r in rows], 40), pa.int32())
        columns["cycle"] = pa.array(np.tile(np.arange(40), count), pa.int32())
        return trials, pa.Table.from_pydict(columns, CYCLES)

    made(tmp_path, recipes, trials=10_000)
    with locked(tmp_path), Writer(tmp_path, {"what": "run"}) as writer:
        for first in range(0, 10_000, 250):
            writer.add_part(*part(first, 250))
    size_mb = sum(p.stat().st_size for p in tmp_path.rglob("*") if p.is_file()) / 1e6
    assert size_mb < 500
    campaign = load(tmp_path)
    assert campaign.trials().num_rows == 10_000
    assert campaign.cycles().num_rows == 400_000
