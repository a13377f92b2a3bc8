"""Libraries that only some people need: each is imported when it is used, and named where it is missing."""

from __future__ import annotations

import importlib.util

from dissensus.errors import InputError


def installed(package: str, extra: str, *, wanted_by: str) -> None:
    """Refuse to go on without a package; nothing is imported.

    Args:
        package: as it is imported.
        extra: of dissensus, which installs it.
        wanted_by: what needs it, as the user named it.
    """
    if importlib.util.find_spec(package) is None:
        name = {"sklearn": "scikit-learn"}.get(package, package)
        raise InputError(f'{wanted_by}: {name} is not installed; get it with `pip install "dissensus[{extra}]"`')
