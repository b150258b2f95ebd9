"""Writers of every device monitor's format from one plan, whose truth is exact: the share of each period in which a
device was active is a whole per cent. Where the tool prints processes they are there, with a name and a user in them.
"""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field
from typing import Any

#: What no reader may keep.
PERSONAL = ("/home/alice/secret_train.py", "secret_train", "alice", "node17.example", "4242424", "SN0123456789")
_PROGRAM, _PID, _HOST, _SERIAL = PERSONAL[0], PERSONAL[4], PERSONAL[3], PERSONAL[5]
T0 = 1_780_000_000 * 10**9
LOOK_S = "%a %b %e %H:%M:%S %Y"


@dataclass(frozen=True)
class Plan:
    """``shares[d][k]``: per cent of period k in which device d was active."""

    shares: list[list[int]]
    period_ns: int = 10**9
    start_ns: int = T0
    name: str = "NVIDIA H100 80GB HBM3"
    clock: int = 1755
    watt: int = 640
    reasons: int = 0x4
    mig: bool = False
    uuids: list[str] = field(default_factory=lambda: [f"GPU-0000000{d}-1111-2222-3333-444444444444" for d in range(9)])

    @property
    def samples(self) -> int:
        return len(self.shares[0])

    def end(self, k: int) -> int:
        return self.start_ns + (k + 1) * self.period_ns

    def active_ns(self, device: int) -> int:
        return sum(s * self.period_ns for s in self.shares[device]) // 100

    def when(self, k: int) -> dt.datetime:
        return dt.datetime.fromtimestamp(self.end(k) // 10**9, dt.UTC)


def smi_csv(p: Plan, *, header: bool = True, units: bool = True, by: str = "index", blank: str = "[N/A]") -> str:
    """``by``: the column that names the device (index, uuid, pci.bus_id)."""
    u = (" %", " MHz", " W") if units else ("", "", "")
    fields = f"timestamp, {by}, name, utilization.gpu [%], clocks.current.sm [MHz], power.draw [W], "
    lines = [f"{fields}clocks_event_reasons.active, driver_version, fan.speed [%]"] if header else []
    for k in range(p.samples):
        stamp = f"{p.when(k):%Y/%m/%d %H:%M:%S}.{p.end(k) % 10**9 // 10**6:03d}"
        for d, shares in enumerate(p.shares):
            who = {"index": str(d), "uuid": p.uuids[d], "pci.bus_id": bus(d)}[by]
            values = f"{shares[k]}{u[0]}, {p.clock}{u[1]}, {p.watt}.50{u[2]}, {p.reasons:#018x}, 550.54.15, {blank}"
            lines.append(f"{stamp}, {who}, {p.name}, {values}")
    return "\n".join(lines) + "\n"


def bus(device: int) -> str:
    return f"00000000:{device + 1:02X}:00.0"


def smi_xml(p: Plan, k: int, driver: int = 550) -> str:
    """One look, as drivers before and after 535 name what limits the clocks."""
    word = "event" if driver >= 535 else "throttle"
    power = "gpu_power_readings" if driver >= 535 else "power_readings"
    gpus = []
    for d, shares in enumerate(p.shares):
        gpus.append(f"""<gpu id="{bus(d)}"><product_name>{p.name}</product_name><serial>{_SERIAL}</serial>
<uuid>{p.uuids[d]}</uuid><mig_mode><current_mig>{"Enabled" if p.mig else "N/A"}</current_mig></mig_mode>
<pci><pci_bus_id>{bus(d)}</pci_bus_id></pci>
<clocks_{word}_reasons><clocks_{word}_reason_gpu_idle>Not Active</clocks_{word}_reason_gpu_idle>
<clocks_{word}_reason_sw_power_cap>{"Active" if p.reasons & 4 else "Not Active"}</clocks_{word}_reason_sw_power_cap>
</clocks_{word}_reasons><utilization><gpu_util>{shares[k]} %</gpu_util></utilization>
<{power}><power_draw>{p.watt}.00 W</power_draw><current_power_limit>700.00 W</current_power_limit></{power}>
<clocks><sm_clock>{p.clock} MHz</sm_clock></clocks><max_clocks><sm_clock>1980 MHz</sm_clock></max_clocks>
<processes><process_info><pid>{_PID}</pid><process_name>{_PROGRAM}</process_name></process_info></processes></gpu>""")
    return f"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log><timestamp>{p.when(k):{LOOK_S}}</timestamp><driver_version>{driver}.54.15</driver_version>
<attached_gpus>{len(p.shares)}</attached_gpus>
{"".join(gpus)}</nvidia_smi_log>
"""


def smi_q(p: Plan, k: int) -> str:
    lines = ["", "==============NVSMI LOG==============", "", _pair(0, "Timestamp", f"{p.when(k):{LOOK_S}}")]
    lines += [_pair(0, "Driver Version", "550.54.15"), "", _pair(0, "Attached GPUs", str(len(p.shares)))]
    for d, shares in enumerate(p.shares):
        lines += [f"GPU {bus(d)}", _pair(4, "Product Name", p.name), "    MIG Mode"]
        lines += [_pair(8, "Current", "Enabled" if p.mig else "Disabled"), _pair(4, "Serial Number", _SERIAL)]
        lines += [_pair(4, "GPU UUID", p.uuids[d]), "    Clocks Event Reasons", _pair(8, "Idle", "Not Active")]
        lines += [_pair(8, "SW Power Cap", "Active" if p.reasons & 4 else "Not Active")]
        lines += [_pair(8, "HW Slowdown", "Not Active"), _pair(12, "HW Thermal Slowdown", "Not Active")]
        lines += ["    Utilization", _pair(8, "GPU", f"{shares[k]} %"), "    GPU Power Readings"]
        lines += [_pair(8, "Average Power Draw", f"{p.watt}.00 W"), _pair(8, "Current Power Limit", "700.00 W")]
        lines += ["    Clocks", _pair(8, "SM", f"{p.clock} MHz"), "    Max Clocks", _pair(8, "SM", "1980 MHz")]
        lines += ["    Processes", _pair(8, "Process ID", _PID), _pair(12, "Name", _PROGRAM)]
    return "\n".join(lines) + "\n"


def _pair(indent: int, key: str, value: str) -> str:
    return f"{' ' * indent + key:<55}: {value}"


def smi_table(p: Plan, k: int) -> str:
    line = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"
    rows = []
    for d, shares in enumerate(p.shares):
        mig = "Enabled" if p.mig else "Disabled"
        util = "N/A" if p.mig else f"{shares[k]}%"
        rows += [
            f"|   {d}  {p.name:<28}    On  |   {bus(d)} Off |                    0 |",
            f"| N/A   41C    P0            {p.watt}W /  700W |    1234MiB /  81559MiB | {util:>8}      Default |",
            f"|                                         |                        | {mig:>20} |",
            line,
        ]
    return "\n".join([
        f"{p.when(k):{LOOK_S}}       ",
        "+" + "-" * 89 + "+",
        "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |",
        line,
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
        "|=========================================+========================+======================|",
        *rows,
        "| Processes:                                                                              |",
        f"|    0   N/A  N/A         {_PID}      C   {_PROGRAM}          2566MiB |",
        "",
    ])  # fmt: skip


def capture(p: Plan, passes: dict[str, int]) -> str:
    """Passes of several commands in sections; ``passes``: name to sample."""
    bar = "#" * 80
    out = [f"{bar}\n# capabilities :: version\n# $ nvidia-smi --version\n{bar}\nNVIDIA-SMI version  : 550.54.15\n"]
    for name, k in passes.items():
        one = Plan([[s[k]] for s in p.shares], p.period_ns, p.end(k) - p.period_ns, p.name, p.clock, p.watt)
        apps = f"timestamp, pid, process_name\n2026/01/01 00:00:00.000, {_PID}, {_PROGRAM}\n"
        for command, body in (
            ("nvidia-smi ", smi_table(p, k)),
            ("nvidia-smi -q", smi_q(p, k)),
            ("nvidia-smi --query-gpu=timestamp,index --format=csv", smi_csv(one)),
            ("nvidia-smi --query-compute-apps=timestamp,pid,process_name --format=csv", apps),
            ("hostname", _HOST),
        ):
            out.append(f"{bar}\n# {name} :: a title\n# $ {command}\n{bar}\n{body}\n")
    return "\n".join(out)


def dmon(p: Plan, *, date: bool = True, time: bool = True, comma: bool = False) -> str:
    heads = ["Date"] * date + ["Time"] * time + ["gpu", "pwr", "gtemp", "sm", "mem", "mclk", "pclk", "pviol"]
    units = ["YYYYMMDD"] * date + ["HH:MM:SS"] * time + ["Idx", "W", "C", "%", "%", "MHz", "MHz", "%"]
    join = ", " if comma else "   "
    head = ["#" + join.join(heads), "#" + join.join(units)]
    lines = []
    for k in range(p.samples):
        if k % 10 == 0:
            lines += head
        stamp = [f"{p.when(k):%Y%m%d}"] * date + [f"{p.when(k):%H:%M:%S}"] * time
        for d, shares in enumerate(p.shares):
            values = [str(d), str(p.watt), "41", str(shares[k]), "-", "2619", str(p.clock), "3"]
            lines.append(join.join([*stamp, *values]))
    return "\n".join(lines) + "\n"


def pmon(p: Plan) -> str:
    """Two processes a device, each with its part of the share."""
    lines = ["# gpu         pid   type     sm    mem    command ", "# Idx           #    C/G      %      %    name "]
    for k in range(p.samples):
        for d, shares in enumerate(p.shares):
            for pid, part in ((_PID, shares[k] // 2), ("77", shares[k] - shares[k] // 2)):
                lines.append(f"    {d}    {pid}     C     {part}      -    secret_train --user alice")
    return "\n".join(lines) + "\n"


def rocm_json(p: Plan, k: int = 0) -> str:
    cards: dict[str, Any] = {
        f"card{d}": {
            "GPU use (%)": str(shares[k]), "sclk clock speed:": f"({p.clock}Mhz)", "Card series": p.name,
            "Max Graphics Package Power (W)": "750.0", "Average Graphics Package Power (W)": f"{p.watt}.0",
            "VRAM Total Memory (B)": str(2**36), "Serial Number": _SERIAL,
        }
        for d, shares in enumerate(p.shares)
    }  # fmt: skip
    cards["system"] = {"Driver version": "6.3.6", f"PID{_PID}": f"{_PROGRAM}, 1, 123"}
    return "WARNING: AMD GPU device(s) is/are in a low-power state.\n\n" + json.dumps(cards)


def rocm_csv(p: Plan, k: int = 0) -> str:
    rows = [f"card{d},{s[k]},{p.watt}.0,({p.clock}Mhz)" for d, s in enumerate(p.shares)]
    head = "device,GPU use (%),Average Graphics Package Power (W),sclk clock speed:"
    more = [f"card{d},{p.name}" for d in range(len(p.shares))]
    return "\n".join([head, *rows, "", "device,Card series", *more]) + "\n"


def amd_csv(p: Plan, *, energy: list[list[float]] | None = None) -> str:
    """``amd-smi metric --csv --watch``; ``energy[d][k]``: the counter."""
    lines = ["timestamp,gpu,gfx_activity,umc_activity,socket_power,gfx_0_clk,gfx_0_max_clk,total_energy_consumption"]
    for k in range(p.samples):
        for d, shares in enumerate(p.shares):
            counter = energy[d][k] if energy else "N/A"
            stamp = p.end(k) // 10**9
            lines.append(f"{stamp},{d},{shares[k]},N/A,{p.watt},{p.clock},2400,{counter}")
    return "\n".join(lines) + "\n"


def amd_json(p: Plan, k: int = 0) -> str:
    """``amd-smi metric --json`` of ROCm 7."""

    def entry(d: int) -> dict[str, Any]:
        return {
            "gpu": d, "asic": {"market_name": p.name, "asic_serial": _SERIAL}, "driver": {"version": "6.16.6"},
            "usage": {"gfx_activity": {"value": p.shares[d][k], "unit": "%"}, "umc_activity": "N/A"},
            "power": {"socket_power": {"value": p.watt, "unit": "W"}},
            "clock": {"gfx_0": {"clk": {"value": p.clock, "unit": "MHz"}, "max_clk": {"value": 2400, "unit": "MHz"}}},
            "throttle": {"ppt_violation_status": "ACTIVE", "socket_thermal_violation_status": "NOT ACTIVE"},
            "process_list": [{"process_info": {"name": _PROGRAM, "pid": int(_PID)}}],
        }  # fmt: skip

    return json.dumps({"gpu_data": [entry(d) for d in range(len(p.shares))]}, indent=4)


def dcgm_dmon(p: Plan) -> str:
    lines = []
    for k in range(p.samples):
        if k % 8 == 0:
            lines += ["#Entity   GPUTL  GRACT  SMCLK   POWER", "ID"]
        lines += [f"GPU {d}     100   {s[k] / 100:.3f}   {p.clock}   {p.watt}.000" for d, s in enumerate(p.shares)]
    return "\n".join(lines) + "\n"


def dcgm_scrapes(p: Plan, *, engine: bool = True, stamped: bool = True, profile: str | None = None) -> str:
    """dcgm-exporter, a scrape a period; ``profile`` makes each device an instance of MIG on GPU 0."""
    lines = []
    for k in range(p.samples):
        at = f" {p.end(k) // 10**6}" if stamped else ""
        fields = {"DEV_SM_CLOCK": [p.clock] * 9, "DEV_POWER_USAGE": [p.watt] * 9, "DEV_CLOCK_THROTTLE_REASONS": [4] * 9}
        fields["DEV_GPU_UTIL"] = [100] * 9 if engine else [s[k] for s in p.shares]
        shares = {"PROF_GR_ENGINE_ACTIVE": [s[k] / 100 for s in p.shares]} if engine else {}
        for name, values in {**fields, **shares}.items():
            lines += [f"# HELP DCGM_FI_{name} words (in %).", f"# TYPE DCGM_FI_{name} gauge"]
            for d in range(len(p.shares)):
                who = f'gpu="{d}"' if profile is None else f'gpu="0",GPU_I_PROFILE="{profile}",GPU_I_ID="{d + 7}"'
                labels = f'{who},UUID="{p.uuids[d]}",modelName="{p.name}",Hostname="{_HOST}",pod="alice-train"'
                lines.append(f'DCGM_FI_{name}{{{labels},DCGM_FI_DRIVER_VERSION="550.54.15"}} {values[d]:g}{at}')
    return "\n".join(lines) + "\n"
