"""Messages between the course's processes arrive whole and in order, however the socket cuts them."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator

import pytest

from helpers.ranks.json_messages import Messages


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Messages]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, Messages(there, max_fds=8)


def test_reassembles_fragmented_messages(ends: tuple[socket.socket, Messages]) -> None:
    here, there = ends
    sent = [{"do": "end", "why": "a\nline, and a \x00"}, {"do": "preload"}]
    data = b"".join(json.dumps(message).encode() + b"\n" for message in sent)
    received = []
    for at in range(0, len(data), 5):
        here.sendall(data[at : at + 5])
        received += there.receive(1.0)
    assert received == sent and there.receive(0.0) == []


def test_receives_descriptors_with_their_message(ends: tuple[socket.socket, Messages]) -> None:
    here, there = ends
    pipe = os.pipe()
    Messages(here).send({"do": "start"}, pipe)
    assert there.receive() == [{"do": "start"}]
    os.write(there.fds[1], b"through")
    assert os.read(pipe[0], 16) == b"through"
    for fd in (*pipe, *there.fds):
        os.close(fd)


def test_reports_closed_connection(ends: tuple[socket.socket, Messages]) -> None:
    here, there = ends
    here.sendall(b'{"half":')
    assert there.receive() == []
    here.close()
    with pytest.raises(EOFError):
        there.receive(1.0)
    with pytest.raises(OSError):
        there.send({"do": "end"})
