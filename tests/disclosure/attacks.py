"""An attacker who has the shared results alone, and tries to work out the counts they hide.

Each attack lists the whole numbers that agree with everything shown. A count is found out if one
number alone agrees.
"""

import itertools
import math
from collections import defaultdict

import numpy as np

SIDES, ARMS = ("before", "after"), ("target", "comparator")
CELLS = tuple(itertools.product(SIDES, ARMS))
NEAR = 7
"""Hidden counts of a covariate are looked for up to here, from 0 and from all people."""
RUN = ("target", "comparator", "outcome", "analysis")
TOLERANCE = 1e-9


def run_of(row):
    return {name: row[name] for name in RUN}


# --------------------------------------------------------------------------------- covariates


def sizes_of(results, adjustment):
    """Rows of the arms before and after: from the attrition, the adjustment, or a share."""
    steps = results.rows("attrition", adjustment=adjustment)
    (made,) = results.rows("adjustments", adjustment=adjustment)
    first = min(steps, key=lambda row: row["number"]) if steps else {}
    found = {}
    for arm in ARMS:
        found["before", arm] = first.get(f"{arm}_exposures")
        found["after", arm] = made[f"{arm}_rows"]
    for side, arm in CELLS:
        if found[side, arm] is None and side == "before":
            found[side, arm] = from_a_share(results, adjustment, arm)
    return found, made


def from_a_share(results, adjustment, arm):
    for row in results.rows("balance", adjustment=adjustment):
        n, share = row[f"before_count_{arm}"], row[f"before_mean_{arm}"]
        if n and share:
            return round(n / share)
    return None


def formulas(count, n, sd):
    """Everything that follows from counts of people who all weigh the same, by its column."""
    share = {c: count[c] / n[c] for c in CELLS}
    variance = {c: share[c] * (1 - share[c]) * n[c] / (n[c] - 1) for c in CELLS}
    found = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        for side, arm in CELLS:
            found[f"{side}_mean_{arm}"] = share[side, arm]
            found[f"{side}_sd_{arm}"] = np.sqrt(variance[side, arm])
        pooled = {s: np.sqrt((variance[s, ARMS[0]] + variance[s, ARMS[1]]) / 2) for s in SIDES}
        for side in SIDES:
            gap = share[side, ARMS[0]] - share[side, ARMS[1]]
            unit = pooled["before" if sd == "before" else side]
            found[f"{side}_smd"] = np.where(gap == 0, 0.0, gap / unit)
            found[f"{side}_smd_current_sd"] = np.where(gap == 0, 0.0, gap / pooled[side])
            n1, n0 = n[side, ARMS[0]], n[side, ARMS[1]]
            own = found[f"{side}_smd"]
            found[f"{side}_smd_variance"] = (n1 + n0) / (n1 * n0) + own**2 / (2 * (n1 + n0 - 2))
        for arm in ARMS:
            gap = share["before", arm] - share["after", arm]
            unit = np.sqrt((variance["before", arm] + variance["after", arm]) / 2)
            found[f"generalisability_{arm}"] = np.where(gap == 0, 0.0, gap / unit)
    return found


def tried(shown, n):
    """Counts to try in a place: the one shown, or those near 0 and near all people."""
    if shown is not None:
        return np.array([shown], dtype=float)
    low = np.arange(0, min(NEAR, n + 1))
    return np.unique(np.concatenate([low, n - low])).astype(float)


