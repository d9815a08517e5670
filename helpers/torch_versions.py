"""The releases of torch with which the tests of the course were run."""

TESTED = ("2.13.0", "2.15.0")


def untested(version: str) -> str:
    """Return "" for a tested version of torch ("2.13.0+cpu"), else a sentence on what that means."""
    if version.partition("+")[0] in TESTED:
        return ""
    tested = " and ".join(TESTED)
    return (
        f"torch {version} was never tested with the course ({tested} were): verdicts may be wrong"
    )
