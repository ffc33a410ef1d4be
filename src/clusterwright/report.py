"""Plans and terms as text that people read at 100 columns; plain ASCII where the terminal knows no more."""

from __future__ import annotations

import textwrap
from typing import IO, TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from clusterwright.units import HOUR, show_bytes, show_duration, show_money

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusterwright.facility import Facility, Failures, Network, NetworkChoice, Power, StorageNeed
    from clusterwright.plan import Candidate, Case, Plan, Robustness, Threshold, Upgrade
    from clusterwright.term import Term

WIDTH = 100
OFFERS = "offers"
"""What the reasons begin with that left out an offer, not a candidate."""
EXCLUSIONS = 6
"""Reasons of exclusion that are shown; the plan document holds all."""
NEGLIGIBLE = 1e-4
"""A part below this share of the whole is not worth a line. [1]"""


def wrapped(name: str, text: str, column: int = 14) -> str:
    """A name and its text, broken at the width of a page.

    >>> wrapped("power", "270 kW")
    'power         270 kW'
    """
    start = f"{name:<{column}}" if name.strip() else name
    return textwrap.fill(
        text, WIDTH, initial_indent=start, subsequent_indent=" " * column, break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip


def show_plan(plan: Plan, file: IO[str]) -> None:
    """Print a plan: the choice, why, the front, what came near, and what to beware of."""
    out = _Page(file)
    if plan.chosen is None:
        out.line(f"Nothing satisfies this workload ({plan.model.name}).")
    else:
        _choice(out, plan, plan.chosen)
    _bullets(out, "Why", plan.reasons)
    if plan.front:
        out.table(_front(plan))
    if plan.chosen is not None:
        _robust(out, plan.robustness, plan.chosen)
        _bullets(out, "What one more dollar would buy", [upgrade_words(u, plan.chosen) for u in plan.upgrades])
    _bullets(out, "Rejected", [_miss(r.binding_constraint, r.why, r.candidate) for r in plan.rejected])
    if plan.exclusions:
        _bullets(out, _excluded(plan), _shares(plan))
    _bullets(out, "Warnings", plan.warnings)
    _bullets(out, "Assumed", plan.assumptions)
    out.line(f"Prices and parts as of {plan.catalogue_date.isoformat()}.")


def show_term(term: Term, sources: Iterable[str], file: IO[str]) -> None:
    """Print a tree of terms, and the sources behind it."""
    out = _Page(file)
    tree = Tree(out.plain(_term(term)))
    _grow(out, tree, term)
    out.table(tree)
    _bullets(out, "Sources", sources)


def show_robustness(plan: Plan, file: IO[str]) -> None:
    """Print what would change a plan's choice."""
    if plan.chosen is not None:
        _robust(_Page(file), plan.robustness, plan.chosen)


def show_lines(title: str, lines: Iterable[str], file: IO[str]) -> None:
    """Print a title with sentences under it."""
    _bullets(_Page(file), title, lines)


def show_table(table: Table, file: IO[str]) -> None:
    """Print a table."""
    _Page(file).table(table)


def show_candidate(candidate: Candidate, file: IO[str], *, title: str) -> None:
    """Print one candidate."""
    _Page(file).table(_facts(candidate, title))


class _Page:
    """A console of the width of a page that never meets a character that its file cannot write."""

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.encoding = getattr(file, "encoding", None) or "utf-8"
        self.console = Console(file=file, width=WIDTH, highlight=False, markup=False, safe_box=True)

    def plain(self, text: str) -> str:
        return text.encode(self.encoding, "replace").decode(self.encoding)

    def line(self, text: str = "") -> None:
        self.console.print(self.plain(text))

    def table(self, what: Table | Tree) -> None:
        """Print it without the blanks that fill its lines up."""
        with self.console.capture() as drawn:
            self.console.print(what)
        self.file.writelines(f"{line.rstrip()}\n" for line in drawn.get().removesuffix("\n").split("\n"))


def _bullets(out: _Page, title: str, lines: Iterable[str]) -> None:
    found = list(lines)
    if not found:
        return
    out.line(title)
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=3, justify="right")
    grid.add_column(overflow="fold")
    for text in found:
        grid.add_row("-", out.plain(text))
    out.table(grid)
    out.line()


def _choice(out: _Page, plan: Plan, chosen: Candidate) -> None:
    cluster = f"{chosen.nodes} x {chosen.node}, {chosen.accelerators} {chosen.accelerator}"
    out.table(_facts(chosen, f"{plan.model.name}: {cluster}", plan.facility))


def _facts(chosen: Candidate, title: str, facility: Facility | None = None) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    for name, text in [*_lines(chosen), *(facility_lines(facility) if facility else ())]:
        table.add_row(name, text)
    return table


