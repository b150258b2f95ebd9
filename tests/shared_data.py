"""Where the public example files are; tests that need them skip where they are absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("SCOPEDOWN_SHARED", Path(__file__).parents[2] / "shared"))

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="no example files (set SCOPEDOWN_SHARED)")
