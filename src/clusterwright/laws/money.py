r"""Money of a run, and of a cluster that is rented, committed to or owned.

Symbols: ``n`` nodes, ``c`` price of a node for an hour, ``t`` time, ``t_0`` the least time that must be paid,
``P`` price when bought, ``S`` residual value, ``N`` periods, ``i`` cost of capital a period, ``u`` utilisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clusterwright.units import HOUR

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clusterwright.units import Bytes, Count, Seconds, Share, Usd

    Floats = NDArray[np.float64]


def rent(nodes: Count, usd_per_node_hour: Usd, time: Seconds, commitment: Seconds = 0.0) -> Floats:
    r"""What renting costs: every node for the whole time, and never for less than what must be paid.

    .. math:: C = n \, c \, \max(t, t_0) / 3600

    Args:
        nodes: Nodes that are paid, spares included. [1], any shape
        usd_per_node_hour: Price of one node (not of one accelerator) for one hour. [USD]
        time: How long they are kept. [s]
        commitment: The least time that must be paid. [s]

    Returns:
        The sum [USD], of the broadcast shape.

    >>> float(rent(12, 31.92, 10 * 86400.0))
    91929.6
    >>> float(rent(12, 31.92, 10 * 86400.0, commitment=20 * 86400.0))  # a commitment costs its whole term
    183859.2
    """
    paid = np.maximum(np.asarray(time, dtype=np.float64), commitment) / HOUR
    return np.asarray(np.asarray(nodes, dtype=np.float64) * usd_per_node_hour * paid)


def commitment_share(time: Seconds, kept: Seconds, utilisation: Share) -> Floats:
    r"""Share of a commitment that one job bears, when the rest of its useful time serves other jobs.

    .. math:: s = \min\left(1, \frac{t}{u \, T}\right)

    Args:
        time: That the job takes. [s], any shape
        kept: How long what was committed to can be used, :math:`T`. [s]
        utilisation: Share of that time that is useful work of some job, :math:`u`. [1]

    Returns:
        [1], of the broadcast shape.

    >>> float(commitment_share(30 * 86400.0, 3 * 365.25 * 86400.0, 0.5))  # a month of three years that are half used
    0.0547...
    """
    useful = np.asarray(utilisation, dtype=np.float64) * kept
    return np.asarray(np.minimum(1.0, np.asarray(time, dtype=np.float64) / useful))


def residual_value(price: Usd, age: Seconds, left: Share, left_age: Seconds) -> Floats:
    r"""What a thing still sells for: every year it keeps the same share of what it was worth.

    .. math:: S = P \, r^{a / a_r}

    Args:
        price: When bought, :math:`P`. [USD], any shape
        age: When sold, :math:`a`. [s]
        left: Of the price that is left at a known age, :math:`r`. [1]
        left_age: That age, :math:`a_r`. [s]

    Returns:
        [USD], of the broadcast shape.

    >>> float(residual_value(300_000.0, 6.0, 0.3, 3.0))  # 30% after three years, so 9% after six
    27000.0
    """
    kept = np.power(np.asarray(left, dtype=np.float64), np.asarray(age, dtype=np.float64) / left_age)
    return np.asarray(np.asarray(price, dtype=np.float64) * kept)


def annuity(price: Usd, residual: Usd, rate: Share, periods: Count) -> Floats:
    r"""The level sum, paid at the end of every period, that pays for a thing and for the capital bound in it.

    .. math:: A = \left(P - \frac{S}{(1 + i)^N}\right) \frac{i}{1 - (1 + i)^{-N}}, \qquad A = (P - S) / N
        \text{ where } i = 0

    Without cost of capital it is straight-line depreciation.

    Args:
        price: Paid at the start, :math:`P`. [USD], any shape
        residual: Got back at the end, :math:`S`. [USD]
        rate: Cost of capital of one period, :math:`i`. [1]
        periods: :math:`N`. [1]

    Returns:
        [USD] a period, of the broadcast shape.

    Source: any text of engineering economics; capital recovery with salvage value.

    >>> round(float(annuity(100_000.0, 0.0, 0.08, 5)), 2)
    25045.65
    >>> float(annuity(100_000.0, 20_000.0, 0.0, 4))  # straight line
    20000.0
    """
    whole, back, i, n = np.broadcast_arrays(
        *(np.asarray(a, dtype=np.float64) for a in (price, residual, rate, periods))
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = np.exp(n * np.log1p(i))
        level = (whole - back / grown) * i / -np.expm1(-n * np.log1p(i))
    return np.asarray(np.where(i == 0, (whole - back) / n, level))


def net_present_value(flows: ArrayLike, rate: Share) -> Floats:
    r"""What payments are worth today, the first of them now.

    .. math:: V = \sum_{k=0}^{N} \frac{F_k}{(1 + i)^k}

    Args:
        flows: One a period, the last axis over periods. [USD], any shape
        rate: Cost of capital of one period. [1]

    Returns:
        [USD], the shape of the flows without the last axis.

    >>> round(float(net_present_value([-100.0, 60.0, 60.0], 0.1)), 2)
    4.13
    """
    paid = np.asarray(flows, dtype=np.float64)
    return np.asarray((paid / np.power(1.0 + np.asarray(rate), np.arange(paid.shape[-1]))).sum(axis=-1))


def break_even_utilisation(usd_owned: Usd, usd_rented: Usd) -> Floats:
    r"""Share of the time from which on owning is cheaper than renting by the hour; above 1: never.

    An hour of what is owned costs the same used or idle, a rented hour only when used: :math:`u = c_o / c_r`.

    Args:
        usd_owned: Of an hour of what is owned. [USD], any shape
        usd_rented: Of an hour that is rented, for the same work. [USD]

    Returns:
        [1], of the broadcast shape.

    >>> float(break_even_utilisation(2.0, 4.0))
    0.5
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.asarray(usd_owned, dtype=np.float64) / np.asarray(usd_rented, dtype=np.float64))


