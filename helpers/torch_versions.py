"""The releases of torch with which the course was tested."""

TESTED = ("2.13.0", "2.15.0")


def untested(version: str) -> str:
    """Return "" for a tested version of torch ("2.13.0+cpu"), otherwise a sentence on the consequences."""
    if version.partition("+")[0] in TESTED:
        return ""
    tested = " and ".join(TESTED)
    return f"torch {version} has not been tested with the course ({tested} have): verdicts may be wrong"
