"""The public files of device monitors: what each is taken for, and facts of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scopedown.account.contract import contract
from scopedown.inspection import inspect
from scopedown.read import load
from scopedown.read.base import Meaning, MonitorLog
from scopedown.read.monitor_amd import energy_between
from shared_data import SHARED, needs_shared

pytestmark = needs_shared
DATA = SHARED / "data"

TABLE: dict[str, tuple[str | None, dict[str, int]]] = {
    "device/amd_smi_energy_end.csv": ("amd-smi", {"samples": 8, "devices": 8}),
    "device/amd_smi_energy_start.csv": ("amd-smi", {"samples": 8, "devices": 8}),
    "device/amd_smi_identity_mi355x.json.gz": ("amd-smi", {"samples": 8, "devices": 8}),
    "device/rocm_smi_mi100.json": ("rocm-smi", {"samples": 4, "devices": 4}),
    "device/smi_capture_h100.txt.gz": ("nvidia-smi-look", {"samples": 2, "devices": 1, "looks": 2, "passes": 2}),
    "device/smi_capture_h200_mig.txt.gz": ("nvidia-smi-look", {"samples": 2, "mig_instances": 5, "passes": 2}),
    "device/smi_noheader_20gb.csv.gz": (None, {}),
    "device/smi_power_100ms_rtxA4500.csv": ("nvidia-smi-csv", {"samples": 163, "devices": 1}),
    "device/smi_query_rtx2070.csv": ("nvidia-smi-csv", {"samples": 224, "devices": 1}),
    "device/smi_query_rtx4090_vlm.csv.gz": ("nvidia-smi-csv", {"samples": 2619, "devices": 1}),
    "device/smi_rtx4090.xml.gz": ("nvidia-smi-xml", {"samples": 1, "devices": 1, "looks": 1}),
    "metrics/dcgm_netdata_all_fields.txt": (None, {}),
}


@pytest.mark.parametrize("name", TABLE)
def test_inspect_says_what_it_is(name: str):
    kind, counts = TABLE[name]
    found = inspect([DATA / name])[0]
    assert found.kind == kind
    assert counts.items() <= found.counts.items()
    assert found.why if kind is None else found.cannot_establish


def test_the_table_has_every_file():
    assert {f"device/{p.name}" for p in (DATA / "device").iterdir()} == {n for n in TABLE if n.startswith("device/")}


def log_of(name: str) -> MonitorLog:
    content = load(DATA / "device" / name).content
    assert isinstance(content, MonitorLog)
    return content


def facts(name: str) -> dict[str, str | None]:
    return {f.name: f.value for f in contract({}, None, None, None, log_of(name))[0]}


def test_refusals_say_what_to_record():
    why = inspect([DATA / "device/smi_noheader_20gb.csv.gz"])[0].why or ""
    assert "without their header" in why
    assert "nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu" in why
    why = inspect([DATA / "metrics/dcgm_netdata_all_fields.txt"])[0].why or ""
    assert "list of DCGM field names" in why


def test_captures_have_two_passes():
    h100 = log_of("smi_capture_h100.txt.gz")
    assert h100.period_ns is None
    assert h100.utilisation is not None
    assert h100.utilisation.tolist() == [0, 100]
    assert np.diff(h100.time).tolist() == [14_657_000_000]
    said = facts("smi_capture_h100.txt.gz")
    assert said["device"] == "NVIDIA H100 80GB HBM3"
    assert said["driver"] == "590.48.01"
    assert said["clocks"] == "clocks.current.sm p50 345 [345..1980] MHz, at most 1980 MHz"
    assert said["power"] == "power.draw p50 69.85 [69.85..631.95] W, at most 700 W"
    assert said["throttling"] == "none in 2 samples"
    mig = log_of("smi_capture_h200_mig.txt.gz")
    assert mig.utilisation is not None
    assert np.isnan(mig.utilisation).all()
    assert facts("smi_capture_h200_mig.txt.gz")["device"] == "NVIDIA H200 (MIG enabled)"


def test_captures_keep_no_process():
    for name in ("smi_capture_h100.txt.gz", "smi_capture_h200_mig.txt.gz"):
        kept = repr(load(DATA / "device" / name))
        assert not [w for w in ("gpu_burn", "memhog", "11345", "12267", "/root/") if w in kept]


def test_one_look_as_xml():
    log = log_of("smi_rtx4090.xml.gz")
    assert log.period_ns is None
    said = facts("smi_rtx4090.xml.gz")
    assert said["clocks"] == "clocks.current.sm p50 210 [210..210] MHz, at most 3120 MHz"
    assert said["driver"] == "535.86.05"
    assert said["power"] == "power.draw p50 26.84 [26.84..26.84] W, at most 450 W"


def test_amd():
    mi100 = log_of("rocm_smi_mi100.json")
    assert mi100.meaning is Meaning.GFX_BUSY
    assert mi100.columns["power.draw"].tolist()[:2] == [36, 44]
    assert facts("rocm_smi_mi100.json")["driver"] == "6.3.6"
    mi355 = facts("amd_smi_identity_mi355x.json.gz")
    assert mi355["device"] == "8 x AMD Instinct MI355X"
    assert str(mi355["clocks"]).endswith("at most 2400 MHz")
    with pytest.raises(ValueError, match="energy counter of device 0 falls"):
        energy_between(log_of("amd_smi_energy_start.csv"), log_of("amd_smi_energy_end.csv"))


def test_periods():
    power = load(DATA / "device/smi_power_100ms_rtxA4500.csv")
    assert isinstance(power.content, MonitorLog)
    assert power.content.period_ns == 100_000_000
    vlm = load(Path(DATA / "device/smi_query_rtx4090_vlm.csv.gz"))
    assert vlm.can_establish[0] == "whether a device was active, in windows of 1003 ms"
