"""Every device monitor's format, written from one plan: planted utilisation comes back exactly, nothing personal."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from make import monitors
from make.monitors import PERSONAL, Plan
from scopedown.account.contract import contract
from scopedown.account.monitored import monitored
from scopedown.account.phases import Phase
from scopedown.errors import InputError, UsageError
from scopedown.read import load
from scopedown.read.base import UNKNOWN, Artifact, Meaning, MonitorLog
from scopedown.read.monitor_amd import energy_between
from scopedown.terms import Category

PLAN = Plan([[0, 35, 100, 7, 62, 1], [10, 20, 30, 40, 50, 60]])


class Format(NamedTuple):
    kind: str
    write: Callable[[Plan], str]
    meaning: Meaning = Meaning.KERNEL_RAN
    placed: bool = True
    one: bool = False
    """One look only: the first sample."""


def looks(write: Callable[[Plan, int], str]) -> Callable[[Plan], str]:
    return lambda p: "".join(write(p, k) for k in range(p.samples))


FORMATS = {
    "csv": Format("nvidia-smi-csv", monitors.smi_csv),
    "csv-nounits": Format("nvidia-smi-csv", lambda p: monitors.smi_csv(p, units=False, blank="[Not Supported]")),
    "csv-uuid": Format("nvidia-smi-csv", lambda p: monitors.smi_csv(p, by="uuid")),
    "csv-bus": Format("nvidia-smi-csv", lambda p: monitors.smi_csv(p, by="pci.bus_id", blank="N/A")),
    "xml": Format("nvidia-smi-xml", looks(monitors.smi_xml)),
    "xml-470": Format("nvidia-smi-xml", looks(lambda p, k: monitors.smi_xml(p, k, 470))),
    "q": Format("nvidia-smi-look", looks(monitors.smi_q)),
    "table": Format("nvidia-smi-look", looks(monitors.smi_table)),
    "dmon": Format("nvidia-smi-dmon", monitors.dmon),
    "dmon-csv": Format("nvidia-smi-dmon", lambda p: monitors.dmon(p, comma=True)),
    "rocm-json": Format("rocm-smi", monitors.rocm_json, Meaning.GFX_BUSY, False, True),
    "rocm-csv": Format("rocm-smi", monitors.rocm_csv, Meaning.GFX_BUSY, False, True),
    "amd-csv": Format("amd-smi", monitors.amd_csv, Meaning.GFX_BUSY),
    "amd-json": Format("amd-smi", monitors.amd_json, Meaning.GFX_BUSY, False, True),
    "dcgm-dmon": Format("dcgm", monitors.dcgm_dmon, Meaning.ENGINE_ACTIVE, False),
    "dcgm": Format("dcgm", monitors.dcgm_scrapes, Meaning.ENGINE_ACTIVE),
    "dcgm-util": Format("dcgm", lambda p: monitors.dcgm_scrapes(p, engine=False)),
}


def read(folder: Path, text: str | bytes, tz: str | None = None) -> tuple[Artifact, MonitorLog]:
    path = folder / "any.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    artifact = load(path, tz=tz)
    assert isinstance(artifact.content, MonitorLog)
    return artifact, artifact.content


@pytest.mark.parametrize("name", FORMATS)
def test_planted_utilisation_comes_back(tmp_path: Path, name: str):
    f = FORMATS[name]
    artifact, log = read(tmp_path, f.write(PLAN))
    assert artifact.kind == f.kind
    assert log.meaning is f.meaning
    assert log.utilisation is not None
    assert log.placed is f.placed
    n = 1 if f.one else PLAN.samples
    for d, shares in enumerate(PLAN.shares):
        mine = log.device == d
        assert log.utilisation[mine].tolist() == shares[:n]
        if f.placed:
            assert log.time[mine].tolist() == [PLAN.end(k) for k in range(n)]
            assert log.period_ns == PLAN.period_ns
            assert round(float(log.utilisation[mine].sum()) * log.period_ns / 100) == PLAN.active_ns(d)
        else:
            assert (log.time == UNKNOWN).all()
            assert log.period_ns is None
            assert artifact.interval_ns is None
    clock = log.columns.get("clocks.current.sm", log.columns.get("clocks.current.graphics"))
    assert name == "table" or (clock is not None and set(clock.tolist()) == {PLAN.clock})
    assert bool(artifact.can_establish)
    assert any("date" in c for c in artifact.cannot_establish) is not f.placed


@pytest.mark.parametrize("name", [*FORMATS, "pmon", "capture"])
def test_nothing_personal_is_kept(tmp_path: Path, name: str):
    more = {"pmon": monitors.pmon, "capture": lambda p: monitors.capture(p, {"idle": 0, "load": 2})}
    artifact, _ = read(tmp_path, (more.get(name) or FORMATS[name].write)(PLAN))
    kept = repr(artifact)
    assert not [p for p in PERSONAL if p in kept]


@pytest.mark.parametrize("name", [n for n, f in FORMATS.items() if f.placed])
def test_samples_divide_the_phase_exactly(tmp_path: Path, name: str):
    _, log = read(tmp_path, FORMATS[name].write(PLAN))
    whole = [Phase(PLAN.start_ns, PLAN.end(PLAN.samples - 1), Category.UNACCOUNTED, "service")]
    for device in (0, 1):
        cut, said = monitored(whole, log, device)
        assert sum(p.ns for p in cut if p.category is Category.DEVICE_ACTIVE) == PLAN.active_ns(device)
        assert sum(p.ns for p in cut) == whole[0].ns
        assert not any(p.category is Category.UNACCOUNTED for p in cut)
        assert not said


@given(st.lists(st.lists(st.integers(0, 100), min_size=2, max_size=2), min_size=1, max_size=12), st.integers(0, 5))
def test_any_shares_in_a_long_period(pairs: list[list[int]], extra: int):
    """Of a period the driver sees its last second: that is divided, the rest stays unaccounted."""
    shares = [list(c) for c in zip(*pairs, strict=True)]
    p = Plan(shares, period_ns=(1 + extra) * 10**9)
    n = p.samples * 2
    log = MonitorLog(
        np.repeat([p.end(k) for k in range(p.samples)], 2), np.arange(n) % 2,
        np.array(pairs, np.float64).ravel(), p.period_ns, True, {0: "", 1: ""},
    )  # fmt: skip
    whole = [Phase(p.start_ns, p.end(p.samples - 1), Category.UNACCOUNTED, "service")]
    cut, _ = monitored(whole, log, 1)
    assert sum(c.ns for c in cut if c.category is Category.DEVICE_ACTIVE) == sum(shares[1]) * 10**7
    assert sum(c.ns for c in cut if c.category is Category.UNACCOUNTED) == p.samples * extra * 10**9
    assert [c.start for c in cut[1:]] == [c.end for c in cut[:-1]]


def test_of_several_devices_the_busiest_is_named(tmp_path: Path):
    _, log = read(tmp_path, monitors.smi_csv(PLAN))
    late = [Phase(PLAN.end(2), PLAN.end(5), Category.UNACCOUNTED, "service")]
    cut, said = monitored(late, log)
    assert sum(p.ns for p in cut if p.category is Category.DEVICE_ACTIVE) == (40 + 50 + 60) * 10**7
    assert "device 1 is taken, the busiest in the interval (50 % on average, the others 23 to 23 %)" in said[0]
    with pytest.raises(UsageError, match="device 7 is not in the monitor's log, which has 0, 1"):
        monitored(late, log, 7)
    cut, said = monitored([Phase(0, 10**9, Category.UNACCOUNTED, "service")], log)
    assert [p.category for p in cut] == [Category.UNACCOUNTED]
    assert "over the log, none of it in the interval" in said[0]


@pytest.mark.parametrize("name", ["csv", "xml", "q", "dcgm"])
def test_facts_reach_the_contract(tmp_path: Path, name: str):
    _, log = read(tmp_path, FORMATS[name].write(PLAN))
    fields = {f.name: f.value for f in contract({}, None, None, None, log)[0]}
    assert fields["device"] == "2 x NVIDIA H100 80GB HBM3"
    assert fields["driver"] == "550.54.15"
    assert str(fields["clocks"]).startswith("clocks.current.sm p50 1755 [1755..1755] MHz")
    assert str(fields["power"]).startswith("power.draw p50 640")
    assert str(fields["throttling"]).startswith("sw_power_cap in 12 of 12 samples")
    if name in ("xml", "q"):
        assert str(fields["clocks"]).endswith("at most 1980 MHz")
        assert str(fields["power"]).endswith("at most 700 W")


def test_facts_of_amd(tmp_path: Path):
    artifact, log = read(tmp_path, monitors.amd_json(Plan([[5]], name="AMD Instinct MI355X")))
    fields = {f.name: f.value for f in contract({}, None, None, None, log)[0]}
    assert fields["driver"] == "6.16.6"
    assert fields["throttling"] == "violation.ppt in 1 of 1 samples"
    assert artifact.extra["device_facts"] == {0: {"name": "AMD Instinct MI355X", "driver": "6.16.6"}}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8-sig"])
def test_redirection_of_another_shell(tmp_path: Path, encoding: str):
    text = monitors.smi_csv(PLAN).replace("\n", "\r\n")
    mark = "" if encoding == "utf-8-sig" else "\ufeff"
    _, log = read(tmp_path, (mark + text).encode(encoding))
    assert log.utilisation is not None
    assert log.utilisation[log.device == 0].tolist() == PLAN.shares[0]


@pytest.mark.parametrize("name", ["csv", "xml", "q", "table", "dmon"])
def test_local_times_take_the_zone(tmp_path: Path, name: str):
    artifact, log = read(tmp_path, FORMATS[name].write(PLAN), tz="+02:00")
    assert log.zone_known
    assert int(log.time[0]) == PLAN.end(0) - 2 * 3600 * 10**9
    assert not any("without a zone" in w for w in artifact.warnings)


def test_without_a_header_the_device_must_be_certain(tmp_path: Path):
    for by in ("index", "uuid", "pci.bus_id"):
        artifact, log = read(tmp_path, monitors.smi_csv(PLAN, header=False, by=by))
        assert artifact.kind == "nvidia-smi-csv"
        assert log.utilisation is None
        assert log.columns["percent.1"][log.device == 1].tolist() == PLAN.shares[1]
        assert set(log.columns["mhz.1"]) == {PLAN.clock}
        assert any("known by their unit only" in w for w in artifact.warnings)
    one = Plan([PLAN.shares[0]])
    for text in (
        monitors.smi_csv(one, header=False),
        monitors.smi_csv(PLAN, header=False, units=False, by="index")[:70],
    ):
        with pytest.raises(InputError, match=r"put the header line back, or record with nvidia-smi --query-gpu="):
            read(tmp_path, text)


def test_one_look_has_no_rate(tmp_path: Path):
    for text in (monitors.smi_xml(PLAN, 1), monitors.smi_q(PLAN, 1), monitors.smi_table(PLAN, 1)):
        artifact, log = read(tmp_path, text)
        assert log.period_ns is None
        assert log.utilisation is not None
        assert log.utilisation.tolist() == [35, 20]
        assert any(c.startswith("a rate or a share of time: one look") for c in artifact.cannot_establish)
        phase = [Phase(0, PLAN.end(5), Category.UNACCOUNTED, "service")]
        assert monitored(phase, log) == (phase, [])


def test_a_capture_takes_its_looks_from_the_csv(tmp_path: Path):
    artifact, log = read(tmp_path, monitors.capture(Plan(PLAN.shares, period_ns=1_250_000_000), {"idle": 0, "load": 2}))
    assert artifact.version == "550.54.15"
    assert artifact.counts == {"samples": 4, "devices": 2, "looks": 2, "sections": 11, "passes": 2}
    assert log.period_ns is None
    assert log.utilisation is not None
    assert log.utilisation.tolist() == [0, 10, 100, 30]
    assert int(log.time[0]) % 10**9 == 250_000_000
    assert set(log.columns["clocks.max.sm"]) == {1980}
    assert log.facts[0]["mig"] == "Disabled"
    assert "what happened between the passes (idle, load)" in artifact.cannot_establish


def test_mig(tmp_path: Path):
    artifact, log = read(tmp_path, monitors.smi_table(Plan([[50]], mig=True), 0))
    assert log.utilisation is not None
    assert np.isnan(log.utilisation).all()
    assert any("N/A in every sample (MIG" in c for c in artifact.cannot_establish)
    assert contract({}, None, None, None, log)[0][0].value == "NVIDIA H100 80GB HBM3 (MIG enabled)"
    artifact, log = read(tmp_path, monitors.dcgm_scrapes(PLAN, profile="1g.10gb"))
    assert artifact.counts["mig_instances"] == 2
    assert log.device_names[0] == "NVIDIA H100 80GB HBM3 (MIG 1g.10gb)"
    assert log.utilisation is not None
    assert log.utilisation[log.device == 1].tolist() == PLAN.shares[1]


def test_dmon_without_a_date(tmp_path: Path):
    day = 86_400 * 10**9
    midnight = Plan([[1] * 30], start_ns=monitors.T0 // day * day - 15 * 10**9)
    artifact, log = read(tmp_path, monitors.dmon(midnight, date=False))
    assert (log.placed, log.period_ns) == (False, 10**9)
    assert any("-o DT" in w for w in artifact.warnings)
    artifact, log = read(tmp_path, monitors.dmon(PLAN, date=False, time=False))
    assert (log.placed, log.period_ns) == (False, None)
    assert log.columns["violation.power"].tolist() == [3] * 12


def test_pmon_gives_processes_no_utilisation(tmp_path: Path):
    artifact, log = read(tmp_path, monitors.pmon(PLAN))
    assert log.utilisation is None
    assert artifact.counts == {"samples": 12, "devices": 2, "processes": 4}
    assert log.columns["processes.sm"][log.device == 0].tolist() == PLAN.shares[0]
    assert any("their sum is not the device's" in c for c in artifact.cannot_establish)


def test_energy(tmp_path: Path):
    two = Plan([[1, 2], [3, 4]])
    artifact, log = read(tmp_path, monitors.amd_csv(two, energy=[[10.5, 20.0], [5.0, 5.5]]))
    assert log.columns["energy.total"].tolist() == [10.5, 5, 20, 5.5]
    assert any("unit is not in the file" in c for c in artifact.cannot_establish)
    artifact, log = read(tmp_path, monitors.amd_csv(two, energy=[[10.5, 20.0], [5.0, 4.5]]))
    assert "energy.total" not in log.columns
    assert any("energy counter of device 1 falls" in w for w in artifact.warnings)
    first = read(tmp_path, monitors.amd_csv(Plan([[1], [2]]), energy=[[10.0], [20.0]]))[1]
    last = read(tmp_path, monitors.amd_csv(Plan([[1], [2]]), energy=[[11.5], [20.0]]))[1]
    assert energy_between(first, last) == {0: 1.5, 1: 0}
    with pytest.raises(ValueError, match=r"device 0 falls from 11\.5 to 10"):
        energy_between(last, first)


def test_xml_that_declares_entities_or_is_cut(tmp_path: Path):
    text = monitors.smi_xml(PLAN, 0)
    bomb = text.replace('SYSTEM "nvsmi_device_v12.dtd"', '[<!ENTITY a "b"><!ENTITY c "&a;&a;">]')
    with pytest.raises(InputError, match="declares entities"):
        read(tmp_path, bomb)
    with pytest.raises(InputError, match="no look is whole"):
        read(tmp_path, text[:900])
    artifact, _ = read(tmp_path, text + text[:900])
    assert artifact.warnings[0] == "1 looks at the end are cut: left out"
    with pytest.raises(InputError, match="is no XML"):
        read(tmp_path, text.replace("</uuid>", "&what;</uuid>"))


@pytest.mark.parametrize(
    "text",
    [
        "# gpu   pwr\n# Idx     W\n",
        "#Entity   GPUTL\nID\n",
        "timestamp,gpu,gfx_activity\n",
        '[{"gpu": 0, "usage": {"gfx_',
        '{"card0": {"GPU use (%)": "1"',
        "Tue Jul 14 08:12:38 2026\n+----+\n| NVIDIA-SMI 550   Driver Version: 550 |\n",
    ],
)
def test_a_log_without_samples_is_refused_in_one_line(tmp_path: Path, text: str):
    with pytest.raises(InputError) as refused:
        read(tmp_path, text)
    assert "\n" not in str(refused.value)


@given(st.sampled_from(sorted(FORMATS)), st.integers(0, 4000), st.integers(0, 200))
def test_any_cut_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, name: str, begin: int, end: int):
    text = FORMATS[name].write(PLAN)
    path = tmp_path_factory.mktemp("cut") / "log"
    path.write_text(text[begin : len(text) - end] or "x", encoding="utf-8")
    with suppress(InputError):
        load(path)


@given(
    st.sampled_from(sorted(FORMATS)),
    st.integers(0, 10**6),
    st.sampled_from(["9" * 25, "nan", '"', "0xZZ", "1e999", "-"]),
)
def test_any_odd_value_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, name: str, at: int, odd: str):
    parts = re.split(r"(\d[\d.:]*)", FORMATS[name].write(PLAN))
    parts[(at % (len(parts) // 2)) * 2 + 1] = odd
    path = tmp_path_factory.mktemp("odd") / "log"
    path.write_text("".join(parts), encoding="utf-8")
    with suppress(InputError):
        load(path)


@pytest.mark.parametrize("text", ['[{"gpu": 0, "usage": ' + "[" * 10**5, '{"card0": {"x": ' + "[" * 10**5])
def test_deep_json_is_refused(tmp_path: Path, text: str):
    with pytest.raises(InputError, match="no whole JSON"):
        read(tmp_path, text)