def counts_of_covariate(row, n, sd, threshold, extra=()):
    """Per hidden place the counts that agree with a row of the balance.

    `extra` are further numbers from other tables: pairs of a column and its value.
    """
    grid = np.meshgrid(*(tried(row[f"{s}_count_{a}"], n[s, a]) for s, a in CELLS), indexing="ij")
    count = dict(zip(CELLS, (g.ravel() for g in grid), strict=True))
    agree = np.ones(count[CELLS[0]].size, dtype=bool)
    for arm in ARMS:  # an adjustment only leaves people out
        agree &= count["after", arm] <= count["before", arm]
    computed = formulas(count, n, sd)
    known = {name: row.get(name) for name in computed} | dict(extra)
    for name, value in known.items():
        if value is None:
            continue
        fits = np.isclose(computed[name], value, rtol=TOLERANCE, atol=TOLERANCE)
        if name.startswith("after") and not fits.any():
            continue  # weighted: not a function of the counts
        if name.startswith("generalisability") and not fits.any():
            continue
        agree &= fits
    for side in SIDES:
        if row[f"{side}_balanced"] is not None and threshold is not None:
            size = np.abs(computed[f"{side}_smd"])
            fits = (size < threshold) == row[f"{side}_balanced"]
            fits |= np.isclose(size, threshold, rtol=TOLERANCE)
            if side == "before" or fits[agree].any():
                agree &= fits
    hidden = [c for c in CELLS if row[f"{c[0]}_count_{c[1]}"] is None]
    return {c: np.unique(count[c][agree]) for c in hidden}


def covariates_found(results, rows=None):
    """Hidden counts of the balance tables that one number alone agrees with."""
    found, n_hidden = [], 0
    for made in results.rows("adjustments"):
        number = made["adjustment"]
        own = results.rows("balance", adjustment=number) if rows is None else rows[number]
        if not own:
            continue
        n, made = sizes_of(results, number)
        if None in n.values():
            continue
        lines = {r["covariate_id"]: r for r in results.rows("table1", adjustment=number)}
        for row in own:
            if not row["is_binary"] or all(row[f"{s}_count_{a}"] is not None for s, a in CELLS):
                continue
            line = lines.get(row["covariate_id"], {})
            found += [
                (number, row["name"], (s, a), line[f"{s}_{a}_count"])
                for s, a in CELLS
                if row[f"{s}_count_{a}"] is None and line.get(f"{s}_{a}_count") is not None
            ]
            extra = [(f"{s}_mean_{a}", line.get(f"{s}_{a}")) for s, a in CELLS]
            extra += [(f"{s}_smd", line.get(f"{s}_smd")) for s in SIDES]
            extra = [(name, row.get(name) if v is None else v) for name, v in extra]
            left = counts_of_covariate(row, n, made["sd"], made["threshold"], extra)
            n_hidden += len(left)
            found += [(number, row["name"], c, v) for c, v in left.items() if v.size == 1]
        found += levels_found(own, n)
    return found, n_hidden


def levels_found(rows, n):
    """Levels of one covariate whose others are shown, and add up to nearly all of an arm."""
    groups = defaultdict(list)
    for row in rows:
        if row["is_binary"] and row["analysis_id"] is not None:
            groups[row["analysis_id"]].append(row)
    found = []
    for analysis, own in groups.items():
        for side, arm in CELLS:
            counts = [row[f"{side}_count_{arm}"] for row in own]
            hidden = [k for k, c in enumerate(counts) if c is None]
            left = n[side, arm] - sum(c for c in counts if c is not None)
            if hidden and (left in (0, len(hidden)) or (len(hidden) == 1 and left < 5)):
                found.append((analysis, side, arm, left))
    return found


# ----------------------------------------------------------------------------- outcomes of arms


def outcomes_found(results, extra=None):
    """Hidden numbers of outcomes that rates, precision or detectable ratios tell."""
    found = []
    for name in ("arms", "estimates"):
        for k, row in enumerate(results.rows(name)):
            row = row | (extra or {}).get((name, k), {})
            for arm in ARMS:
                n = row[f"{arm}_exposures"]
                if row[f"{arm}_outcomes"] is not None or n is None:
                    continue
                left = [x for x in range(min(n, 400) + 1) if agrees(row, arm, x)]
                found += [(name, k, arm, left[0])] if len(left) == 1 else []
    return found


