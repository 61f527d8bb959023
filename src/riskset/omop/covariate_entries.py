"""The entries of covariates: a table is scanned once for all windows of a kind of covariate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from riskset._errors import CohortError, InputError, counted
from riskset._messages import Note, Value
from riskset.data.database import file_errors
from riskset.omop.analyses import ANALYSES, AnalysisKind, CovariateAnalysis
from riskset.omop.cdm import Cdm
from riskset.omop.cdm_tables import ListedPeople
from riskset.omop.concepts import ConceptSet
from riskset.omop.covariate_needs import covariate_needs
from riskset.omop.covariate_settings import CovariateSettings, CustomCovariates
from riskset.omop.groups import ancestors_known, concept_view, is_ingredient
from riskset.omop.person_covariates import SCALAR, person_queries, stage_ages
from riskset.omop.record_tables import TABLES
from riskset.omop.records import inpatient_query, record_query
from riskset.omop.scores import TENTHS, computable, person_points, stage_points
from riskset.omop.scratch import Scratch
from riskset.omop.study_cohort import StudyCohort

__all__ = ["EntryTable", "extract"]

HASH = 2654435769
"""Multiplies concepts whose pairs must fit into the id of a covariate, as in FeatureExtraction."""


@dataclass(frozen=True)
class EntryTable:
    """A table ``row_id, covariate_id, value`` in the database, in no order.

    `parts` is a table ``covariate_id, concept_id, second_id, collisions`` of covariates whose ids
    do not reveal their concepts: the second one is the unit, or the concept that is the value.
    """

    name: str
    parts: str
    notes: tuple[Note, ...]


def extract(cdm: Cdm, cohort: StudyCohort, settings: CovariateSettings) -> EntryTable:
    """All entries of a cohort."""
    cdm.about(ListedPeople(cohort.table, "person_id", "index_date"))
    cdm.fetch(covariate_needs(settings))
    with cdm.scratch() as work:
        builder = _Builder(cdm, cohort, settings, work)
        builder.run()
        return EntryTable(builder.entries, builder.parts, tuple(builder.notes))


class _Builder:
    """Adds the entries of one analysis after the other to a table that outlives it."""

    def __init__(
        self, cdm: Cdm, cohort: StudyCohort, settings: CovariateSettings, work: Scratch
    ) -> None:
        self._cdm, self._settings, self._work = cdm, settings, work
        self._cohort = work.add(cohort.table)
        self._chosen, self._needs = settings.chosen, covariate_needs(settings)
        self._excluded = self._stage_excluded(cohort.drugs)
        self._aged: str | None = None
        self.notes: list[Note] = []
        database = cdm.database
        self.entries, self.parts = database.new_name(), database.new_name()
        database.execute(
            f"CREATE TEMP TABLE {self.entries} (row_id BIGINT, covariate_id BIGINT, value DOUBLE)"
        )
        database.execute(
            f"CREATE TEMP TABLE {self.parts} (covariate_id BIGINT, concept_id BIGINT, "
            "second_id BIGINT, collisions BIGINT)"
        )

    def run(self) -> None:
        """All analyses that were chosen."""
        wanted = {a.domain: a.id for a in self._chosen if a.kind == "person"}
        for query in person_queries(
            self._cdm, self._work, self._cohort, wanted, self._ages, self.notes.append
        ):
            self._add(query)
        for table in TABLES:
            self._presence(table)
            self._groups(table)
            self._values(table)
            self._values_as_concepts(table)
            self._counts(table)
        self._ranges()
        self._scores()
        for custom in self._settings.custom:
            self._custom(custom)

    def _add(self, query: str) -> int:
        """Append ``row_id, covariate_id, value``; the number of entries."""
        (before,) = self._work.row(f"SELECT count(*) FROM {self.entries}")
        self._cdm.database.execute(f"INSERT INTO {self.entries} {query}")
        (after,) = self._work.row(f"SELECT count(*) FROM {self.entries}")
        return int(after - before)

    def _of(self, kind: AnalysisKind, table: str) -> list[CovariateAnalysis]:
        return [a for a in self._chosen if a.kind == kind and a.table == table]

    def _ages(self) -> str:
        """Ages and sexes of the cohort, found when they are first needed."""
        if self._aged is None:
            method = self._settings.age_method
            self._aged = stage_ages(self._cdm, self._work, self._cohort, method)
        return self._aged

    # ---------------------------------------------------------------- records

    def _stage_excluded(self, drugs: Sequence[ConceptSet]) -> dict[str, str]:
        """Domain -> table of excluded concepts; "" for all domains but drugs."""
        chosen = self._settings.exclude
        none = ConceptSet((), descendants=False)
        everywhere = (chosen or none).stage(self._cdm, self._work)
        if not self._settings.exclude_arms or not drugs:
            return {"": everywhere, "drug": everywhere}
        known = ancestors_known(self._cdm)
        tables = [everywhere]
        for arm in drugs:
            tables.append(arm.stage(self._cdm, self._work))
            if known:
                listed = ConceptSet(arm.concepts).stage(self._cdm, self._work)
                tables += [listed, self._ingredients_of(arm.concepts)]
        union = " UNION ".join(f"SELECT concept_id FROM {table}" for table in tables)
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

    def _records(self, table: str, values: Sequence[str] = ()) -> str:
        """Query of the records of a table, at least those in the windows of all analyses."""
        return record_query(self._cdm, self._work, table, values, self._needs[table])

    def _in_windows(
        self,
        records: str,
        analyses: Sequence[CovariateAnalysis],
        exclude: Literal["own", "none"] = "own",
    ) -> str:
        """FROM clause of the records x of rows c in the windows w of some analyses."""
        rows = [(a.id, *self._settings.window(a.window), a.starts) for a in analyses]
        windows = self._work.values(
            "analysis_id,start_day,end_day,starts",
            rows,
            ("BIGINT", "INTEGER", "INTEGER", "BOOLEAN"),
        )
        observed = ""
        if self._settings.within_observation:
            observed = " AND x.e >= c.index_date - c.days_from_obs_start"
        clause = (
            f"FROM {self._cohort} c JOIN ({records}) x ON x.person_id = c.person_id{observed} "
            f"JOIN {windows} w ON x.s <= c.index_date + w.end_day AND (w.start_day IS NULL OR "
            "CASE WHEN w.starts THEN x.s ELSE x.e END >= c.index_date + w.start_day)"
        )
        if exclude == "none":
            return clause
        excluded = self._excluded["drug" if analyses[0].domain == "drug" else ""]
        return f"{clause} ANTI JOIN {excluded} n ON n.concept_id = x.concept_id"

    def _presence(self, table: str) -> None:
        for is_inpatient in (False, True):
            chosen = [a for a in self._of("presence", table) if a.inpatient == is_inpatient]
            if not chosen:
                continue
            records = self._records(table)
            if is_inpatient:
                days = self._needs["visit_occurrence"]
                records = inpatient_query(self._cdm, self._work, records, days)
            where = self._in_windows(records, chosen)
            self._add(f"SELECT DISTINCT c.row_id, x.concept_id * 1000 + w.analysis_id, 1 {where}")

    def _groups(self, table: str) -> None:
        chosen = self._of("group", table)
        if not chosen:
            return
        domain = chosen[0].domain
        if not ancestors_known(self._cdm):
            self._note_no_groups(chosen, "the CDM has no concept_ancestor")
            return
        settings = self._settings
        rule = settings.condition_groups if domain == "condition" else settings.drug_groups
        groups = rule.stage(self._cdm, self._work)
        if not self._work.row(f"SELECT count(*) FROM {groups}")[0]:
            self._note_no_groups(chosen, "concept and concept_ancestor have no {domain} groups")
        excluded = self._excluded["drug" if domain == "drug" else ""]
        where = self._in_windows(self._records(table), chosen)
        self._add(
            f"SELECT DISTINCT c.row_id, g.group_id * 1000 + w.analysis_id, 1 {where} "
            f"JOIN {groups} g ON g.concept_id = x.concept_id ANTI JOIN {excluded} m "
            "ON m.concept_id = g.group_id"
        )

    def _note_no_groups(self, chosen: Sequence[CovariateAnalysis], why: str) -> None:
        values = {
            "domain": Value("name", chosen[0].domain),
            "analyses": Value("setting", ", ".join(str(a.id) for a in chosen)),
        }
        text = f"{why}, so {{domain}}s are not rolled up (analyses {{analyses}})."
        self.notes.append(Note("no_roll_up", (), text, values))

    def _ranges(self) -> None:
        """Below (1), within (2) and above (3): only where value and both borders are known."""
        chosen = self._of("range", "measurement")
        if not chosen:
            return
        columns = ("value_as_number", "range_low", "range_high")
        records = self._records("measurement", columns)
        group = (
            "CASE WHEN x.value_as_number < x.range_low THEN 1 "
            "WHEN x.value_as_number > x.range_high THEN 3 ELSE 2 END"
        )
        added = self._add(
            f"SELECT DISTINCT c.row_id, x.concept_id * 10000 + {group} * 1000 + w.analysis_id, 1 "
            f"{self._in_windows(records, chosen)} WHERE x.value_as_number IS NOT NULL "
            "AND x.range_low IS NOT NULL AND x.range_high IS NOT NULL"
        )
        if not added:
            message = "no measurement has a value and a range, so none is below, within or above."
            self.notes.append(Note("no_ranges", (), message))

    def _values(self, table: str) -> None:
        """The last value of each concept and unit; the smallest of the last day."""
        chosen = self._of("value", table)
        if not chosen:
            return
        columns = ("value_as_number", "unit_concept_id")
        records = self._records(table, columns)
        unit = "coalesce(x.unit_concept_id, 0)"
        last = self._work.keep(
            f"SELECT c.row_id, x.concept_id * 1000000 + ({unit} % 1000) * 1000 + w.analysis_id "
            f"AS covariate_id, x.concept_id, {unit} AS unit, x.value_as_number AS value "
            f"{self._in_windows(records, chosen)} WHERE x.value_as_number IS NOT NULL "
            f"QUALIFY row_number() OVER (PARTITION BY c.row_id, x.concept_id, {unit}, "
            "w.analysis_id ORDER BY x.s DESC, x.value_as_number) = 1"
        )
        self._cdm.database.execute(
            f"INSERT INTO {self.parts} SELECT DISTINCT covariate_id, concept_id, unit, 0 "
            f"FROM {last}"
        )
        twice = self._work.rows(
            f"SELECT covariate_id, list_sort(list(second_id)) FROM {self.parts} GROUP BY 1 "
            "HAVING count(*) > 1 ORDER BY 1 LIMIT 1"
        )
        for number, units in twice:
            raise CohortError(
                "CovariateIdCollision",
                f"{table} {number // 1_000_000} has values in the units "
                f"{' and '.join(map(str, units))}, which give one covariate id, {number}.",
                hint="convert them to one unit where the CDM is made, or leave its value out with "
                "`exclude`.",
                details={"covariate_id": number, "units": units},
            )
        self._add(f"SELECT row_id, covariate_id, value FROM {last}")

    def _values_as_concepts(self, table: str) -> None:
        """A concept with the concept that is its value; ids are hashes of the pair."""
        chosen = self._of("value as concept", table)
        if not chosen:
            return
        records = self._records(table, ("value_as_concept_id",))
        number = (
            f"((x.concept_id::HUGEINT * {HASH} // 4096) % 1048576) * 4194304000 + "
            f"((x.value_as_concept_id::HUGEINT * {HASH} // 1024) % 4194304) * 1000 + w.analysis_id"
        )
        recorded = self._work.keep(
            f"SELECT DISTINCT c.row_id, x.concept_id, x.value_as_concept_id AS second_id, "
            f"CAST({number} AS BIGINT) AS covariate_id {self._in_windows(records, chosen)} "
            "WHERE x.value_as_concept_id > 0"
        )
        pairs = self._work.keep(
            "SELECT covariate_id, concept_id, second_id, count(*) OVER of_id - 1 AS collisions "
            f"FROM (SELECT DISTINCT covariate_id, concept_id, second_id FROM {recorded}) "
            "WINDOW of_id AS (PARTITION BY covariate_id) QUALIFY row_number() OVER "
            "(PARTITION BY covariate_id ORDER BY concept_id, second_id) = 1"
        )
        self._cdm.database.execute(f"INSERT INTO {self.parts} SELECT * FROM {pairs}")
        (lost,) = self._work.row(f"SELECT coalesce(sum(collisions), 0) FROM {pairs}")
        if lost:
            text = (
                "{n:pair|pairs} of a concept and its value in table {table} {n:?has|have} the "
                "covariate id of another pair, and {n:?is|are} left out; `collisions` of the "
                "reference says where."
            )
            values = {"n": Value("count", lost), "table": Value("name", table)}
            self.notes.append(Note("colliding_pairs", (), text, values))
        self._add(
            f"SELECT f.row_id, f.covariate_id, 1 FROM {recorded} f JOIN {pairs} p "
            "USING (covariate_id, concept_id, second_id)"
        )

    def _counts(self, table: str) -> None:
        """Numbers of different concepts, or of records."""
        forms: tuple[tuple[AnalysisKind, str, str], ...] = (
            ("distinct count", f"{SCALAR} + w.analysis_id", "count(DISTINCT x.concept_id)"),
            ("count", f"{SCALAR} + w.analysis_id", "count(*)"),
            ("count by concept", "x.concept_id * 1000 + w.analysis_id", "count(*)"),
        )
        for kind, number, value in forms:
            chosen = self._of(kind, table)
            if chosen:
                where = self._in_windows(self._records(table), chosen)
                self._add(f"SELECT c.row_id, {number}, {value} {where} GROUP BY ALL")

    def _scores(self) -> None:
        """Sums of points of categories, of which each counts once, and of age and sex."""
        wanted = [a.id for a in self._chosen if a.kind == "score"]
        scores = computable(self._cdm, wanted, self.notes.append)
        if not scores:
            return
        points = stage_points(self._cdm, self._work, scores, self.notes.append)
        chosen = [ANALYSES[score.analysis_id] for score in scores]
        records = self._records(chosen[0].table)
        where = self._in_windows(records, chosen, exclude="none")
        parts = [
            f"SELECT c.row_id, k.analysis_id, k.category, max(k.points) AS points {where} "
            f"JOIN {points} k ON k.concept_id = x.concept_id AND k.analysis_id = w.analysis_id "
            "GROUP BY ALL"
        ]
        for score in scores:
            sql = person_points(score.analysis_id)
            if sql is not None:
                parts.append(
                    f"SELECT row_id, {score.analysis_id}, 'age and sex', {sql} FROM {self._ages()}"
                )
        self._add(
            f"SELECT row_id, {SCALAR} + analysis_id, sum(points) / {TENTHS} "
            f"FROM ({' UNION ALL '.join(parts)}) GROUP BY row_id, analysis_id"
        )

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
            with file_errors(where):
                values = self._work.keep(
                    "SELECT CAST(row_id AS BIGINT) AS row_id, CAST(concept_id AS BIGINT) * 1000 + "
                    f"{custom.analysis_id} AS covariate_id, CAST(value AS DOUBLE) AS value "
                    f"FROM ({query}) WHERE value IS NOT NULL"
                )
        except InputError as error:
            raise CohortError(
                "BadCustomCovariates",
                error.message,
                hint="it must give row_id, concept_id and value.",
            ) from None
        twice = self._work.row(
            f"SELECT count(*) FROM (SELECT 1 FROM {values} GROUP BY row_id, covariate_id "
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
        self._add(f"SELECT row_id, covariate_id, value FROM {values}")


class _Tables(dict[str, str]):
    """Names in a custom query -> tables."""

    def __init__(self, cdm: Cdm, cohort: str) -> None:
        super().__init__(cohort=cohort)
        self._cdm = cdm

    def __missing__(self, name: str) -> str:
        return self._cdm.whole(name)
