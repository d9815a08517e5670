"""The lanes of a job under torchrun and its restart timeline, drawn from invented rounds."""

from __future__ import annotations

from pathlib import Path

from helpers.jobs.owned import OutputPiece
from helpers.jobs.run import Agent, TorchrunRun, find_failure
from helpers.jobs.torchrun_log import Round, Worker, agent_output, parse_rounds
from helpers.views.job_lanes import agents_html, agents_text
from helpers.views.restarts import restart_timeline

COMMAND = ("torchrun", "--nnodes", "2", "--master-port", "41234", "--node-rank", "0", "/a/b/job.py")
HEAD = "I1121 15:19:17.273000 24418 torch/distributed/elastic/agent/server/api.py:553] "


def job(*rounds: Round, exitcode: int | None = 0) -> TorchrunRun:
    agents = (Agent(0, COMMAND, exitcode, "", rounds),)
    return TorchrunRun(agents, find_failure(agents, ""))


def killed_and_resumed() -> TorchrunRun:
    died = (Worker(0, 0, 0, "step 3\n"), Worker(0, 1, 1, "step 3\n", exitcode=-9))
    again = (Worker(0, 0, 0, "done\n"), Worker(0, 1, 1, "done\n"))
    return job(
        Round(0, 0, 0, 1, 2, died, 10.0, 12.0, "failed"),
        Round(0, 1, 0, 1, 2, again, 12.5, 15.0, "succeeded"),
    )


def test_timeline_shows_worker_bars_and_deaths() -> None:
    picture = restart_timeline(killed_and_resumed(), title="night")
    (axes,) = picture.figure.axes
    assert [round(bar.get_x(), 1) for bar in axes.patches] == [0.0, 0.0, 2.5, 2.5]
    assert [round(bar.get_width(), 1) for bar in axes.patches] == [2.0, 2.0, 2.5, 2.5]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines] == [(2.0, 1)]
    assert picture.text == (
        "node 0, restart 0: ranks 0, 1 of 2 workers, failed: rank 1 was terminated by SIGKILL\n"
        "node 0, restart 1: ranks 0, 1 of 2 workers, succeeded"
    )


def test_draws_job_without_workers() -> None:
    assert restart_timeline(job()).text == "no workers were started"


def test_lanes_hide_ports_and_folders() -> None:
    text = agents_text(killed_and_resumed())
    assert "--master-port PORT --node-rank 0 job.py" in text
    assert "41234" not in text and "/a/b" not in text
    assert "rank 1 (local_rank 1) | (was terminated by SIGKILL)" in text
    assert "restart 1: 2 workers on 1 node, succeeded" in agents_html(killed_and_resumed())


def test_escapes_worker_output() -> None:
    worker = Worker(0, 0, 0, "<script>x</script>\n")
    html = agents_html(job(Round(0, 0, 0, 1, 1, (worker,), 0.0, 1.0, "succeeded")))
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_root_cause_precedes_consequences() -> None:
    gone = "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:7"
    first = Worker(0, 0, 0, errors=gone, exitcode=1)
    cause = Worker(0, 1, 1, error="ValueError: shard 17 is empty")
    run = job(Round(0, 0, 0, 1, 2, (first, cause), 0.0, 1.0, "failed"), exitcode=1)
    expected = "rank 1 (node 0, local_rank 1) raised ValueError: shard 17 is empty"
    assert str(run.failure) == expected
    alone = job(Round(0, 0, 0, 1, 1, (first,), 0.0, 1.0, "failed"), exitcode=1)
    assert "a peer" in str(alone.failure) and "]:7" not in str(alone.failure)


def test_parses_rounds_and_worker_output() -> None:
    def rendezvous(ranks: str) -> str:
        fields = f"restart_count=0|group_rank=0|group_world_size=1|global_ranks={ranks}"
        sizes = f"|global_world_sizes={[len(ranks.split(','))] * len(ranks.split(','))}"
        lines = [f"{HEAD}  {field}" for field in (fields + sizes).split("|")]
        return "\n".join(
            [f"{HEAD}[default] Rendezvous complete for workers. Result:", *lines, HEAD]
        )

    pieces = [
        OutputPiece(2, 1.0, rendezvous("[0, 1]") + "\n"),
        OutputPiece(1, 2.0, "\x1f1/1\x1ehal"),
        OutputPiece(1, 2.1, "f a line\n\x1f0/0\x1ezero\n"),
        OutputPiece(
            2, 3.0, f"{HEAD}[default] Detected 1 new nodes from group_rank=0; will restart\n"
        ),
        OutputPiece(2, 4.0, rendezvous("[1]") + "\nW1121 15:19:17.2 1 a/b.py:3] a warning\n"),
        OutputPiece(1, 5.0, "\x1f1/0\x1ewithout an end"),
    ]
    one, two = parse_rounds(0, pieces, Path("no-such-folder"))
    assert [w.output for w in one.workers] == ["zero\n", "half a line\n"]
    assert (one.ending, one.began_s, one.ended_s) == ("membership changed", 1.0, 3.0)
    assert [(w.rank, w.output) for w in two.workers] == [(1, "without an end\n")]
    assert agent_output(pieces) == "a warning"
