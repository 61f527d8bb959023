"""From blocks as they were read to rows that can be fitted: checked, ordered, joined."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray
from riskset._version import __version__
from riskset.actors import Crew
from riskset.data.aligned_design import common_head
from riskset.model.block import BlockFacts
from riskset.model.censoring import BeyondSupport, CensoringTies, CensoringWeights
from riskset.solve.block_order import links, order_of, survival_before
from riskset.solve.block_rows import BlockRows

__all__ = ["Joined", "Subdistribution", "join"]


class Subdistribution(NamedTuple):
    """How Fine and Gray's model estimates the distribution of censoring; see `Censoring`."""

    ties: CensoringTies
    beyond: BeyondSupport
    weights: CensoringWeights


class Joined(NamedTuple):
    """Rows to fit, and what there is to know of them."""

    rows: BlockRows
    facts: list[BlockFacts]
    strata: AnyArray

    @property
    def has_counts(self) -> bool:
        """Whether all weights are whole numbers."""
        return all(fact.has_counts for fact in self.facts)

    @property
    def n_dropped(self) -> dict[str, int]:
        """What was left out, by reason."""
        absent = sum(fact.n_absent for fact in self.facts)
        return {"rows_of_weight_0": absent} if absent else {}

    @property
    def n_near_ties(self) -> int:
        """Neighbouring times of a block that differ only in their last digits."""
        return sum(fact.n_near_ties for fact in self.facts)

    @property
    def n_strata_with_events(self) -> int:
        """Strata that say something."""
        return len({k for fact in self.facts for k in fact.strata[fact.has_events].tolist()})


def join(
    crew: Crew,
    names: Sequence[str],
    cause: int | None,
    censoring: Subdistribution | None,
    *,
    absent_is_zero: bool = False,
) -> Joined:
    """Join blocks into the rows of one likelihood; `censoring` is None for Cox's.

    With `absent_is_zero`, columns that a block does not have are 0 in it. Blocks that do not fit to
    the others, or cannot be fitted in blocks, are refused by name.
    """
    if absent_is_zero:
        columns = {
            name: key for one in crew.call("columns") for name, key in zip(*one, strict=True)
        }
        crew.call("align", tuple(columns), tuple(columns.values()))
    facts: list[BlockFacts] = crew.call("facts", cause)
    _check(facts, names)
    found = order_of(facts, names)
    ends = [(found.first[b], found.last[b]) for b in range(len(facts))]
    borders = crew.call("arrange", each=ends)
    chain = links(
        [borders[b] for b in found.order], [found.first[b] is not None for b in found.order]
    )
    head = common_head([fact.head for fact in facts])
    survival: Sequence[AnyArray | None] = [None] * len(facts)
    least = 0.0
    if censoring is not None:
        times = crew.call("times", censoring.weights == "case")
        survival, last = survival_before(times, censoring.ties)
        least = last if censoring.beyond == "last" else 0.0
    in_order = dict(zip(found.order, chain, strict=True))
    each = [(in_order[b], survival[b]) for b in range(len(facts))]
    crew.call("join", head, least, each=each)
    rows = BlockRows(crew, head, found.order, chain)
    labels = {label for fact in facts for label in fact.strata.tolist()}
    strata = np.empty(len(labels), dtype=object)
    strata[:] = sorted(labels)
    return Joined(rows, facts, strata)


def _check(facts: Sequence[BlockFacts], names: Sequence[str]) -> None:
    if not any(fact.n_events for fact in facts):
        raise InputError(
            f"none of the {len(facts):,} blocks has an event in a row of positive weight.",
            hint="check the coding of events, and `cause`.",
        )
    first = facts[0].head
    for fact, name in zip(facts, names, strict=True):
        if fact.version != __version__:
            raise InputError(
                f"the worker of {name} has riskset {fact.version}, but this is riskset "
                f"{__version__}.",
                hint="install the same version everywhere.",
            )
        if fact.has_entry:
            raise InputError(
                f"{name} has late entry, which a fit in blocks does not take.",
                hint="fit on one machine, from a design in a file if it is large.",
            )
        if fact.has_cluster:
            raise InputError(
                f"{name} has clusters, but a fit in blocks has no robust variance.",
                hint="leave them out, or fit on one machine.",
            )
        if fact.head.names != first.names:
            own, others = set(fact.head.names), set(first.names)
            odd = sorted(own ^ others)
            what = (
                f"{odd[0]!r} is only in {name if odd[0] in own else names[0]}"
                if odd
                else "they stand in another order"
            )
            raise InputError(
                f"{name} has other covariates than {names[0]}: {what}.",
                hint="make every block with the same columns in the same order and categories "
                "with the same levels; of long tables, pass `absent='zero'` to Blocks.",
            )
        if fact.head.factors != first.factors:
            differ = sorted({*fact.head.factors} ^ {*first.factors})[0]
            raise InputError(
                f"{name} has other levels of categories than {names[0]}: "
                f"{', '.join(map(repr, differ))} are those of "
                f"{name if differ in fact.head.factors else names[0]}.",
                hint="make every block with the same levels, the first of which has no column.",
            )
