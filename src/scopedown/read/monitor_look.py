"""A look of ``nvidia-smi -q``, as text or XML: nested headings and values, by the names of ``--query-gpu``.

Sections and keys are those of drivers 450 to 590. Text and XML name the same thing differently (``Max Clocks`` /
``SM`` and ``max_clocks`` / ``sm_clock``); both are brought to lower case with underscores first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from scopedown.read.monitor import REASON, missing

#: Field of --query-gpu, and the places where a look has it, first found first taken.
_PLACES: dict[str, tuple[str, ...]] = {
    "name": ("product_name",),
    "uuid": ("uuid", "gpu_uuid"),
    "pci.bus_id": ("pci/pci_bus_id", "pci/bus_id"),
    "mig.mode.current": ("mig_mode/current_mig", "mig_mode/current"),
    "utilization.gpu": ("utilization/gpu_util", "utilization/gpu"),
    "utilization.memory": ("utilization/memory_util", "utilization/memory"),
    "memory.total": ("fb_memory_usage/total",),
    "memory.used": ("fb_memory_usage/used",),
    "temperature.gpu": ("temperature/gpu_temp", "temperature/gpu_current_temp"),
    "temperature.memory": ("temperature/memory_temp", "temperature/memory_current_temp"),
    "clocks.current.sm": ("clocks/sm_clock", "clocks/sm"),
    "clocks.current.graphics": ("clocks/graphics_clock", "clocks/graphics"),
    "clocks.current.memory": ("clocks/mem_clock", "clocks/memory"),
    "clocks.max.sm": ("max_clocks/sm_clock", "max_clocks/sm"),
    "clocks.max.memory": ("max_clocks/mem_clock", "max_clocks/memory"),
    "clocks.applications.graphics": ("applications_clocks/graphics_clock", "applications_clocks/graphics"),
    **{
        field: tuple(f"{group}/{key}" for group in ("gpu_power_readings", "power_readings") for key in keys)
        for field, keys in {
            "power.draw": ("power_draw", "instant_power_draw", "instantaneous_power_draw", "average_power_draw"),
            "power.limit": ("current_power_limit", "power_limit", "enforced_power_limit"),
            "power.max_limit": ("max_power_limit",),
        }.items()
    },
}
_REASONS = re.compile(r"clocks_(?:event|throttle)_reasons/(?:.*/)?(?:clocks_(?:event|throttle)_reason_)?([a-z_]+)")
_REASON_NAMES = {"idle": "gpu_idle", "display_clocks_setting": "display_clock_setting"}


def key_of(text: str) -> str:
    """``"GPU Current Temp "`` -> ``"gpu_current_temp"``."""
    return re.sub(r"[^a-z0-9]+", "_", text.strip().lower()).strip("_")


def fields(found: Mapping[str, str]) -> dict[str, str]:
    """``"clocks/sm" -> "345 MHz"`` pairs of one device to cells by the names of --query-gpu. All else is dropped:
    processes, serial numbers, hosts."""
    out = {}
    for field, places in _PLACES.items():
        said = next((found[p] for p in places if p in found and not missing(found[p])), None)
        if said is None:
            said = next((found[p] for p in places if p in found), None)
        if said is not None:
            out[field] = said
    for place, value in found.items():
        match = _REASONS.fullmatch(place)
        if match is not None:
            out[REASON + _REASON_NAMES.get(match[1], match[1])] = value
    return out
