"""Old home of ``scopedown.answer``."""

from scopedown.answer import Options, WhatIf, diagnose, whatif

__all__ = ["Options", "WhatIf", "diagnose", "whatif"]