def facility_lines(facility: Facility) -> list[tuple[str, str]]:
    """The rest of the cluster, a line or two for each part: name and text."""
    found = [("networks", "; ".join(_network(n) for n in facility.networks))] if facility.networks else []
    if facility.rails and facility.needs:
        found.append(("needs", _need(facility)))
    if facility.storage:
        found.append(("capacity", _capacity(facility.storage)))
    if facility.failures:
        found.append(("failures", _failures(facility.failures)))
    return [*found, ("power", _power(facility.power))]


def _network(network: Network) -> str:
    design = network.design
    price = "no price known" if network.capex_usd is None else f"{show_money(network.capex_usd)} to buy"
    switches = f"{design.switches:,} switch{'' if design.switches == 1 else 'es'}"
    return f"{network.purpose} {switches}, {design.cables:,} cables ({price})"


def _need(facility: Facility) -> str:
    """The least network of the plan's own kind that is adequate, what its own costs, and what more would save."""
    own = facility.own
    kinds = [n for n in facility.needs if own and n.fabric is own.fabric] or [n for n in facility.needs if n.adequate]
    need = (kinds or facility.needs)[0]
    least = need.adequate
    found = [f"nothing that was weighed over {need.fabric.value} is enough"]
    if least is not None:
        found = [f"{_size(least)} over {need.fabric.value} cost {least.cost_share:.1%} of a step"]
    if own is not None and own != least:
        found.append(f"the {_size(own)} of this cluster cost {own.cost_share:.1%}")
    more, saves = need.next_up, need.next_up_saves_usd or 0.0
    if more is not None and saves >= 1 and (own is None or own.cost_share > more.cost_share):
        found.append(f"{more.node_bits_per_s / 1e9:,.0f} Gb/s would save {show_money(saves)}")
    return "; ".join(found)


def _size(network: NetworkChoice) -> str:
    return f"{network.node_bits_per_s / 1e9:,.0f} Gb/s a node at {network.oversubscription:g}:1"


def _capacity(need: StorageNeed) -> str:
    able = need.deliverers[0] if need.deliverers else None
    who = f"; {able.name} wrote {(able.write_bytes_per_s or 0.0) / 1e9:,.1f} GB/s" if able else "; measured nowhere"
    return (
        f"{show_bytes(need.capacity_bytes)} for {need.checkpoints_kept} checkpoints and the data, with room "
        f"{show_bytes(need.room_bytes)} at {show_money(need.usd_per_month)} a month; synchronous saves under 1% need "
        f"{show_bytes(need.sync_write_bytes_per_s)}/s{who}"
    )


def _failures(failures: Failures) -> str:
    low, high = failures.goodput_interval
    spot = f" ({failures.reclaim_share:.0%} of them spot nodes taken away)" if failures.reclaim_share else ""
    worst = failures.elsewhere[0] if failures.elsewhere else None
    elsewhere = f", {worst.goodput:.1%} if it failed as often as {worst.cluster}" if worst else ""
    best = max(failures.improvements, key=lambda i: i.saves_usd, default=None)
    worth = f"; {best.change} would save {show_money(best.saves_usd)}" if best and best.saves_usd >= 1 else ""
    return (
        f"one in {show_duration(failures.mtbf_s)}{spot}, {_times(failures.in_run)} in the run; goodput simulated "
        f"{low:.2%} to {high:.2%}{elsewhere}{worth}"
    )


def _times(count: float) -> str:
    """How often, a rare thing too.

    >>> _times(13.66), _times(0.0042)
    ('13.7', '0.004')
    """
    return f"{count:,.1f}" if count >= 0.1 else f"{count:.1g}"  # noqa: PLR2004 - of one decimal nothing would be left


def _power(power: Power) -> str:
    able = [r for r in power.racks if r.racks]
    fewest = next((n for n, r in enumerate(able) if r.racks == 1), len(able))  # stronger ones hold no more
    racks = " or ".join(f"{r.racks} of {r.rack_power_w / 1e3:,.0f} kW" for r in able[: fewest + 1])
    limit = "" if power.limit_w is None else f" (limit {_kw(power.limit_w)})"
    energy = power.energy_j / 3.6e6
    used = f"{energy / 1e3:,.0f} MWh" if energy >= 1e4 else f"{energy:,.0f} kWh"  # noqa: PLR2004 - two digits at least
    return (
        f"nodes and networks {_kw(power.it_power_w)}{limit}, {_kw(power.site_power_w)} with cooling; "
        f"racks: {racks or 'none is strong enough'}; {used}, {show_money(power.energy_usd)}"
    )


