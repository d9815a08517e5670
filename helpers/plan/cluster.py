"""A cluster in numbers: its GPUs, their links, and how long a collective takes on them.

step_time.py asks it for seconds. The collectives are the rings of notebook 05, alpha-beta model and all.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cluster:
    """GPUs in hosts. Bandwidths are bytes a second, of one GPU, in one direction.

    achievable: the part of the peak that a training step's kernels reach while they run; an assumption.
    latency_s: of one message, an assumption too.
    """

    name: str
    gpus: int
    gpus_per_host: int
    memory_bytes: int
    peak_flops: float
    achievable: float
    host_bandwidth: float
    network_bandwidth: float
    latency_s: float = 10e-6

    def ring_s(self, nbytes: float, members: int, in_host: int, calls: int = 1) -> float:
        """Return the seconds of a reduce_scatter or an all_gather; an all_reduce is one and the other.

        nbytes: of the whole tensor, sent in this many calls. in_host: how many of the members share a host.
        Two levels: a ring in each host, then rings between hosts, each for the share that one GPU has got.
        A ring of p passes (p - 1) / p of its bytes, in p - 1 messages for each call (notebook 05).
        """
        hosts = -(-members // in_host)
        inside = _ring(nbytes, in_host, self.host_bandwidth, calls * self.latency_s)
        between = _ring(nbytes / in_host, hosts, self.network_bandwidth, calls * self.latency_s)
        return inside + between

    def message_s(self, nbytes: float, inside: bool) -> float:
        """Return the seconds of one message to a neighbor, in the same host or in another."""
        return self.latency_s + nbytes / (self.host_bandwidth if inside else self.network_bandwidth)


def _ring(nbytes: float, members: int, bandwidth: float, latency_s: float) -> float:
    return (members - 1) * (latency_s + nbytes / members / bandwidth)
