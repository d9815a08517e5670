"""Folders not named by a platform: one for each learner, as collected by nbgrader."""

from __future__ import annotations

from helpers.grading.platforms.protocol import Platform


class _Folders(Platform):
    title = "nbgrader"
    file_names = "`submitted/anna/ps1/name.ipynb`"
    rosters = "any table"


PLATFORM: Platform = _Folders()