def _kw(watts: float) -> str:
    """A power of a cluster, or of a PC.

    >>> _kw(525_000.0), _kw(820.0)
    ('525 kW', '0.8 kW')
    """
    return f"{watts / 1e3:,.0f} kW" if watts >= 1e4 else f"{watts / 1e3:,.1f} kW"  # noqa: PLR2004 - two digits at least


def _lines(chosen: Candidate) -> list[tuple[str, str]]:
    found, store = chosen.estimate, chosen.storage
    nodes = "node" if chosen.nodes == 1 else "nodes"
    accelerators = "accelerator" if chosen.accelerators == 1 else "accelerators"
    low, high = (show_duration(end) for end in found.interval)
    step = f"{show_duration(found.step_time_s)} ({low.removesuffix(high.lstrip('0123456789.'))} to {high}, 80%)"
    run = f"{show_duration(found.train_time_s)}, goodput {found.goodput:.1%}, {_sums(chosen)}"
    saves = f"{show_bytes(store.checkpoint_bytes)} every {show_duration(store.checkpoint_interval_s)}"
    return [
        ("cluster", f"{chosen.nodes} {nodes} and {chosen.spares} spare, {chosen.accelerators} {accelerators}"),
        ("offer", _offer(chosen)),
        ("layout", layout_words(chosen)),
        ("step", f"{step}, MFU {found.mfu:.1%}, {found.tokens_per_s:,.0f} tokens/s"),
        ("memory", f"{show_bytes(found.memory_bytes)} an accelerator"),
        ("run", f"{run}, {_kw(found.power_w)}"),
        ("fabric", _fabric(chosen)),
        ("storage", f"{saves}, {show_bytes(store.write_bytes_per_s)}/s"),
    ]


def _sums(chosen: Candidate) -> str:
    """What the job pays, and what is committed to in whole where that is more."""
    found = chosen.estimate
    if chosen.offer.provider == "none":
        return "cost not counted"
    whole = found.commitment_usd
    more = f" of {show_money(whole)} committed" if whole is not None and whole > found.cost_usd else ""
    return f"{show_money(found.cost_usd)}{more}"


def _offer(chosen: Candidate) -> str:
    offer = chosen.offer
    if offer.provider == "none":
        return f"{offer.instance}: {offer.source}"
    term = "" if offer.term == offer.provider else f", {offer.term}"
    place = f"{offer.provider} {offer.instance}{term}" + (f", {offer.region}" if offer.region else "")
    seen = f", seen {offer.seen.isoformat()}" if offer.seen else ""
    if not offer.usd_per_accelerator_hour:
        return f"{place}, at no price ([cluster] usd_per_hour)"
    return f"{place}, ${offer.usd_per_accelerator_hour:.2f} an accelerator-hour{seen}"


def _fabric(chosen: Candidate) -> str:
    fabric = chosen.fabric
    if fabric.tiers == 0:
        return "one node"
    switches = f"{fabric.leaf} leaf, {fabric.spine} spine, {fabric.core} core switches"
    tiers = f"{fabric.tiers} tier{'s' if fabric.tiers > 1 else ''}"
    return f"{fabric.topology}, {tiers}: {switches}, {fabric.cables:,} cables"


def layout_words(candidate: Candidate) -> str:
    """A layout in one line: degrees above one, batch, sharding and recompute."""
    layout = candidate.layout
    degrees = [f"{n} {getattr(layout, n)}" for n in ("tp", "cp", "pp", "vpp", "ep", "dp") if getattr(layout, n) > 1]
    return (
        f"{' '.join(degrees) or 'one accelerator'}, micro-batch {layout.micro_batch} of {layout.global_batch}, "
        f"{layout.precision}, sharding {layout.sharding}, recompute {layout.recompute}"
        f"{'' if layout.schedule == '1f1b' else f', {layout.schedule}'}"
    )


def _front(plan: Plan) -> Table:
    table = Table(title="Front of time and money", box=box.SIMPLE_HEAD, title_justify="left")
    for name, right in (("", False), ("cluster", False), ("offer", False), ("tp cp pp vpp ep dp", True), ("time", True),
                        ("cost", True), ("MFU", True)):  # fmt: skip
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "offer")
    for one in plan.front:
        lay, found = one.layout, one.estimate
        table.add_row(
            ">" if one == plan.chosen else "", f"{one.accelerators} {one.accelerator}",
            f"{one.seller}, ${one.offer.usd_per_accelerator_hour:.2f}",
            f"{lay.tp} {lay.cp} {lay.pp} {lay.vpp} {lay.ep} {lay.dp}", show_duration(found.train_time_s),
            show_money(found.cost_usd), f"{found.mfu:.0%}",
        )  # fmt: skip
    return table


