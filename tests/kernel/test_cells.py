"""A learner's cells in a kernel: launch, `%%ranks`, and their displayed results."""

from __future__ import annotations

import re

import pytest

from tests.kernel.session import CELL_S, Kernel, MakeKernel, wait_until


@pytest.mark.extended
def test_import_starts_rank_server_in_background(kernel: Kernel) -> None:
    assert len(kernel.servers()) == 1 and not kernel.ranks()


@pytest.mark.extended
def test_server_preloads_imports_of_first_cell() -> None:
    kernel = Kernel()
    try:
        kernel.value(
            "import sys\nfrom helpers import launch\nfrom torch.nn.parallel import DistributedDataParallel"
        )
        run = "launch(lambda rank, n: 'torch._dynamo' in sys.modules, 1).values"
        assert kernel.value(run) == "[True]\n"
    finally:
        kernel.close()


def test_launch_draws_lanes_at_cell_end(kernel: Kernel) -> None:
    source = "x = torch.tensor([10.0])\ndef f(rank, n):\n    y = x * rank\n    dist.all_reduce(y)"
    shown = kernel.value(source + "\n    return y.item()\nlaunch(f, 3)")
    assert shown == "rank 0 → 30.0\nrank 1 → 30.0\nrank 2 → 30.0\n"


def test_assigned_run_shows_prints_once(kernel: Kernel) -> None:
    source = "def f(rank, n):\n    print('I am', rank)\n"
    shown = kernel.value(source + "run = launch(f, 2)")
    assert shown.count("rank 0 | I am 0") == 1 and shown.count("rank 1 | I am 1") == 1
    assert kernel.value(source + "run = launch(f, 2)\nrun").count("rank 0 | I am 0") == 1
    assert kernel.value("run = launch(lambda rank, n: rank, 2)") == ""


@pytest.mark.parametrize(
    "line", ["run = launch(f, 2)", "values = launch(f, 2).values", "launch(f, 2)"]
)
def test_each_launch_shows_its_note(kernel: Kernel, line: str) -> None:
    source = (
        "def f(rank, n):\n    dtype = torch.float32 if rank else torch.int32\n"
        "    dist.all_reduce(torch.ones(2, dtype=dtype))\n"
    )
    assert kernel.value(source + line).count("note: rank 0 passes int32 to all_reduce") == 1


def test_next_cell_omits_prints_between_cells(kernel: Kernel) -> None:
    kernel.value(
        "import asyncio\ndone = []\ndef f(rank, n):\n    print('I am', rank)\n"
        "def callback():\n    done.append(launch(f, 2))\n"
        "asyncio.get_running_loop().call_later(0.2, callback)"
    )
    shown = kernel.value("import asyncio\nwhile not done: await asyncio.sleep(0.1)\n1")
    assert shown.count("I am 0") <= 1  # its cell may have begun before the callback
    assert kernel.value("1") == "1\n"


def test_shows_rank_prints_before_failure(kernel: Kernel) -> None:
    cell = kernel.run("def f(rank, n):\n    print('so far')\n    1 // rank\nlaunch(f, 2)")
    assert cell.error == "RankFailed" and "rank 0 raised ZeroDivisionError" in cell.message
    assert "rank 0 | so far" in cell.text and "ZeroDivisionError" not in cell.text
    assert "line 3" in cell.message and "site-packages" not in cell.message


def test_ranks_keep_variables_invisible_to_kernel(kernel: Kernel) -> None:
    kernel.value("%%ranks 2\nmine = torch.ones(2) * rank")
    shown = kernel.value("%%ranks 2\ndist.all_reduce(mine)\nmine")
    assert shown == "rank 0 → tensor([1., 1.])\nrank 1 → tensor([1., 1.])\n"
    assert kernel.run("mine").error == "NameError"
    assert kernel.value("%%ranks 2\nworld_size, __name__ == '__main__'").count("(2, True)") == 2


def test_launches_leave_live_ranks_untouched(kernel: Kernel) -> None:
    kernel.value("%%ranks 2\nkept = rank + 5")
    kernel.value("launch(lambda rank, n: rank, 3)")
    assert kernel.run("launch(lambda rank, n: 1 // 0, 2)").error == "RankFailed"
    assert kernel.value("%%ranks 2\nkept") == "rank 0 → 5\nrank 1 → 6\n"


