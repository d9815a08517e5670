"""Assert that the table of recorded runs of 23.4 describes them correctly, at any speed."""

import pytest

from helpers.exercises.nb23_capstone.plan_a_run import (
    RECORDED_RUNS,
    fastest_layout,
    scale_recorded_run,
)


@pytest.mark.parametrize(
    "run", RECORDED_RUNS, ids=[f"{run[0]}, {run[1]:,} parameters" for run in RECORDED_RUNS]
)
def test_recorded_run_matches_its_label(run):
    for percent in (70, 100, 140):
        label, task = scale_recorded_run(run, percent)
        room = task.cluster["memory"]
        every = sorted(task.meshes(), key=task.seconds)
        fitting = [mesh for mesh in every if task.nbytes(mesh) <= room]
        assert fastest_layout(task) == (fitting[0] if fitting else None)
        assert (not fitting) == (label == "too large for all")
        if len(fitting) > 1:
            assert task.seconds(fitting[1]) > 1.009 * task.seconds(fitting[0])
        if label in {"a tight fit", "16,384 GPUs", "1,536 GPUs", "hosts of 6"}:
            assert not {*every[:2]} & {*fitting}
        if label == "not a byte to spare":
            assert task.nbytes(fitting[0]) == room
        if label == "single GPUs":
            assert fitting[0][2] > 64