def _robust(out: _Page, found: Robustness, chosen: Candidate) -> None:
    """What each uncertain figure does to time and money, and the prices at which the choice changes."""
    if found.swings:
        table = Table(title="How robust it is", box=box.SIMPLE_HEAD, title_justify="left")
        for name in ("figure", "at its lower end", "at its upper end"):
            table.add_column(name, overflow="fold", max_width=38)
        for swing in found.swings:
            table.add_row(*map(out.plain, (swing.what, _case(swing.low, chosen), _case(swing.high, chosen))))
        out.table(table)
    _bullets(out, "The choice changes", [threshold_words(one) for one in found.thresholds])


def _case(case: Case, chosen: Candidate) -> str:
    found = f"x {case.factor:.2f}: {show_money(case.cost_usd)}, {show_duration(case.train_time_s)}"
    if not case.choice:
        return f"{found}; nothing meets the constraints"
    size = f"{chosen.accelerators} {chosen.accelerator} "
    return found if case.choice.startswith(size) and not case.changes else f"{found}; then {case.choice}"


def threshold_words(one: Threshold) -> str:
    """A price at which the choice changes, in a sentence."""
    way = "rises above" if one.changes_at_usd > one.usd_per_accelerator_hour else "falls below"
    seller = ", ".join(dict.fromkeys((one.provider, one.term)))
    return (
        f"to {one.choice or 'nothing'} if {one.accelerator} ({seller}) {way} "
        f"${one.changes_at_usd:.2f} an accelerator-hour (now ${one.usd_per_accelerator_hour:.2f})"
    )


def upgrade_words(one: Upgrade, chosen: Candidate) -> str:
    """What an upgrade gives, in a sentence."""
    now, then = chosen.estimate.train_time_s, one.train_time_s
    if one.what.startswith("rent"):
        price = "at no price" if one.price_usd is None else f"for {show_money(one.price_usd)}"
        return f"{one.what}, {show_duration(then)} {price}"
    found = f"{one.what}: {show_duration(now - then)} sooner ({1 - then / now:.1%})"
    if one.price_usd is None:
        return f"{found}; its price is not known"
    if one.price_usd <= 0:
        return f"{found}; nothing to pay"
    each = show_money(one.price_usd / (now - then) * HOUR)
    return f"{found} for {show_money(one.price_usd)}: {each} for every hour saved"


def _excluded(plan: Plan) -> str:
    """How many candidates there were."""
    return f"Of {plan.candidates:,} candidates" if plan.candidates else "Excluded"


def _shares(plan: Plan) -> list[str]:
    """The reasons that left out most, each with its share of all candidates; offers are counted by themselves."""
    worst = sorted(plan.exclusions.items(), key=lambda item: -item[1])
    layouts = [(why, count) for why, count in worst if not why.startswith(OFFERS)]
    found = [
        f"{count / plan.candidates:.1%} ({count:,}): {why}" if plan.candidates else f"{count:,}: {why}"
        for why, count in layouts[:EXCLUSIONS]
    ]
    return [*found, *(f"{count:,} {why}" for why, count in worst if why.startswith(OFFERS))]


def _miss(constraint: str, why: str, candidate: Candidate | None) -> str:
    if candidate is None:
        return f"{constraint}: {why}"
    return f"{constraint}: {candidate.accelerators} {candidate.accelerator} ({candidate.offer.provider}): {why}"


def _term(term: Term) -> str:
    return f"{term.name}: {show_value(term.value, term.unit)}  ({term.kind.value}; {term.source})"


def show_value(value: float, unit: str) -> str:
    """A value with its unit as people read it.

    >>> show_value(0.9711, "1"), show_value(79.2e9, "B"), show_value(3.2e9, "B/s"), show_value(3.0, "USD/h")
    ('0.9711', '79.2 GB', '3.2 GB/s', '3 USD/h')
    """
    if unit == "s":
        return show_duration(value)
    if unit == "USD":
        return show_money(value)
    if unit in ("B", "B/s"):
        return show_bytes(value) + unit.removeprefix("B")
    if unit == "W":
        return f"{value / 1e3:,.1f} kW"
    number = f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"
    return number if unit == "1" else f"{number} {unit}"


def _grow(out: _Page, tree: Tree, term: Term) -> None:
    same = [part.value for part in term.parts if part.unit == term.unit]
    adds_up = abs(sum(same) - term.value) <= NEGLIGIBLE * abs(term.value)
    for part in term.parts:
        if adds_up and part.unit == term.unit and abs(part.value) < NEGLIGIBLE * abs(term.value):
            continue
        _grow(out, tree.add(out.plain(_term(part))), part)