def test_changed_world_size_replaces_live_ranks(kernel: Kernel) -> None:
    kernel.value("%%ranks 2\nkept = 1")
    shown = kernel.value("%%ranks 3\n'kept' in globals()")
    assert "new ranks with nothing defined" in shown
    assert "you asked for 3 instead of 2" in shown
    assert shown.count("False") == 3
    assert "new ranks" not in kernel.value("%%ranks 3\n1")
    assert len(kernel.ranks()) == 3


def test_failed_cell_replaces_live_ranks(kernel: Kernel) -> None:
    kernel.value("%%ranks 2\nkept = 1")
    cell = kernel.run("%%ranks 2\nif rank == 1:\n    raise ValueError('mine')\ndist.barrier()")
    assert cell.error == "RankFailed" and "rank 1 raised ValueError: mine" in cell.message
    assert "line 3" in cell.message or "line 2" in cell.message
    wait_until(lambda: not kernel.ranks(), CELL_S, kernel.ranks)
    shown = kernel.value("%%ranks 2\n'kept' in globals()")
    assert "new ranks" in shown and "a cell failed on them" in shown and "False" in shown


def test_fresh_option_replaces_live_ranks(kernel: Kernel) -> None:
    kernel.value("%%ranks 2\nkept = 1")
    shown = kernel.value("%%ranks 2 --fresh\n'kept' in globals()")
    assert "you asked for fresh ranks" in shown and "False" in shown


def test_changed_trace_option_replaces_live_ranks(kernel: Kernel) -> None:
    cell = "dist.barrier()\n'kept' in globals(), rank"
    kernel.value("%%ranks 2\nkept = 1")
    shown = kernel.value(f"%%ranks 2 --no-trace\n{cell}")
    assert "their calls were recorded, and you asked for ranks whose calls are not" in shown
    assert "(False, 1)" in shown and kernel.value("len(_.trace.events)") == "0\n"
    assert "new ranks" not in kernel.value(f"%%ranks 2 --no-trace\n{cell}\nkept = 1")
    shown = kernel.value(f"%%ranks 2\n{cell}")
    assert "their calls were not recorded, and you asked for ranks whose calls are" in shown
    assert "(False, 0)" in shown and kernel.value("len(_.trace.events)") == "2\n"


@pytest.mark.extended
def test_new_ranks_preload_earlier_cell_imports(new_kernel: MakeKernel) -> None:
    kernel, name = new_kernel(), "torch.fx.experimental.symbolic_shapes"
    cell = f"%%ranks 2 --fresh\nimport sys\nthere = '{name}' in sys.modules\nimport {name}\n"
    assert "rank 0 → False" in kernel.value(f"{cell}there")
    assert "rank 0 → True" in kernel.value(f"{cell}there")


@pytest.mark.extended
def test_fresh_ranks_apply_torch_import_settings(new_kernel: MakeKernel) -> None:
    kernel = new_kernel()
    compiles = "torch.compile(lambda x: x, backend='eager')(torch.ones(1))"
    kernel.value("%%ranks 2\nkept = 1")
    kernel.value("os.environ['TORCH_LOGS'] = '+dynamo'")
    assert kernel.value("%%ranks 2\nkept") == "rank 0 → 1\nrank 1 → 1\n"
    shown = kernel.value(f"%%ranks 2 --fresh\n{compiles}")
    assert "torchdynamo start" in shown and "you asked for fresh ranks" in shown


