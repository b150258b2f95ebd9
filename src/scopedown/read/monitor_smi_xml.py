"""``nvidia-smi -q -x``: one XML document a look; with ``-l`` one after the other in one file."""

from __future__ import annotations

from typing import ClassVar
from xml.etree import ElementTree

from scopedown.errors import InputError
from scopedown.read.base import Artifact, Source
from scopedown.read.monitor import artifact, decode, rows_table
from scopedown.read.monitor_look import fields
from scopedown.read.stamps import Zoned, look_stamp, place_looks
from scopedown.terms import Scope

_BEGIN, _END = "<nvidia_smi_log>", "</nvidia_smi_log>"


class NvidiaSmiXml(Zoned):
    kind: ClassVar[str] = "nvidia-smi-xml"
    scope: ClassVar[Scope] = Scope.APPLICATION
    about: ClassVar[str] = "nvidia-smi -q -x, one look or several (-l)"

    def sniff(self, source: Source) -> bool:
        start = decode(source.head).lstrip()
        return start.startswith("<") and _BEGIN in start

    def read(self, source: Source) -> Artifact:
        text = decode(source.read())
        if "<!ENTITY" in text:
            raise InputError(source.path, "", "declares entities, which nvidia-smi never does", "record it anew")
        looks = text.split(_BEGIN)[1:]
        found = [f"{_BEGIN}{look.partition(_END)[0]}{_END}" for look in looks if _END in look]
        cut = len(looks) - len(found)
        if not found:
            raise InputError(source.path, "", "is cut: no look is whole", "record nvidia-smi -q -x anew")
        rows: list[dict[str, str]] = []
        stamps: list[str | None] = []
        shared: dict[str, str] = {}
        instances = 0
        for n, document in enumerate(found, 1):
            try:
                # The text of the root element alone: no document type, hence no entities to expand.
                root = ElementTree.fromstring(document)  # noqa: S314
            except ElementTree.ParseError as error:
                raise InputError(source.path, f"look {n}", f"is no XML ({error})", "record it anew") from None
            stamp = look_stamp(root.findtext("timestamp") or "")
            if version := (root.findtext("driver_version") or "").strip():
                shared["driver"] = version
            gpus = root.findall("gpu")
            for index, gpu in enumerate(gpus):
                rows.append({"index": str(index), **fields(_leaves(gpu))})
                stamps.append(stamp)
            instances = sum(len(gpu.findall("mig_devices/mig_device")) for gpu in gpus)
        time, known = place_looks(source, stamps, self.zone, "timestamp")
        warnings = [f"{cut} looks at the end are cut: left out"] if cut else []
        counts = {"looks": len(found), **({"mig_instances": instances} if instances else {})}
        table = rows_table(rows, time.tolist(), zone_known=known, shared=shared, warnings=warnings, counts=counts)
        return artifact(source, self.kind, "nvidia-smi", table)


def _leaves(element: ElementTree.Element, path: str = "", depth: int = 0) -> dict[str, str]:
    """Path to text of every leaf; of repeated elements the first. A look is four deep, deeper is nobody's."""
    found: dict[str, str] = {}
    for child in element:
        if depth > 8 or child.tag in ("processes", "accounted_processes", "mig_devices"):
            continue
        place = f"{path}{child.tag}"
        if len(child):
            for key, value in _leaves(child, f"{place}/", depth + 1).items():
                found.setdefault(key, value)
        else:
            found.setdefault(place, (child.text or "").strip())
    return found
