r"""Waiting in a queue.

Symbols: arrivals a second :math:`\lambda`, mean service time :math:`s`, servers :math:`c`, offered load
:math:`a = \lambda s`, utilisation :math:`\rho = a / c`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clusterwright.units import Count, Seconds, Share

    Floats = NDArray[np.float64]


def blocking_probability_erlang_1917(offered_load: Count, servers: Count) -> Floats:
    r"""Share of arrivals that find all servers busy where nobody waits (M/G/c/c).

    .. math:: B(0) = 1, \quad B(k) = \frac{a B(k - 1)}{k + a B(k - 1)}

    Args:
        offered_load: :math:`a` [1], any shape.
        servers: :math:`c` [1], whole.

    Returns:
        [1], the broadcast shape.

    Source: A. K. Erlang, "Solution of some problems in the theory of probabilities", 1917 (formula B).

    >>> round(float(blocking_probability_erlang_1917(5.0, 11)), 4)
    0.0083
    """
    load, most = np.broadcast_arrays(np.asarray(offered_load, dtype=np.float64), np.asarray(servers, dtype=np.int64))
    blocked = np.ones(load.shape)
    for k in range(1, int(most.max(initial=0)) + 1):
        blocked = np.where(k <= most, load * blocked / (k + load * blocked), blocked)
    return blocked


def waiting_probability_erlang_1917(offered_load: Count, servers: Count) -> Floats:
    r"""Share of arrivals that wait (M/M/c).

    .. math:: C = \frac{B}{1 - \rho (1 - B)} \quad (\rho < 1)

    Arguments as :func:`blocking_probability_erlang_1917`; 1 where the load is not below the servers.

    Source: as there (formula C).

    >>> float(waiting_probability_erlang_1917(0.5, 1))
    0.5
    """
    blocked = blocking_probability_erlang_1917(offered_load, servers)
    busy = np.asarray(offered_load, dtype=np.float64) / np.asarray(servers, dtype=np.float64)
    stable = busy < 1.0
    return np.where(stable, blocked / np.where(stable, 1.0 - busy * (1.0 - blocked), 1.0), 1.0)


def mean_wait_allen_cunneen_1978(
    arrivals_per_s: Count, service_time: Seconds, servers: Count, arrival_scv: Share = 1.0, service_scv: Share = 1.0
) -> Floats:
    r"""Mean wait before service begins (G/G/c), exact for M/M/c and M/G/1.

    .. math:: W = \frac{C(c, a)}{c / s - \lambda} \cdot \frac{v_a^2 + v_s^2}{2}

    Args:
        arrivals_per_s: :math:`\lambda` [1/s], any shape.
        service_time: Mean, :math:`s` [s].
        servers: :math:`c` [1].
        arrival_scv: Squared coefficient of variation of the times between arrivals, :math:`v_a^2` [1]; 1 is Poisson.
        service_scv: The same of the service times, :math:`v_s^2` [1]; 0 is constant.

    Returns:
        [s], the broadcast shape; infinite where the load is not below the servers.

    Source: A. O. Allen, "Probability, Statistics and Queueing Theory", 1978, section 5.3 (Allen-Cunneen).

    >>> float(mean_wait_allen_cunneen_1978(0.5, 1.0, 1))
    1.0
    """
    rate, each = np.asarray(arrivals_per_s, dtype=np.float64), np.asarray(service_time, dtype=np.float64)
    waits = waiting_probability_erlang_1917(rate * each, servers)
    room = np.asarray(servers, dtype=np.float64) / each - rate
    spread = (np.asarray(arrival_scv, dtype=np.float64) + np.asarray(service_scv, dtype=np.float64)) / 2.0
    return np.where(room > 0, waits * spread / np.where(room > 0, room, 1.0), np.inf)
