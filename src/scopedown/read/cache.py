"""Where files made from the user's files are kept: ``$SCOPEDOWN_CACHE``, else the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from scopedown.errors import InputError


def cache_dir() -> Path:
    """The cache folder, made if need be and readable by its owner only. Raises InputError where it cannot be made."""
    named = os.environ.get("SCOPEDOWN_CACHE")
    folder = Path(named) if named else Path(platformdirs.user_cache_dir("scopedown"))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(
            folder, "", f"the cache folder cannot be made ({e.strerror})", "set SCOPEDOWN_CACHE to a folder of yours"
        ) from None
    return folder