def test_sends_kernel_variables_on_request(kernel: Kernel) -> None:
    kernel.value("x = torch.arange(3)\ndef double(t):\n    return 2 * t")
    assert kernel.value("%%ranks 2 --send double,x\ndouble(x)[rank].item()").startswith(
        "rank 0 → 0"
    )
    cell = kernel.run("%%ranks 2 --send nothing\n1")
    assert cell.error == "LaunchError" and "no variable with this name" in cell.message
    cell = kernel.run(
        "f = (i for i in [1])\nget_ipython().run_cell_magic('ranks', '2 --send f', 'f')"
    )
    assert cell.error == "CannotSend" and "f cannot be sent" in cell.message


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "of_kernel + rank",
            "`of_kernel` is defined only in the notebook. Send it to the ranks: `%%ranks 2 ",
        ),
        ("(lambda: of_kernel)()", "Send it to the ranks: `%%ranks 2 --send of_kernel`."),
        ("bisect.bisect", "Import it in this cell: `import bisect`."),
        ("functional.relu", "Import it in this cell: `import torch.nn.functional as functional`."),
        (
            "Wrapped(1)",
            "Import it in this cell, or send it to the ranks: `%%ranks 2 --send Wrapped`.",
        ),
        ("of_cell()", "Send it to the ranks: `%%ranks 2 --send of_cell`."),
        ("endless", "`endless` exists only in the notebook. endless cannot be sent to the ranks"),
        ("get_ipython()", "ranks have no notebook"),
        ("In[1]", "`In` is defined only in the notebook"),
        ("nowhere", "name 'nowhere' is not defined"),
    ],
)
def test_ranks_survive_missing_name_with_advice(kernel: Kernel, line: str, says: str) -> None:
    kernel.value(
        "import bisect, torch.nn.functional as functional\n"
        "from torch.nn.parallel import DistributedDataParallel as Wrapped\n"
        "of_kernel = 5\nendless = (i for i in [1])\ndef of_cell(): return 3"
    )
    kernel.value("%%ranks 2\nkept = rank + 1")
    cell = kernel.run(f"%%ranks 2\nkept = kept + 1\n{line}")
    assert cell.error == "RankFailed" and says in cell.message
    assert "These ranks are still running" in cell.message
    assert kernel.value("%%ranks 2\nkept") == "rank 0 → 2\nrank 1 → 3\n"


def test_suggested_line_only_adds_missing_name(
    kernel: Kernel,
) -> None:
    kernel.value("first, second = 1, 2")
    cell = kernel.run("%%ranks 2 --timeout 20 --no-trace --send first\nfirst + second")
    (line,) = re.findall("`(%%.*)`", cell.message)
    assert kernel.value(f"{line}\nfirst + second") == "rank 0 → 3\nrank 1 → 3\n"


def test_reports_cell_defining_lost_variable(kernel: Kernel) -> None:
    defined = kernel.run("%%ranks 2\nmine = 1\n1 / 0")
    cell = kernel.run("%%ranks 2\nmine")
    says = f"`mine` was defined in cell [{defined.number}], on ranks that have been terminated"
    assert says in cell.message
    kernel.value("mine = 2")
    cell = kernel.run("%%ranks 2\nmine")
    assert says in cell.message and "%%ranks 2 --send mine" in cell.message


def test_lists_cells_of_lost_names(kernel: Kernel) -> None:
    first = kernel.run("%%ranks 2\ntotal = 1")
    kernel.run("%%ranks 2\nother = 1\nprint(other)")
    second = kernel.run("%%ranks 2\ntotal += 1")
    kernel.run("%%ranks 2\n1 / 0")
    cell = kernel.run("%%ranks 2\ntotal")
    cells = f"cell [{first.number}] and cell [{second.number}]"
    assert f"`total` was defined in {cells}, on ranks" in cell.message
    assert "Run these cells again, in this order." in cell.message


def test_missing_name_ends_waiting_ranks(kernel: Kernel) -> None:
    cell = kernel.run("%%ranks 2\nif rank == 1:\n    nowhere\ndist.barrier()")
    assert "NameError" in cell.message and "These ranks were terminated" in cell.message
    assert "a cell failed on them" in kernel.value("%%ranks 2\nrank")


def test_display_prints_on_rank(kernel: Kernel) -> None:
    assert kernel.value("%%ranks 2\ndisplay(rank, torch.ones(1))").startswith(
        "rank 0 | 0 tensor([1.])"
    )
    shown = kernel.value("def f(rank, n):\n    display({'n': n})\nlaunch(f, 2)")
    assert shown.startswith("rank 0 | {'n': 2}")


@pytest.mark.parametrize(
    "line", ["2 --timeout=5", "2 # two of them", "2 --send a, b", "2 --send=a,b", "--send a ,b # 2"]
)
def test_accepts_equals_signs_spaces_and_comments(kernel: Kernel, line: str) -> None:
    kernel.value("a, b = 1, 2")
    assert kernel.value(f"%%ranks {line}\nrank").startswith("rank 0 → 0\nrank 1 → 1\n")


