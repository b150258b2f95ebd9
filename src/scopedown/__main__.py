"""``python -m scopedown``."""

from __future__ import annotations

import sys

from scopedown.cli import main

if __name__ == "__main__":
    sys.exit(main())
