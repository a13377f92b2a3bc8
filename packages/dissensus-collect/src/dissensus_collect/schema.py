"""The JSON schema of collection projects: editors complete keys and mark wrong ones."""

from __future__ import annotations

from typing import Any

from dissensus.toml_file import schema_of
from dissensus_collect.project.tables import ProjectFile


def project_schema() -> dict[str, Any]:
    """The schema of a collect.toml. It knows every key; what else must hold, reading the file tells."""
    return schema_of(ProjectFile, title="A collection project of dissensus")
