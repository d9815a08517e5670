"""Describe a cluster in numbers: its GPUs, their links, and the times of collectives.

step_time.py calls its methods. Collectives use the rings and the alpha-beta model of notebook 05.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cluster:
    """GPUs in hosts. Bandwidths are in bytes per second, for one GPU and one direction.

    Args:
        peak_flops: Floating-point operations per second of one GPU at its peak.
        achievable: The share of the peak that a training step's kernels are assumed to reach while running.
            latency_s: The assumed latency of one message.
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
        """Return the seconds for a reduce_scatter or an all_gather. An all_reduce takes the sum of both.

        There are two levels: a ring in each host, followed by rings between hosts, each for one GPU's share.
        A ring of p members passes (p - 1) / p of its bytes, in p - 1 messages for each call (notebook 05).

        Args:
            nbytes: The bytes of the whole tensor.
            members: The size of the group.
            in_host: The number of members that share a host.
            calls: The number of calls in which the tensor is sent.
        """
        hosts = -(-members // in_host)
        inside = _ring(nbytes, in_host, self.host_bandwidth, calls * self.latency_s)
        between = _ring(nbytes / in_host, hosts, self.network_bandwidth, calls * self.latency_s)
        return inside + between

    def message_s(self, nbytes: float, inside: bool) -> float:
        """Return the seconds for one message to a neighbor. inside: whether both are in the same host."""
        return self.latency_s + nbytes / (self.host_bandwidth if inside else self.network_bandwidth)


def _ring(nbytes: float, members: int, bandwidth: float, latency_s: float) -> float:
    return (members - 1) * (latency_s + nbytes / members / bandwidth)