def test_rejects_comment_above_magic(kernel: Kernel) -> None:
    cell = kernel.run("# two of them\n%%ranks 2\nrank")
    assert cell.error == "LaunchError" and "must be the first line of its cell" in cell.message


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_rejects_nonpositive_timeouts(kernel: Kernel, seconds: str) -> None:
    for cell in (
        f"launch(lambda rank, n: rank, 2, timeout=float('{seconds}'))",
        f"%%ranks 2 --timeout {seconds}\nrank",
        f"torchrun('none.py', timeout=float('{seconds}'))",
    ):
        done = kernel.run(cell)
        assert done.error == "LaunchError", done
        assert "timeout must be more than 0 seconds" in done.message or "none.py" in done.message


@pytest.mark.parametrize("leave", ["exit", "quit"])
def test_exit_and_quit_end_rank(kernel: Kernel, leave: str) -> None:
    well = f"def f(rank, n):\n    print('leaving')\n    {leave}()\nlaunch(f, 2)"
    assert kernel.value(well).count("leaving") == 2
    cell = kernel.run(f"def f(rank, n):\n    {leave}(3)\nlaunch(f, 2)")
    assert cell.error == "RankFailed" and "SystemExit: 3" in cell.message


def test_quotes_line_of_each_syntax_error(kernel: Kernel) -> None:
    for line in ("yield 3", "nonlocal x"):
        assert f"\n    {line}\n" in kernel.run(f"%%ranks 2\n1\n{line}").message


@pytest.mark.extended
def test_ignores_torchrun_environment_in_kernel(
    forked_kernel: MakeKernel,
) -> None:
    kernel = forked_kernel(TORCHELASTIC_RUN_ID="old", RANK="0", LOCAL_RANK="0")
    assert kernel.value("launch(lambda rank, n: rank, 2).values") == "[0, 1]\n"


@pytest.mark.extended
def test_failed_mp_spawn_suggests_launch(new_kernel: MakeKernel) -> None:
    cell = new_kernel().run(
        "import torch.multiprocessing as mp\ndef w(rank, n): pass\nmp.spawn(w, args=(2,), nprocs=2)"
    )
    assert cell.error == "ProcessExitedException"
    assert "launch(f, 2, init=False), which runs f as mp.spawn" in cell.text


def test_syntax_error_keeps_live_ranks(kernel: Kernel) -> None:
    kernel.value("%%ranks 2\nkept = 1")
    cell = kernel.run("%%ranks 2\nfor rank in 3 print(rank)")
    assert cell.error == "LaunchError" and "cell [" in cell.message
    assert "SyntaxError: invalid syntax" in cell.message and "magics.py" not in cell.message
    assert kernel.value("%%ranks 2\nkept") == "rank 0 → 1\nrank 1 → 1\n"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("%%ranks 2\n1 / 0", "RankFailed"),
        ("%%time\n%%ranks 2\n1 / 0", "RankFailed"),
        ("%%capture\n%%ranks 2\n1 / 0", "RankFailed"),
        ("%%ranks 2\nif rank:\n    dist.barrier()", "Deadlock"),
        ("%%ranks 2\n1 +", "LaunchError"),
        ("def f(rank, n):\n    1 / 0\nlaunch(f, 2)", "RankFailed"),
        ("%%capture\ndef f(rank, n):\n    1 / 0\nlaunch(f, 2)", "RankFailed"),
        ("line = (i for i in [1])\ndef f(rank, n):\n    line\nlaunch(f, 2)", "CannotSend"),
    ],
)
def test_failure_message_contains_cell_number(kernel: Kernel, source: str, says: str) -> None:
    cell = kernel.run(source)
    assert cell.error == says
    assert set(re.findall(r"cell \[(\d+)\]", cell.message)) == {str(cell.number)}


def test_reports_cell_defining_function(kernel: Kernel) -> None:
    for magic in ("", "%%capture\n"):
        defined = kernel.run(f"{magic}def of_before(rank, n):\n    1 / 0 # {magic[2:]}")
        kernel.value("1")
        cell = kernel.run("launch(of_before, 2)")
        assert f"cell [{defined.number}], line 2, in of_before" in cell.message
    defined = kernel.run("%%ranks 2\nimport warnings\ndef on_ranks():\n    warnings.warn('so')")
    assert f"cell [{defined.number}], line 4: UserWarning" in kernel.value("%%ranks 2\non_ranks()")
    cell = kernel.run("%%ranks 2\non_ranks() + 1")
    assert f"cell [{cell.number}], line 2, in <module>" in cell.message


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("import asyncio\nawait asyncio.sleep(0)", "asyncio.run"),
        ("1\n!echo hi", "`!echo hi` is an IPython command"),
        ("if rank == 0:\n    %time 1", "`%time 1` is an IPython command"),
        ("return 3", r"^LaunchError: `return` \(line 2\) is outside a function\. .* last line\.$"),
    ],
)
def test_rejects_kernel_commands_and_keeps_ranks(kernel: Kernel, body: str, says: str) -> None:
    kernel.value("%%ranks 2\nkept = 1")
    cell = kernel.run(f"%%ranks 2\n{body}")
    assert cell.error == "LaunchError" and re.search(says, cell.message)
    assert "raised" not in cell.message and "magics.py" not in cell.message
    assert kernel.value("%%ranks 2\nkept") == "rank 0 → 1\nrank 1 → 1\n"


