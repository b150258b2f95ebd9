"""The direction of imports: read -> trace -> account -> decide -> tell; an arrow never points back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import scopedown.terms

ROOT = Path(scopedown.terms.__file__).parent

#: Package -> what it may import of the others. Modules at the top (terms, report, units, errors) are free for all.
MAY = {
    "trace": set(),
    "read": {"trace"},
    "account": {"trace", "read.base"},
    "decide": {"trace", "account", "read.base"},
    "tell": set(),
    "simulate": {"trace"},
}
LAYERS = {*MAY, "commands"}


def imports(path: Path) -> Iterator[str]:
    """Modules of scopedown that the file imports, wherever in it, without the package's name."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name.removeprefix("scopedown.") for a in node.names if a.name.startswith("scopedown."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "scopedown":
            base = (node.module or "").removeprefix("scopedown").lstrip(".")
            yield from ([base] if base.partition(".")[0] in LAYERS and "." in base else
                        [f"{base}.{a.name}".lstrip(".") for a in node.names])  # fmt: skip


@pytest.mark.parametrize("layer", MAY)
def test_imports_point_one_way(layer: str) -> None:
    for path in sorted((ROOT / layer).rglob("*.py")):
        for name in imports(path):
            top = name.partition(".")[0]
            if top in LAYERS - {layer}:
                allowed = any(name == may or name.startswith(f"{may}.") for may in MAY[layer])
                assert allowed, f"{path.relative_to(ROOT)} imports scopedown.{name}"


def test_the_free_modules_import_no_layer() -> None:
    for module in ("terms", "errors", "units", "report"):
        assert not {n.partition(".")[0] for n in imports(ROOT / f"{module}.py")} & LAYERS
