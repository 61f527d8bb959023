"""An attacker who puts down what all tables and analyses tell of the same people, and subtracts.

Numbers of the same people are those of an exposure with the same numbers of people. Of analyses
with the same follow-up, values of curves and means tell numbers of events, too.
"""

import itertools
from collections import defaultdict

from disclosure.attacks import ARMS, hidden_events, run_of, side_of

CAUSES = {"outcome": "outcomes", "competing event": "competing"}


def differences_found(results, private, least):
    """Pairs of numbers of one ledger that differ by 1 to `least` - 1 people."""
    found = set()
    for key, numbers in (counts_told(results, private) | values_told(results, private)).items():
        first = {}
        for number, where in numbers:
            first.setdefault(number, where)
        for a, b in itertools.pairwise(sorted(first)):
            if 0 < b - a < least:
                found.add((key, a, b, first[a], first[b]))
    return sorted(found, key=str)


def people_of(private, row, arm, side, *more):
    """What two analyses have in common if they tell of the same people of an arm."""
    (own,) = private.rows("arms", side=side, **run_of(row))
    names = ("persons", "exposures", *more)
    return (row[arm], row["outcome"], *(own[f"{arm}_{name}"] for name in names))


def counts_told(results, private):
    """Events and people of an arm at any time, by the people and the kind of number."""
    told = defaultdict(list)

    def add(row, arm, side, kind, number, *where):
        if number is not None:
            key = (*people_of(private, row, arm, side), kind)
            told[key].append((number, (row["analysis"], row["comparator"], *where)))

    for row, arm in itertools.product(results.rows("arms"), ARMS):
        for name in ("outcomes", "competing"):
            add(row, arm, row["side"], name, row[f"{arm}_{name}"], "arms", row["side"])
        add(row, arm, row["side"], "people", row[f"{arm}_exposures"], "arms", row["side"])
    for row, arm in itertools.product(results.rows("estimates"), ARMS):
        if row["role"] != "subgroup":
            side = "before" if row["role"] == "crude" else "after"
            for name in ("outcomes", "competing"):
                add(row, arm, side, name, row[f"{arm}_{name}"], "estimates", row["role"])
    for row, arm in itertools.product(results.rows("absolute_risks"), ARMS):
        side = side_of(row)["side"]
        where = ("risks", side, row["time"])
        add(row, arm, side, "outcomes", row[f"{arm}_outcomes"], *where)
        add(row, arm, side, "people", row[f"{arm}_at_risk"], *where)
    for row in results.rows("numbers_at_risk"):
        side = side_of(row)["side"]
        add(row, row["arm"], side, "people", row["people"], "at risk", side, row["time"])
    for row in results.rows("follow_up_ends"):
        kind = CAUSES.get(row["reason"], row["reason"])
        add(row, row["arm"], "after", kind, row["count"], "ends")
    for table in ("effect_over_time", "effect_at_times"):
        sums = defaultdict(int)
        for row, arm in itertools.product(results.rows(table), ARMS):
            key = (*run_of(row).values(), arm)
            if row[f"{arm}_outcomes"] is not None:
                sums[key] += row[f"{arm}_outcomes"]
                end = row["end" if "end" in row else "time"]
                add(row, arm, "after", "outcomes", sums[key], table, end)
    weeks = defaultdict(list)
    for row in results.rows("event_weeks"):
        weeks[(*run_of(row).values(), row["arm"])].append(row)
        add(row, row["arm"], "before", "people", row["people"], "weeks", row["week"])
        kind = f"week {row['week']}"
        add(row, row["arm"], "before", kind, row["events"], "weeks", row["week"])
    for of_arm in weeks.values():
        row, arm = of_arm[0], of_arm[0]["arm"]
        (arms,) = results.rows("arms", side="before", **run_of(row))
        total = arms[f"{arm}_outcomes"]
        for by_end in partial_sums(of_arm):
            add(row, arm, "before", "outcomes", by_end, "weeks", by_end)
        for after in partial_sums(of_arm[::-1]) if total is not None else []:
            add(row, arm, "before", "outcomes", total - after, "weeks, from the end", after)
    sums = defaultdict(int)
    for row in results.rows("follow_up_histogram"):
        key = (*run_of(row).values(), row["arm"])
        sums[key] += row["people"] or 0
        if row["people"] is not None:
            kind = f"left by {row['end']:g}"
            add(row, row["arm"], "after", kind, sums[key], "histogram")
    by_end = defaultdict(lambda: [0, 0])
    for row in results.rows("deviations"):
        if row["deviations"] is None:
            continue
        gone = by_end[(*run_of(row).values(), row["arm"])]
        gone[0] += row["deviations"]
        gone[1] += row["others"]
        if row["end"] is None:
            continue
        add(row, row["arm"], "after", f"left by {row['end']:g}", sum(gone), "deviations")
        for risk in results.rows("absolute_risks", adjusted=True, **run_of(row)):
            n = risk[f"{row['arm']}_outcomes"]
            if risk["time"] == row["end"] and n is not None:
                add(row, row["arm"], "after", "others", 0)
                add(row, row["arm"], "after", "others", gone[1] - n, "deviations", row["end"])
    for row in results.rows("censoring_weights"):
        times = results.rows("numbers_at_risk", adjusted=True, arm=row["arm"], **run_of(row))
        hidden = [one for one in times if one["people"] is None]
        own = private.rows("numbers_at_risk", adjusted=True, arm=row["arm"], **run_of(row))
        if row["rows"] == sum(one["people"] for one in own) and len(hidden) == 1:
            n = row["rows"] - sum(one["people"] or 0 for one in times)
            add(row, row["arm"], "after", "people", n, "rows of weights", hidden[0]["time"])
    return told


def partial_sums(weeks):
    """Outcomes by the end of weeks, as long as all of them are shown."""
    known = itertools.takewhile(lambda row: row["events"] is not None, weeks)
    return itertools.accumulate(row["events"] for row in known)


def values_told(results, private):
    """Events of an arm by some time that values tell, by the people and their follow-up."""
    told = defaultdict(list)
    more = ("days", "outcomes", "competing")
    for row, n, kind in hidden_events(results, private):
        side, arm = side_of(row)["side"], row["arm"]
        key = (*people_of(private, row, arm, side, *more), kind)
        where = (row["analysis"], row["comparator"], side, row.get("reading", "curve"), row["time"])
        told[key].append((n, where))
    for side, arm in itertools.product(("before", "after"), ARMS):
        for row in results.rows("arms", side=side):
            for name in ("outcomes", "competing"):
                if row[f"{arm}_{name}"] is not None:
                    key = (*people_of(private, row, arm, side, *more), name)
                    told[key].append((row[f"{arm}_{name}"], ("arms", side)))
    for table in ("effect_over_time", "effect_at_times"):
        sums = defaultdict(int)
        for row, arm in itertools.product(results.rows(table), ARMS):
            if row[f"{arm}_outcomes"] is not None:
                sums[*run_of(row).values(), arm] += row[f"{arm}_outcomes"]
                key = (*people_of(private, row, arm, "after", *more), "outcomes")
                n = sums[*run_of(row).values(), arm]
                told[key].append(
                    (n, (row["analysis"], table, row["number" if "number" in row else "interval"]))
                )
    return told