def agrees(row, arm, outcomes):
    other = row[f"{ARMS[arm == ARMS[0]]}_outcomes"]
    days, rate = row[f"{arm}_days"], row[f"{arm}_rate"]
    if days is not None and rate is not None and not same(outcomes / days * 365250, rate):
        return False
    n = [row[f"{a}_exposures"] for a in ARMS]
    if row.get("expected_se") is not None and other is not None and None not in n:
        share = n[0] / sum(n)
        total = outcomes + other
        expected = math.inf if not total else 1 / math.sqrt(total * share * (1 - share))
        if not same(expected, row["expected_se"]):
            return False
    if row.get("role") == "crude" and row.get("se") is not None and other:
        # About 1 / a + 1 / b.
        guess = math.inf if not outcomes else math.sqrt(1 / outcomes + 1 / other)
        return math.isclose(guess, row["se"], rel_tol=0.05)
    return True


def same(one, other):
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


# ---------------------------------------------------------------------------------------- sums


def parts_found(results, least):
    """Hidden parts of a total that the other parts leave no choice."""
    found = []
    for name, group, column, total in (
        ("follow_up_ends", (*RUN, "arm"), "count", total_of_ends),
        ("follow_up_histogram", (*RUN, "arm"), "people", total_of_ends),
        ("event_weeks", (*RUN, "arm"), "events", total_of_weeks),
        ("calendar", ("target", "comparator", "arm"), "starts", total_of_starts),
    ):
        groups = defaultdict(list)
        for row in results.rows(name):
            groups[tuple(row[g] for g in group)].append(row)
        for key, rows in groups.items():
            n = total(results, rows)
            counts = [known_count(results, name, row, column) for row in rows]
            hidden = [c for c in counts if c is None]
            if n is None or not hidden:
                continue
            left = n - sum(c for c in counts if c is not None)
            # Of those hidden some may be 0.
            if len(hidden) == 1 or left == len(hidden):
                found.append((name, key, left))
    return found


def known_count(results, table, row, column):
    """A count, or what the arms say of the same people."""
    if row[column] is not None or table != "follow_up_ends":
        return row[column]
    (own,) = results.rows("arms", side="after", **run_of(row))
    words = {"outcome": "outcomes", "competing event": "competing"}
    return own[f"{row['arm']}_{words[row['reason']]}"] if row["reason"] in words else None


def total_of_ends(results, rows):
    (own,) = results.rows("arms", side="after", **run_of(rows[0]))
    return own[f"{rows[0]['arm']}_exposures"]


def total_of_weeks(results, rows):
    if any(row["week"] < 0 for row in rows):
        return None  # weeks before the index date are in no other table
    (own,) = results.rows("arms", side="before", **run_of(rows[0]))
    return own[f"{rows[0]['arm']}_outcomes"]


def total_of_starts(results, rows):
    steps = results.rows("attrition", number=1)
    return steps[0][f"{rows[0]['arm']}_exposures"] if steps else None


def levels_of_subgroups_found(results):
    """Hidden counts of a level that those of the others leave no choice."""
    found = []
    for run in results.rows("runs"):
        rows = results.rows("estimates", **run_of(run))
        main = next((row for row in rows if row["role"] == "main"), None)
        for variable in {row["subgroup"] for row in rows if row["subgroup"]}:
            own = [row for row in rows if row["subgroup"] == variable]
            for arm, word in itertools.product(ARMS, ("persons", "outcomes", "competing")):
                counts = [row[f"{arm}_{word}"] for row in own]
                total = main[f"{arm}_{word}"]
                hidden = [c for c in counts if c is None]
                if total is None and not hidden:
                    found.append((variable, arm, word, sum(counts)))
                elif total is not None and hidden:
                    left = total - sum(c for c in counts if c is not None)
                    if len(hidden) == 1 or left == len(hidden):
                        found.append((variable, arm, word, left))
    return found


# -------------------------------------------------------------------------------------- curves


def steps_found(results, private, least):
    """Stretches of a curve between two values shown in which 1 to `least` - 1 had an event."""
    found = []
    keys = (*RUN, "adjusted", "arm", "cause")
    events = defaultdict(list)
    for row in private.rows("curves"):
        events[tuple(row[k] for k in keys)].append((row["time"], row["events"]))
    shown = defaultdict(list)
    for row in results.rows("curves"):
        assert row["people"] is None
        assert row["events"] is None
        shown[tuple(row[k] for k in keys)].append(row["time"])
    for key, times in shown.items():
        by_time = dict(events[key])
        counts = [0, *(by_time[time] for time in times)]
        found += [(key, b - a) for a, b in itertools.pairwise(counts) if 0 < b - a < least]
    return found