def pay_back(price: Usd, saving: Usd, rate: Share = 0.0) -> Floats:
    r"""Periods until what owning saves has paid for what was bought, and for the capital bound in it.

    .. math:: N = \frac{-\ln(1 - i P / A)}{\ln(1 + i)}, \qquad N = P / A \text{ where } i = 0

    Args:
        price: Paid at the start, :math:`P`. [USD], any shape
        saving: Rent that is not paid, less what running the owned costs, a period, :math:`A`. [USD]
        rate: Cost of capital of one period, :math:`i`. [1]

    Returns:
        [1], of the broadcast shape; infinite where the saving never pays.

    >>> float(pay_back(300.0, 25.0)), round(float(pay_back(300.0, 25.0, 0.01)), 1), float(pay_back(300.0, -1.0))
    (12.0, 12.8, inf)
    """
    whole, back, i = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (price, saving, rate)))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = i * whole / back
        periods = np.where(i == 0, whole / back, -np.log1p(-np.minimum(share, 1.0)) / np.log1p(i))
    return np.asarray(np.where((back > 0) & (share < 1), periods, np.inf))


def energy_cost(power: Count, time: Seconds, usd_per_kwh: Usd) -> Floats:
    """What a constant draw costs: power times time, at a price for the kilowatt-hour.

    Args:
        power: At the meter, cooling included. [W], any shape
        time: [s]
        usd_per_kwh: [USD]

    Returns:
        [USD], of the broadcast shape.

    >>> round(float(energy_cost(1000.0, 3600.0, 0.10)), 4)
    0.1
    """
    return np.asarray(np.asarray(power, dtype=np.float64) * time / (1e3 * HOUR) * usd_per_kwh)


def storage_rent(size: Bytes, usd_per_gb_month: Usd, time: Seconds, month: Seconds = 30.4375 * 86400.0) -> Floats:
    """What keeping bytes costs.

    Args:
        size: That are bought, not only used. [B], any shape
        usd_per_gb_month: Price of 1e9 bytes for a month. [USD]
        time: [s]
        month: [s]

    Returns:
        [USD], of the broadcast shape.

    >>> round(float(storage_rent(10e12, 0.145, 30.4375 * 86400.0)), 2)  # ten terabytes for a month
    1450.0
    """
    return np.asarray(np.asarray(size, dtype=np.float64) / 1e9 * usd_per_gb_month * np.asarray(time) / month)
