"""The entries of covariates: a table is scanned once for all windows of a kind of covariate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from riskset._errors import CohortError, InputError, counted
from riskset.data.database import reading
from riskset.omop.analyses import ANALYSES, Analysis
from riskset.omop.cdm import Cdm, Scratch
from riskset.omop.concepts import ConceptSet
from riskset.omop.covariate_settings import CovariateSettings, CustomCovariates
from riskset.omop.groups import ancestors_known, concept_view, is_ingredient
from riskset.omop.people import BIRTH, age_sql, check_ages
from riskset.omop.records import DOMAINS, measurement_query, record_query
from riskset.omop.study_cohort import StudyCohort
from riskset.solve.result import Note

__all__ = ["EntryTable", "extract"]

AGE_IN_YEARS = 1002


@dataclass(frozen=True)
class EntryTable:
    """A table ``row_id, covariate_id, value`` in the database, in no order.

    Attributes
    ----------
    name : str
    units : str
        Table ``covariate_id, unit`` of measured values.
    notes : tuple of Note
    """

    name: str
    units: str
    notes: tuple[Note, ...]


def extract(cdm: Cdm, cohort: StudyCohort, settings: CovariateSettings) -> EntryTable:
    """All entries of a cohort."""
    with cdm.scratch() as work:
        builder = _Builder(cdm, cohort, settings, work)
        builder.run()
        return EntryTable(builder.entries, builder.units, tuple(builder.notes))


class _Builder:
    """Adds the entries of one analysis after the other to a table that outlives it."""

    def __init__(
        self, cdm: Cdm, cohort: StudyCohort, settings: CovariateSettings, work: Scratch
    ) -> None:
        self._cdm, self._settings, self._work = cdm, settings, work
        self._cohort = work.add(cohort.table)
        self._chosen = [ANALYSES[number] for number in settings.analyses]
        self._excluded = self._stage_excluded(cohort.drugs)
        self.notes: list[Note] = []
        database = cdm.database
        self.entries, self.units = database.new_name(), database.new_name()
        database.execute(
            f"CREATE TEMP TABLE {self.entries} (row_id BIGINT, covariate_id BIGINT, value DOUBLE)"
        )
        database.execute(f"CREATE TEMP TABLE {self.units} (covariate_id BIGINT, unit BIGINT)")

    def run(self) -> None:
        """All analyses that were chosen."""
        for query in self._of_persons():
            self._add(query)
        for domain in DOMAINS:
            self._presence(domain)
            self._groups(domain)
        self._ranges()
        self._values()
        for custom in self._settings.custom:
            self._custom(custom)

    def _add(self, query: str) -> int:
        """Append ``row_id, covariate_id, value``; the number of entries."""
        (before,) = self._work.row(f"SELECT count(*) FROM {self.entries}")
        self._cdm.database.execute(f"INSERT INTO {self.entries} {query}")
        (after,) = self._work.row(f"SELECT count(*) FROM {self.entries}")
        return int(after - before)

    def _of(self, domain: str, kind: str) -> list[Analysis]:
        return [a for a in self._chosen if a.domain == domain and a.kind == kind]

    # ---------------------------------------------------------------- people

    def _of_persons(self) -> Iterator[str]:
        wanted = {a.domain: a.id for a in self._chosen if a.kind == "person"}
        for domain, date in (("index year", "year"), ("index month", "month")):
            if domain in wanted:
                yield (
                    f"SELECT row_id, CAST({date}(index_date) AS BIGINT) * 1000 + {wanted[domain]}, "
                    f"1 FROM {self._cohort}"
                )
        for domain, column in (
            ("sex", "gender_concept_id"),
            ("race", "race_concept_id"),
            ("ethnicity", "ethnicity_concept_id"),
        ):
            if domain in wanted:
                person = self._cdm.view("person", ("person_id", column))
                yield (
                    f"SELECT c.row_id, p.{column} * 1000 + {wanted[domain]}, 1 FROM "
                    f"{self._cohort} c JOIN {person} p USING (person_id) WHERE p.{column} > 0"
                )
        if not {"age", "age group"} & set(wanted):
            return
        person = self._cdm.view("person", *BIRTH)
        age = age_sql("p", "c.index_date", self._settings.age_method)
        aged = self._work.keep(
            f"SELECT c.row_id, c.person_id, {age} AS age FROM {self._cohort} c "
            f"JOIN {person} p USING (person_id)"
        )
        check_ages(self._work, aged)
        if "age group" in wanted:
            group = f"CAST(age // 5 AS BIGINT) * 1000 + {wanted['age group']}"
            yield f"SELECT row_id, {group}, 1 FROM {aged}"
        if "age" in wanted:
            yield f"SELECT row_id, {AGE_IN_YEARS}, age FROM {aged}"

    # ---------------------------------------------------------------- records

    def _stage_excluded(self, drugs: Sequence[ConceptSet]) -> dict[str, str]:
        """Domain -> table of the concepts that are no covariates; "" for all domains but drugs."""
        chosen = self._settings.exclude
        none = ConceptSet((), descendants=False)
        everywhere = (chosen or none).stage(self._cdm, self._work)
        if not self._settings.exclude_arms or not drugs:
            return {"": everywhere, "drug": everywhere}
        known = ancestors_known(self._cdm)
        own = [everywhere]
        for arm in drugs:
            own.append(arm.stage(self._cdm, self._work))
            if known:
                listed = ConceptSet(arm.concepts).stage(self._cdm, self._work)
                own += [listed, self._ingredients_of(arm.concepts)]
        union = " UNION ".join(f"SELECT concept_id FROM {table}" for table in own)
        return {"": everywhere, "drug": self._work.keep(union)}

    def _ingredients_of(self, concepts: tuple[int, ...]) -> str:
        """Who lists tablets does not want their ingredient as a covariate either."""
        listed = self._work.values("concept_id", [(c,) for c in concepts], ["BIGINT"])
        columns = ("ancestor_concept_id", "descendant_concept_id")
        return self._work.keep(
            "SELECT DISTINCT a.ancestor_concept_id AS concept_id FROM "
            f"{self._cdm.view('concept_ancestor', columns)} a JOIN {listed} l "
            "ON l.concept_id = a.descendant_concept_id JOIN "
            f"{concept_view(self._cdm)} c ON c.concept_id = a.ancestor_concept_id "
            f"WHERE {is_ingredient('c')}"
        )

    def _in_windows(self, records: str, analyses: Sequence[Analysis], domain: str) -> str:
        """FROM clause of the records x of rows c in the windows w of some analyses."""
        rows = [(a.id, *self._settings.window(a.window)) for a in analyses]
        windows = self._work.values(
            "analysis_id,start_day,end_day", rows, ["BIGINT", "INTEGER", "INTEGER"]
        )
        observed = ""
        if self._settings.within_observation:
            observed = " AND x.e >= c.index_date - c.days_from_obs_start"
        excluded = self._excluded["drug" if domain == "drug" else ""]
        return (
            f"FROM {self._cohort} c JOIN ({records}) x ON x.person_id = c.person_id{observed} "
            f"JOIN {windows} w ON x.s <= c.index_date + w.end_day "
            f"AND x.e >= c.index_date + w.start_day ANTI JOIN {excluded} n "
            "ON n.concept_id = x.concept_id"
        )

    def _presence(self, domain: str) -> None:
        chosen = self._of(domain, "presence")
        if not chosen:
            return
        where = self._in_windows(record_query(self._cdm, self._work, domain), chosen, domain)
        self._add(f"SELECT DISTINCT c.row_id, x.concept_id * 1000 + w.analysis_id, 1 {where}")

    def _groups(self, domain: str) -> None:
        chosen = self._of(domain, "group")
        if not chosen:
            return
        if not ancestors_known(self._cdm):
            numbers = ", ".join(str(a.id) for a in chosen)
            self.notes.append(
                Note(
                    "no_roll_up",
                    (),
                    f"the CDM has no concept_ancestor, so {domain}s are not rolled up (analyses "
                    f"{numbers}).",
                )
            )
            return
        settings = self._settings
        rule = settings.condition_groups if domain == "condition" else settings.drug_groups
        groups = rule.stage(self._cdm, self._work)
        excluded = self._excluded["drug" if domain == "drug" else ""]
        where = self._in_windows(record_query(self._cdm, self._work, domain), chosen, domain)
        self._add(
            f"SELECT DISTINCT c.row_id, g.group_id * 1000 + w.analysis_id, 1 {where} "
            f"JOIN {groups} g ON g.concept_id = x.concept_id ANTI JOIN {excluded} m "
            "ON m.concept_id = g.group_id"
        )

    def _ranges(self) -> None:
        """Below (1), within (2) and above (3): only where both value and border are known."""
        chosen = self._of("measurement", "range")
        if not chosen:
            return
        where = self._in_windows(measurement_query(self._cdm), chosen, "measurement")
        group = (
            "CASE WHEN x.value < x.range_low THEN 1 WHEN x.value > x.range_high THEN 3 "
            "WHEN x.value BETWEEN x.range_low AND x.range_high THEN 2 END"
        )
        added = self._add(
            f"SELECT DISTINCT row_id, concept_id * 10000 + side * 1000 + analysis_id, 1 FROM "
            f"(SELECT c.row_id, x.concept_id, w.analysis_id, {group} AS side {where}) "
            "WHERE side IS NOT NULL"
        )
        if not added:
            message = "no measurement has a value and a range, so none is below, within or above."
            self.notes.append(Note("no_ranges", (), message))

    def _values(self) -> None:
        """The last value of each measurement and unit."""
        chosen = self._of("measurement", "value")
        if not chosen:
            return
        where = self._in_windows(measurement_query(self._cdm), chosen, "measurement")
        last = self._work.keep(
            "SELECT c.row_id, x.concept_id * 1000000 + (x.unit % 1000) * 1000 + w.analysis_id "
            f"AS covariate_id, x.unit, x.value {where} QUALIFY row_number() OVER (PARTITION BY "
            "c.row_id, x.concept_id, x.unit, w.analysis_id "
            "ORDER BY x.s DESC, x.measurement_id DESC NULLS LAST, x.value DESC) = 1"
        )
        database = self._cdm.database
        database.execute(f"INSERT INTO {self.units} SELECT DISTINCT covariate_id, unit FROM {last}")
        twice = self._work.rows(
            f"SELECT covariate_id, list_sort(list(unit)) FROM {self.units} GROUP BY 1 "
            "HAVING count(*) > 1 ORDER BY 1 LIMIT 3"
        )
        for number, units in twice:
            raise CohortError(
                "CovariateIdCollision",
                f"measurement {number // 1_000_000} has values in the units "
                f"{' and '.join(map(str, units))}, which give one covariate id, {number}.",
                hint="convert them to one unit where the CDM is made, or leave its value out with "
                "`exclude`.",
                details={"covariate_id": number, "units": units},
            )
        self._add(f"SELECT row_id, covariate_id, value FROM {last}")

    def _custom(self, custom: CustomCovariates) -> None:
        where = f"the query of the custom covariates {custom.analysis_id}"
        try:
            query = custom.query.format_map(_Tables(self._cdm, self._cohort))
        except CohortError:
            raise
        except (ValueError, IndexError) as error:
            raise CohortError(
                "BadCustomCovariates",
                f"{where} cannot be read: {error}.",
                hint="write {cohort}, {person}, ... for tables, and {{ }} for braces.",
            ) from None
        try:
            with reading(where):
                found = self._work.keep(
                    "SELECT CAST(row_id AS BIGINT) AS row_id, CAST(concept_id AS BIGINT) * 1000 + "
                    f"{custom.analysis_id} AS covariate_id, CAST(value AS DOUBLE) AS value "
                    f"FROM ({query}) WHERE value IS NOT NULL"
                )
        except InputError as error:
            message = str(error).split("\nHint")[0]
            raise CohortError(
                "BadCustomCovariates",
                message,
                hint="it must give row_id, concept_id and value.",
            ) from None
        twice = self._work.row(
            f"SELECT count(*) FROM (SELECT 1 FROM {found} GROUP BY row_id, covariate_id "
            "HAVING count(*) > 1)"
        )[0]
        if twice:
            raise CohortError(
                "CovariateIdCollision",
                f"{where} gives {counted(twice, 'row and concept', 'rows and concepts')} more than "
                "one value.",
                hint="GROUP BY row_id and concept_id.",
                details={"analysis_id": custom.analysis_id, "count": twice},
            )
        self._add(f"SELECT row_id, covariate_id, value FROM {found}")


class _Tables(dict[str, str]):
    """Names in a custom query -> tables."""

    def __init__(self, cdm: Cdm, cohort: str) -> None:
        super().__init__(cohort=cohort)
        self._cdm = cdm

    def __missing__(self, name: str) -> str:
        return self._cdm.whole(name)
