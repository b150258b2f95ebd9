"""What may be asked beside the symptom; light, so that the command line can be built without NumPy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of ``diagnose`` and ``whatif`` beside the symptom."""

    begin: str | None = None
    end: str | None = None
    range: str | None = None
    step: str | None = None
    offset: str | None = None
    device: int | None = None
    """Whose samples of a device monitor count."""
    tz: str | None = None
    columns: str | None = None
    nsys: str | None = None
    server: str = "auto"
    cache: bool = True
    scope: str | None = None
    save: bool = False
