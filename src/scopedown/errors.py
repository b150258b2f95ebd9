"""Errors that a user can mend; everything else is a bug.

::

    ScopedownError
    ├── InputError      a file or a value in it is not what it has to be          exit code 2
    ├── UsageError      the command line asks for something that makes no sense   exit code 2
    └── MissingExtra    an optional library is not installed                      exit code 2

That evidence does not suffice is not an error: it is an answer (a decision of kind ``recapture``).
"""

from __future__ import annotations

from os import PathLike


class ScopedownError(Exception):
    """Base of all errors that are shown as one line."""


class InputError(ScopedownError, ValueError):
    """A file cannot be used: which one, where in it, what was expected, what to do."""

    def __init__(self, path: str | PathLike[str], where: str, expected: str, do: str) -> None:
        self.path, self.where, self.expected, self.do = str(path), where, expected, do
        place = f" ({where})" if where else ""
        super().__init__(f"{self.path}{place}: {expected}; {do}")


class UsageError(ScopedownError, ValueError):
    """The command line, or a complaint, is incomplete or contradicts itself."""


class MissingExtra(ScopedownError, ImportError):
    """An optional library is needed: the message names the extra to install."""

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed; install it with: pip install 'scopedown[{extra}]'")
