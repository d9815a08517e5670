"""Answers that write directly to the launcher: frames on their channel, lines in their log.

Descriptor 3 is the rank's channel, and its log is found on the stack. After each forgery the answer returns a
wrong value.
"""

from __future__ import annotations

from tests.grading.hostile.attack import Attack

_SEND = """
import json, os, struct, sys, time
def log():
    frame = sys._getframe()
    while not hasattr(frame.f_locals.get("self"), "log"):
        frame = frame.f_back
    return frame.f_locals["self"].log
def note(record):
    log().write(json.dumps(record).encode())
def send(kind, body, length=None):
    data = struct.pack("!BQ", kind, len(body) if length is None else length) + body
    while data:
        data = data[os.write(3, data):]
STATUS, RESULT, ERROR = 11, 12, 13
"""


def _forged(
    name: str, lines: str, *outcomes: str, says: str = "", after: str = "return 1"
) -> Attack:
    body = "\n".join("    " + line for line in [*lines.strip().splitlines(), after])
    source = f"{_SEND}\ndef attack(rank, world_size, *inputs):\n{body}"
    return Attack(name, source, outcomes or ("wrong",), says)


_BROKEN = "crashed"

WIRE = (
    _forged("a frame of gigantic length", "send(RESULT, b'x', 1 << 62)", _BROKEN, says="WireError"),
    _forged("a frame of unknown kind", "send(99, b'x')", _BROKEN, says="unknown kind"),
    _forged("a task for the launcher", "send(1, b'x')", _BROKEN, says="unknown kind"),
    _forged("noise", "os.write(3, os.urandom(5000))", _BROKEN, says="WireError"),
    _forged(
        "half a frame, then the end",
        "send(RESULT, b'x', 100)",
        _BROKEN,
        after="os._exit(0)",
    ),
    _forged(
        "a pickle",
        "import pickle\nsend(RESULT, pickle.dumps(print))",
        _BROKEN,
        says="not a value",
    ),
    _forged(
        "a pickle in a value's place",
        "text = b'[\"pickle\", 0, 8]'\nsend(RESULT, struct.pack('!I', len(text)) + text + bytes(8))",
        _BROKEN,
        says="unknown node",
    ),
    _forged(
        "JSON nested a hundred thousand deep",
        "deep = b'[' * 100_000\n"
        "log().write(deep)\n"
        "send(RESULT, struct.pack('!I', len(deep)) + deep)",
        _BROKEN,
    ),
    _forged(
        "a tensor of a million dimensions",
        "text = ('[\"tensor\",\"uint8\",[' + ','.join([str(1 << 62)] * 1_000_000) + '],0,0]').encode()\n"
        "send(RESULT, struct.pack('!I', len(text)) + text)",
        _BROKEN,
    ),
    _forged(
        "millions of empty lists",
        "text = ('[\"list\",[' + ','.join(['[\"list\",[]]'] * 4_000_000) + ']]').encode()\n"
        "send(RESULT, struct.pack('!I', len(text)) + text)",
        _BROKEN,
    ),
    _forged(
        "an error without end or place",
        'send(ERROR, b\'{"kind": 1, "message": [], "frames": [["<answer>", 1e999, 3]], "when_ns": 1e999}\')',
        _BROKEN,
    ),
    _forged("an error that is a list", "send(ERROR, b'[]')", _BROKEN),
    _forged(
        "a status without meaning",
        'send(STATUS, b\'{"at": ["x", 1e999, {}], "inside": [[[]]], "meets": 1, "needs": 5, "idle": {}}\')',
        _BROKEN,
        "wrong",
    ),
    _forged(
        "events without meaning",
        """
records = [None, 1, "x", [], [[]], ["call"], ["end", 0, 0, "", 0], ["wait", {}, []],
    ["site", 1, "send", "send", None], ["site", 2, "all_reduce", "x" * 10_000, ["f", -5, "$\\frac"]],
    ["site", 10**400, "send", "send", ["x", 10**400, ""]], ["site", {}, "rm", "", []],
    ["call", float("inf"), 1, "", 0, 0, "", [], {}],
    ["call", 10**400, 1, "", -10**400, 0, "", [], {"peer": -10**30}],
    ["call", 1, 1, "", float("nan"), float("-inf"), "", [], {}],
    ["call", 2, 2, "g" * 10_000, 10**18, -1, {}, [[-1, 10**30]], {}],
    ["call", 3, 2, "", 0, 0, "", 7, None], ["call", 4, 2, "", 0], ["call", [], [], [], [], 0],
    ["group", "", [-1, 10**30, "x"]], ["group", "g", "abc"], ["end", 2, -10**18, {}, -7],
    ["_init__", None, 0, 0, {}], ["_class__"], ["put", 1], ["_init_subclass__"], ["_del__"]]
for record in records:
    note(record)
log().write(b"{}")
log().write(b"[1e999, NaN, -Infinity]")
log().write(b"\\0" * 1000 + b"\\xff")
""",
        "wrong",
        _BROKEN,
    ),
    _forged(
        "the collector's own methods",
        """
note(["_init__", None, 0, 0, {"x": 1}, [], [], []])
note(["__class__", 0, 0, 0, [1, 2], 5])
""",
    ),
    _forged(
        "a flood of events",
        """
for n in range(120_000):
    note(["site", n, "send", "send", [f"/x/{n}.py", n, "f"]])
    note(["call", n, n, "", n, 0, "", [], {"peer": 1}])
""",
        "flooded",
    ),
    _forged(
        "a result, and another one",
        "send(RESULT, struct.pack('!I', 4) + b'true')\nsend(RESULT, struct.pack('!I', 4) + b'null')",
    ),
    _forged(
        "a result, and then silence with the channel open",
        "send(RESULT, struct.pack('!I', 4) + b'true')",
        after="time.sleep(60)",
    ),
    _forged(
        "a result, and then half a frame",
        "send(RESULT, struct.pack('!I', 4) + b'true')\nsend(STATUS, b'[', 1000)",
        after="time.sleep(60)",
    ),
    _forged(
        "as much from every rank as may be",
        "size = 15 << 20\n"
        "text = f'[\"bytes\",0,{size}]'.encode()\n"
        "send(RESULT, struct.pack('!I', len(text)) + text + bytes(size))",
    ),
    _forged(
        "files named as the place of an error",
        """
exec(compile("raise ValueError('planted')", "/etc/passwd", "exec"))
""",
        _BROKEN,
        says="planted",
    ),
    _forged(
        "a log that says to be longer than it is",
        "log()._map[:16] = struct.pack('=QQ', 1 << 63, 1 << 63)",
    ),
    _forged(
        "a log without a line's end",
        "log()._map[:16] = struct.pack('=QQ', 9 << 20, 0)\nlog()._map[16:9 << 20] = b'x' * ((9 << 20) - 16)",
    ),
)

