"""GitHub Classroom: `gh classroom clone student-repos` clones into `lab-submissions/lab-login/`."""

from __future__ import annotations

from helpers.grading.names import Source, clean_name
from helpers.grading.platforms.protocol import Entries, Platform

_SUBMISSIONS = "-submissions"


class _GitHubClassroom(Platform):
    title = "GitHub Classroom"
    file_names = "`lab-submissions/lab-login/`, from `gh classroom clone student-repos`"
    rosters = "a table with the logins, such as `classroom_roster.csv`"

    def sources(self, entries: Entries) -> dict[str, Source]:
        slug = entries.parent.removesuffix(_SUBMISSIONS)
        if slug == entries.parent:
            return {}
        logins = {
            name: name[len(slug) + 1 :] for name in entries.folders if name.startswith(f"{slug}-")
        }
        return {
            name: Source(clean_name(login), f"{login}/", is_username=True)
            for name, login in logins.items()
            if login
        }


PLATFORM: Platform = _GitHubClassroom()
