"""python -m tests.conformance [TOPIC ...]: run programs in all ways and print the differences."""

from __future__ import annotations

import time
from collections import Counter

import click

from tests.conformance.cells import Cells
from tests.conformance.entry import ENGINE_WAYS, SCRIPT, all_entries
from tests.conformance.outcome import fingerprint
from tests.conformance.run_entry import Compared, compare, keep, read_fingerprints


@click.command()
@click.argument("names", nargs=-1, metavar="[TOPIC | TOPIC/NAME]...")
@click.option("--plain", is_flag=True, help="Run each plainly, too, and keep how it ended.")
@click.option("--ways", default=",".join(ENGINE_WAYS), help="Which ways, or '' for plain alone.")
@click.option("--limit-s", default=3600.0, help="Begin no program after this many seconds.")
@click.option("-v", "--verbose", is_flag=True, help="Show every outcome.")
def main(names: tuple[str, ...], plain: bool, ways: str, limit_s: float, verbose: bool) -> None:
    """Run the programs of all topics, or of some, in all ways, and print the differences."""
    entries = all_entries(names)
    chosen = [way for way in ways.split(",") if way]
    known, done = {} if plain else read_fingerprints(), list[Compared]()
    cells = Cells() if set(chosen) - {SCRIPT} else None
    began = time.monotonic()
    try:
        for entry in entries:
            if time.monotonic() - began > limit_s:
                break
            done.append(compare(entry, cells, known.get(entry.path), chosen))
            _show(done[-1], verbose)
            if "plain" not in done[-1].differences and "plain" in done[-1].outcomes:
                outcome = done[-1].outcomes["plain"]
                keep({entry.path: fingerprint(entry.source, outcome)})
    finally:
        try:
            if cells is not None:
                cells.close()
        except AssertionError as error:
            click.echo(f"at the kernel's end: {error}")
    _table(done, ["plain", *chosen])
    if len(done) < len(entries):
        click.echo(f"{len(entries) - len(done)} programs were not begun: the time was up")


def _show(compared: Compared, verbose: bool) -> None:
    click.echo(f"{'differs' if compared.differences else 'same   '} {compared.entry.path}")
    for way, outcome in compared.outcomes.items():
        if verbose:
            click.echo(f"    {way:9} {outcome.seconds:6.2f} s  {outcome.short}")
        if outcome.named == "RankTimeout" and way != "untraced":
            click.echo(f"  ~ {way:9} hangs as it does plainly, but nobody says why")
    for way, text in compared.differences.items():
        click.echo(f"  ! {way:9} {text}")


def _table(done: list[Compared], ways: list[str]) -> None:
    """Print, for each topic, the number of programs and the number of differences in each way."""
    topics = sorted({compared.entry.topic for compared in done})
    width = max(map(len, [*topics, "all"]), default=3)
    click.echo(f"\n{'topic':{width}}  programs  " + "  ".join(f"{way:>8}" for way in ways))
    for topic in [*topics, "all"]:
        of_topic = [c for c in done if topic in {c.entry.topic, "all"}]
        counts = Counter(way for compared in of_topic for way in compared.differences)
        row = "  ".join(f"{counts[way]:8}" for way in ways)
        click.echo(f"{topic:{width}}  {len(of_topic):10}  {row}")
    seconds = {way: sum(c.outcomes[way].seconds for c in done if way in c.outcomes) for way in ways}
    click.echo(f"{'seconds':{width}}  {'':10}  " + "  ".join(f"{seconds[w]:8.0f}" for w in ways))


if __name__ == "__main__":
    main()