def test_reports_removed_working_directory_briefly(kernel: Kernel) -> None:
    gone = "import os, tempfile\nos.chdir(tempfile.mkdtemp())\nos.rmdir(os.getcwd())\n"
    cell = kernel.run(f"{gone}launch(lambda rank, n: rank, 2)")
    kernel.value("os.chdir('/tmp')")
    assert cell.error == "LaunchError" and "working directory" in cell.message
    assert "site.py" not in cell.message and cell.message.count("\n") == 0


def test_rank_channels_ignore_default_socket_timeout(kernel: Kernel) -> None:
    kernel.value("import socket\nsocket.setdefaulttimeout(5.0)")
    try:
        assert kernel.value("launch(lambda rank, n: rank, 2).values") == "[0, 1]\n"
        assert kernel.value("%%ranks 2\nrank").startswith("rank 0 → 0\nrank 1 → 1\n")
    finally:
        kernel.value("socket.setdefaulttimeout(None)")


def test_forked_child_reports_misplaced_launch(kernel: Kernel) -> None:
    program = """
import multiprocessing
def child(queue):
    try:
        queue.put(str(launch(lambda rank, n: rank, 2)))
    except Exception as error:
        queue.put(str(error))
context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=child, args=(queue,))
process.start()
print(queue.get(timeout=30))
process.join(30)
"""
    shown = kernel.value(program)
    assert "multiprocessing has forked" in shown and "__main__" not in shown


def test_malformed_magic_line_shows_usage(kernel: Kernel) -> None:
    cell = kernel.run("%%ranks four\n1")
    assert cell.error == "LaunchError" and "%%ranks WORLD_SIZE" in cell.message


def test_replaces_and_reports_dead_live_ranks(kernel: Kernel) -> None:
    kernel.value("%%ranks 2\nkept = 1")
    for process in kernel.ranks():
        process.kill()
    wait_until(lambda: not kernel.ranks(), CELL_S, kernel.ranks)
    shown = kernel.value("%%ranks 2\n'kept' in globals()")
    assert "their processes exited" in shown and "False" in shown


@pytest.mark.extended
def test_replaces_and_reports_killed_server(new_kernel: MakeKernel) -> None:
    kernel = new_kernel()
    kernel.value("%%ranks 2\nkept = 1")
    for process in kernel.servers():
        process.kill()
    shown = kernel.value("launch(lambda rank, n: rank, 2)")
    assert "a new one was started" in shown and "rank 1 → 1" in shown
    shown = kernel.value("%%ranks 2\n'kept' in globals()")
    assert "their processes exited" in shown and "False" in shown


def test_cell_recreates_process_group(kernel: Kernel) -> None:
    again = "dist.destroy_process_group()\ndist.init_process_group('gloo')\n"
    shown = kernel.value(f"%%ranks 3\n{again * 3}x = torch.ones(1)\ndist.all_reduce(x)\nx.item()")
    assert shown.count("3.0") == 3


def test_second_init_explains_remedy(kernel: Kernel) -> None:
    cell = kernel.run("%%ranks 2\ndist.init_process_group('gloo')")
    assert "leave out init_process_group(...)" in cell.message


@pytest.mark.parametrize(
    "cell", ["%%ranks 2\n1 / 0", "%%ranks 2\n\n# why\n1 / 0", "\n%%ranks 2\n1 / 0"]
)
def test_counts_lines_like_editor(kernel: Kernel, cell: str) -> None:
    line = cell.split("\n").index("1 / 0") + 1
    assert f"], line {line}, in <module>" in kernel.run(cell).message