# -------------------------------------------------------------------------------- near times


def near_times_found(results, private, least):
    """Times of an arm between which the shared tables tell that 1 to `least` - 1 people left.

    Numbers of outcomes come from the arms, risks, curves and restricted means: without weights and
    censoring, a risk or a curve is the number of events over the people, and the difference of
    two near restricted means is the curve. Numbers at risk come from the arms, their table and
    risks, and those who left for other reasons by a time are the rest.
    """
    found = []
    keys = (*RUN, "side", "arm")
    for key, (events, people, others) in told_by_time(results, private, keys).items():
        for name, values in (*events.items(), ("people", people), ("others", others)):
            counts = sorted(set(values))
            found += [(key, name, a, b) for a, b in itertools.pairwise(counts) if 0 < b - a < least]
    return found


def told_by_time(results, private, keys):
    """By run, side and arm: events by times of each cause, people at risk, others who left."""
    told = defaultdict(lambda: (defaultdict(lambda: [0]), [], [0]))
    for row, arm in itertools.product(results.rows("arms"), ARMS):
        events, people, _ = told[tuple((row | {"arm": arm})[k] for k in keys)]
        for cause in ("outcomes", "competing"):
            events[cause] += [n for n in [row[f"{arm}_{cause}"]] if n is not None]
        people += [n for n in [row[f"{arm}_exposures"]] if n is not None]
    for row in results.rows("numbers_at_risk"):
        if row["people"] is not None:
            told[tuple((row | side_of(row))[k] for k in keys)][1].append(row["people"])
    for row, arm in itertools.product(results.rows("absolute_risks"), ARMS):
        events, people, others = told[tuple((row | side_of(row) | {"arm": arm})[k] for k in keys)]
        n, at_risk = row[f"{arm}_outcomes"], row[f"{arm}_at_risk"]
        events["outcomes"] += [] if n is None else [n]
        if at_risk is not None:
            everybody = people[0] if people else None
            people.append(at_risk)
            if n is not None and everybody is not None:
                others.append(everybody - at_risk - n)
    for table, own, cause in hidden_events(results, private):
        events = told[tuple((table | side_of(table))[k] for k in keys)][0]
        events[cause].append(own)
    return told


def side_of(row):
    return {"side": "after" if row["adjusted"] else "before"}


def hidden_events(results, private):
    """Numbers of events that values of curves, risks and restricted means tell."""
    names = {1: "outcomes", 2: "competing"}
    for row, own in matching(
        results, private, "curves", (*RUN, "adjusted", "arm", "cause", "time")
    ):
        yield row, own["events"], names[row["cause"]]
    kinds = {"time_lost": ("outcomes",), "competing_time_lost": ("competing",)}
    columns = (*RUN, "adjusted", "reading", "measure", "time")
    for row, own in matching(results, private, "restricted_means", columns):
        for arm in ARMS:
            if row[f"{arm}_mean"] is not None:
                for cause in kinds.get(row["measure"], names.values()):
                    yield row | {"arm": arm}, own[f"{arm}_{cause}"], cause
    for row, own in matching(results, private, "absolute_risks", (*RUN, "adjusted", "time")):
        for arm in ARMS:
            if row[f"{arm}_risk"] is not None:
                yield row | {"arm": arm}, own[f"{arm}_outcomes"], "outcomes"
    for row, own in matching(results, private, "modelled_risks", (*RUN, "reading", "time")):
        for arm in ARMS:
            if row[f"{arm}_risk"] is not None:
                yield row | {"arm": arm, "adjusted": True}, own[f"{arm}_outcomes"], "outcomes"


def matching(results, private, table, columns):
    """Rows of a shared table beside those of the private one."""
    own = {tuple(row[c] for c in columns): row for row in private.rows(table)}
    return [(row, own[tuple(row[c] for c in columns)]) for row in results.rows(table)]
