"""The learning platforms: one file for each platform's names in exports, its rosters, and its imports.

A module in this folder with a `PLATFORM` is found automatically. `owners`, `roster`, `reports`, messages and
the table in docs/grading.md take the platforms from this package, so that no other file mentions a platform.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from helpers.grading.platforms.protocol import Platform, Roster

PLATFORMS: tuple[Platform, ...] = tuple(
    module.PLATFORM
    for found in iter_modules(__path__)
    if hasattr(module := import_module(f"{__name__}.{found.name}"), "PLATFORM")
)
IMPORT_FILES = tuple(platform.import_file for platform in PLATFORMS if platform.import_file)
"""The files for importing into platforms. A run writes the file for the platform of its roster."""


def platform_of(roster: Roster) -> Platform | None:
    """Return the platform that has exported a roster, or None if no platform has its columns."""
    specific_first = sorted(PLATFORMS, key=lambda platform: platform.has_common_columns)
    return next((platform for platform in specific_first if platform.has_exported(roster)), None)
