"""Draw the restart timeline: the workers of each place of a job under torchrun, round by round."""

from __future__ import annotations

from helpers.jobs.run import Round, TorchrunRun, Worker, describe_exit, is_secondary_failure
from helpers.views.palette import FAILURE, INK, RECV, SPAN, WAIT, Look
from helpers.views.picture import Picture, new_figure
from helpers.views.plain import plural

_LOOKS = {"succeeded": RECV, "failed": SPAN, "membership changed": WAIT, "ended": SPAN}


def restart_timeline(run: TorchrunRun, *, title: str | None = None) -> Picture:
    """Draw one lane for each place (node, local_rank), with one bar for each worker in this place.

    The number on a bar is the worker's rank. A cross marks a worker whose failure was not caused by a peer.
    The text lists the rounds, but contains no measured time.
    """
    rounds = run.rounds
    places = sorted({(made.node, w.local_rank) for made in rounds for w in made.workers})
    figure = new_figure(8.2, 0.5 * max(1, len(places)) + 1.1)
    axes = figure.add_subplot()
    start = min((made.began_s for made in rounds), default=0.0)
    drawn: dict[str, Look] = {}
    for made in rounds:
        look = drawn.setdefault(made.ending, _LOOKS[made.ending])
        for worker in made.workers:
            lane = places.index((made.node, worker.local_rank))
            begin, width = made.began_s - start, max(0.02, made.ended_s - made.began_s)
            axes.barh(
                lane,
                width,
                0.62,
                begin,
                color=look.tint,
                edgecolor=INK,
                hatch=look.hatch,
                alpha=0.95,
            )
            box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
            axes.text(
                begin + width / 2, lane, f"rank {worker.rank}", ha="center", va="center", bbox=box
            )
            if _has_failed(worker):
                axes.plot(begin + width, lane, FAILURE.marker, color=FAILURE.color, markersize=11)
    axes.set_yticks(range(len(places)), [f"node {n}, local_rank {r}" for n, r in places])
    axes.set_ylim(max(1, len(places)) - 0.5, -0.5)
    axes.set_xlabel("since the first rendezvous [s]")
    axes.spines[["top", "right"]].set_visible(False)
    _legend(axes, drawn, any(_has_failed(w) for made in rounds for w in made.workers))
    if title:
        axes.set_title(title, loc="left")
    return Picture(figure, timeline_text(run))


def timeline_text(run: TorchrunRun) -> str:
    """Write the rounds of each node, in order."""
    lines = []
    for agent in run.agents:
        for made in agent.rounds:
            ranks = ", ".join(str(worker.rank) for worker in made.workers)
            size = plural(made.world_size, "worker")
            line = f"node {agent.node}, restart {made.restart}: ranks {ranks} of {size}, {_ending(made)}"
            lines.append(line)
    return "\n".join(lines) or "no workers were started"


def _ending(round_of_job: Round) -> str:
    failed = [w for w in round_of_job.workers if _has_failed(w)]
    return ": ".join(
        [round_of_job.ending, *(f"rank {w.rank} {describe_exit(w.exitcode)}" for w in failed[:1])]
    )


def _has_failed(worker: Worker) -> bool:
    return worker.exitcode is not None and not is_secondary_failure(worker)


def _legend(axes: object, drawn: dict[str, Look], crossed: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = {
        "succeeded": "to its end",
        "failed": "a worker failed",
        "ended": "terminated from outside",
    }
    shown: list[Patch | Line2D] = [
        Patch(facecolor=x.tint, edgecolor=INK, hatch=x.hatch, label=names.get(ending, ending))
        for ending, x in drawn.items()
    ]
    if crossed:
        cross = Line2D(
            [], [], color=FAILURE.color, marker=FAILURE.marker, linestyle="", label="died"
        )
        shown.append(cross)
    if shown:
        axes.legend(  # type: ignore[attr-defined]
            handles=shown, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, frameon=False
        )
