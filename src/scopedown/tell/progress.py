"""What is being done, on standard error, where that is a terminal and it takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from scopedown.tell.clean import clean

Report = Callable[[str], None]


@contextmanager
def progress() -> Iterator[Report]:
    """A function that is told what begins. Silent where standard error is no terminal."""
    console = Console(stderr=True)
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        yield lambda _: None
        return
    with console.status(Text("reading")) as status:
        yield lambda what: status.update(Text(clean(what, 200)))
