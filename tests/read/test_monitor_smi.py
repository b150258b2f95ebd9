from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from scopedown.errors import InputError, UsageError
from scopedown.read import load
from scopedown.read.base import MonitorLog
from shared_data import SHARED, needs_shared

HEAD = "timestamp, index, name, utilization.gpu [%], power.draw [W]\n"


def read(folder: Path, text: str | bytes, tz: str | None = None) -> tuple[MonitorLog, tuple[str, ...]]:
    path = folder / "gpu.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    artifact = load(path, tz=tz)
    assert isinstance(artifact.content, MonitorLog)
    return artifact.content, artifact.warnings


def test_two_devices_and_missing_cells(tmp_path: Path) -> None:
    rows = (
        "2026/06/10 09:00:00.020, 1, H100, 33 %, 100.5 W\n"
        "2026/06/10 09:00:00.020, 0, A100, [N/A], 90 W\n"
        "2026/06/10 09:00:00.040, 0, A100, 7 %, [Not Supported]\n"
        "2026/06/10 09:00:00.040, 1, H100, 0 %, N/A\n"
    )
    log, warnings = read(tmp_path, HEAD + rows)
    assert log.device.tolist() == [0, 1, 0, 1]
    assert log.device_names == {0: "A100", 1: "H100"}
    assert log.period_ns == 20_000_000
    assert log.utilisation is not None
    assert np.isnan(log.utilisation[0])
    assert log.utilisation[1:].tolist() == [33, 7, 0]
    assert log.columns["power.draw"][:2].tolist() == [90, 100.5]
    assert not log.zone_known
    assert any("without a zone" in w for w in warnings)


def test_zone_shifts_to_utc(tmp_path: Path) -> None:
    text = HEAD + "2026/06/10 09:00:00.020, 0, H100, 33 %, 1 W\n2026/12/10 09:00:00.020, 0, H100, 33 %, 1 W\n"
    utc, _ = read(tmp_path, text)
    fixed, warnings = read(tmp_path, text, "+02:00")
    named, _ = read(tmp_path, text, "Europe/Berlin")
    hour = 3600 * 10**9
    assert (utc.time - fixed.time).tolist() == [2 * hour, 2 * hour]
    assert (utc.time - named.time).tolist() == [2 * hour, hour]
    assert fixed.zone_known
    assert not warnings
    with pytest.raises(UsageError, match="time zone"):
        read(tmp_path, text, "Mars/Olympus")


def test_repeated_header_bom_crlf_and_nounits(tmp_path: Path) -> None:
    head = "timestamp, uuid, utilization.gpu\r\n"
    rows = ("2026/06/10 09:00:00.020, GPU-b, 5\r\n", "2026/06/10 09:00:01.020, GPU-b, 6\r\n")
    log, warnings = read(tmp_path, b"\xef\xbb\xbf" + (head + rows[0] + head + rows[1]).encode())
    assert log.utilisation is not None
    assert log.utilisation.tolist() == [5, 6]
    assert log.device.tolist() == [0, 0]
    assert len(warnings) == 1


def test_lines_that_are_no_samples_are_counted(tmp_path: Path) -> None:
    text = HEAD + "Unable to determine the device handle\n2026/06/10 09:00:00.020, 0, H100, 1 %, 1 W\n2026/06/10 09:0"
    log, warnings = read(tmp_path, text)
    assert len(log.time) == 1
    assert log.period_ns is None
    assert any("2 lines are no samples (first: line 2)" in w for w in warnings)


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="timestamp column"):
        read(tmp_path, "index, name, utilization.gpu [%]\n0, H100, 3 %\n")
    with pytest.raises(InputError, match="no row with a stamp"):
        read(tmp_path, HEAD + "yesterday, 0, H100, 1 %, 1 W\n")
    with pytest.raises(InputError, match="no row"):
        read(tmp_path, HEAD)
    with pytest.raises(InputError, match="no date"):
        read(tmp_path, HEAD + "2026/13/45 09:00:00.020, 0, H100, 1 %, 1 W\n")


def test_stamps_that_go_back_are_sorted(tmp_path: Path) -> None:
    log, warnings = read(
        tmp_path, HEAD + "2026/06/10 09:00:02.000, 0, H, 2 %, 1 W\n2026/06/10 09:00:01.000, 0, H, 1 %, 1 W\n"
    )
    assert np.diff(log.time).min() > 0
    assert any("go back" in w for w in warnings)


@needs_shared
def test_public_files(tmp_path: Path) -> None:
    device = SHARED / "data" / "device"
    rtx, _ = read(tmp_path, gzip.decompress((device / "smi_query_rtx4090_vlm.csv.gz").read_bytes()))
    assert len(rtx.time) == 2619
    assert rtx.period_ns is not None
    assert abs(rtx.period_ns - 10**9) < 10**7
    assert rtx.device_names == {0: "NVIDIA GeForce RTX 4090"}
    repeated, warnings = read(tmp_path, (device / "smi_query_rtx2070.csv").read_bytes())
    assert len(repeated.time) == 224
    assert len(warnings) == 1
    power, _ = read(tmp_path, (device / "smi_power_100ms_rtxA4500.csv").read_bytes())
    assert power.utilisation is None
    assert power.columns["power.draw"][0] == 21.76
    with pytest.raises(InputError, match="without their header"):
        read(tmp_path, gzip.decompress((device / "smi_noheader_20gb.csv.gz").read_bytes()))
