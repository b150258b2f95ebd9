"""Which options a version of a profiler knows, and how a name from a file goes into its filters."""

from __future__ import annotations

import re

Version = tuple[int, ...]

#: Option of ``nsys profile`` -> first version that is known to have it. Options that are not here are older than any
#: version in use. Read off ``nsys profile --help`` of 2022.4.2 and 2023.4.4 and the user guide of 2026; a public note
#: has 2025.1.1 refuse --discard-environment.
NSYS_SINCE: dict[str, Version] = {
    "--cuda-graph-trace": (2022, 4),
    "--python-sampling": (2023, 1),
    "--python-sampling-frequency": (2023, 1),
    "--gpu-metrics-devices": (2024, 1),
    "--discard-environment": (2025, 5),
}

#: The same for ``ncu``, from the help of 2022.3 and 2024.1.
NCU_SINCE: dict[str, Version] = {"--graph-profiling": (2023, 1), "--print-units": (2023, 1)}

#: Collectives: alone and replayed they wait for peers that never come.
_COLLECTIVE = re.compile(
    r"nccl|rccl|nvshmem|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|cross_device_reduce", re.IGNORECASE
)


def parse_version(text: str | None) -> Version | None:
    """The leading numbers of a version: ``"2025.5.1.121-255136380782v0"`` -> (2025, 5, 1, 121). None where unknown."""
    found = re.match(r"\s*v?(\d{1,9}(?:\.\d{1,9})*)", text or "")
    return tuple(int(n) for n in found[1].split(".")) if found else None


def knows(since: dict[str, Version], option: str, version: Version | None) -> bool:
    """Whether that version has the option; a version that nobody knows is taken for a current one."""
    return version is None or version >= since.get(option.partition("=")[0], ())


def is_collective(kernel: str) -> bool:
    return _COLLECTIVE.search(kernel) is not None


def kernel_filter(kernel: str) -> list[str]:
    """``ncu`` arguments that select the kernel by its name, which is data: escaped for the regular expression.

    A bare function name is matched whole. A demangled one (with template arguments or a signature) is matched from
    its beginning, at most 120 characters of it: tools print the tail of a long signature differently.
    """
    if re.fullmatch(r"\w+", kernel, re.ASCII):
        return ["-k", f"regex:^{kernel}$"]
    head = re.sub(r"\s*\[[^\]]*\]$", "", kernel)[:120]
    # Only what acts in a regular expression is escaped: an escaped blank is an error in some dialects. What cannot be
    # typed matches any one character.
    escaped = "".join(f"\\{c}" if c in r"\^$.|?*+()[]{}" else c if c.isprintable() else "." for c in head)
    return ["--kernel-name-base", "demangled", "-k", f"regex:^{escaped}"]