_CALLS = """
note(["site", 0, "all_reduce", "all_reduce", ["<answer>", 1, "attack"]])
note(["group", "g", list(range(world_size))])
"""
EVENTS = (
    _forged(
        "calls that never finish, as many as are kept",
        _CALLS
        + """
for n in range(60_000):
    note(["call", n, 0, "g", n, 4, "float32", [[1]], {"asynchronous": True}])
""",
        "wrong",
        "flooded",
        _BROKEN,
    ),
    _forged(
        "calls that all wait, and end again and again",
        _CALLS
        + """
for n in range(30_000):
    note(["call", n, 0, "g", n, 4, "float32", [[1]], {}])
    note(["wait", n, n])
    for _ in range(4):
        note(["end", n, n + 1, "", None])
        note(["held", n, "x" * 50, "y" * 50])
""",
        "wrong",
        "flooded",
        _BROKEN,
    ),
    _forged(
        "calls with megabytes in each place",
        _CALLS
        + """
big, deep = "x" * 3_000_000, [[1] * 1000] * 1000
note(["call", 1, 0, "g", 1, 4, big, [[1]], {}])
note(["call", 2, 0, "g", 2, 4, "float32", deep, {"reduce_op": deep}])
note(["call", 3, 0, big, 3, 4, "float32", [[1]], {str(n): n for n in range(100_000)}])
note(["held", 1, big, big])
note(["group", big, list(range(500_000))])
""",
        "wrong",
        _BROKEN,
    ),
    _forged(
        "groups and lines of code without end",
        """
for n in range(60_000):
    note(["group", f"g{n}", list(range(world_size))])
    note(["site", n, "send", f"call {n}", [f"/file {n}", n, f"f{n}"]])
note(["groups", *[[f"g{n}", [0, 1]] for n in range(100_000)]])
""",
        "wrong",
        "flooded",
        _BROKEN,
    ),
    _forged(
        "records cut in the middle, which make one together",
        """
log().write(b'["site", 0, "send"')
log().write(b'"send", null]], [["call"')
log().write(b'], ["group", "g", [0]')
for n in range(100_000):
    log().write(b"[")
""",
        "wrong",
        _BROKEN,
    ),
    _forged(
        "a log that grows by a byte at a time and never ends a line",
        """
log = log()._map
began = time.monotonic()
while time.monotonic() < began + 3:
    for n in range(16, 8 << 20, 4096):
        log[n:n + 1] = b"x"
        log[:16] = struct.pack("=QQ", n, n)
""",
        "wrong",
        "flooded",
        _BROKEN,
    ),
)
"""Records in the format of today's ranks: many, huge, or none."""
