"""Which concepts of a CDM give points for a comorbidity score."""

from collections.abc import Callable, Iterator, Sequence

from riskset._messages import Note
from riskset.omop.analyses import ANALYSES
from riskset.omop.cdm import Cdm, Scratch
from riskset.omop.groups import ancestors_known, ancestors_view, concept_view
from riskset.omop.score_definitions import SCORES, TENTHS, Category, ScoreDefinition

__all__ = ["computable", "person_points", "stage_points"]

FEMALE = 8532
COLUMNS = "analysis_id,category,points,concept_id,role"
TYPES = ("BIGINT", "VARCHAR", "BIGINT", "BIGINT", "VARCHAR")


def computable(
    cdm: Cdm, analyses: Sequence[int], note: Callable[[Note], None]
) -> list[ScoreDefinition]:
    """The scores that the vocabulary of a CDM allows; a note names the others.

    A score whose concepts are unknown would be that of healthy people for everybody.
    """
    chosen = [SCORES[number] for number in analyses]
    found = []
    for is_by_code, tables in (
        (False, "concept and concept_ancestor"),
        (True, "concept and concept_relationship"),
    ):
        of_kind = [score for score in chosen if bool(score.vocabulary) == is_by_code]
        known = _mappings_known(cdm) if is_by_code else ancestors_known(cdm)
        if known:
            found += of_kind
        elif of_kind:
            listed = ", ".join(f"{s.analysis_id} {ANALYSES[s.analysis_id].name}" for s in of_kind)
            message = (
                f"the CDM lacks the tables {tables}, so these analyses are left out: {listed}."
            )
            note(Note("no_score", (), message))
    return found


def stage_points(
    cdm: Cdm, work: Scratch, scores: Sequence[ScoreDefinition], note: Callable[[Note], None]
) -> str:
    """Table ``analysis_id, category, points, concept_id``; points in tenths."""
    parts = [_by_concept(cdm, work, [s for s in scores if not s.vocabulary])]
    for score in scores:
        if score.vocabulary:
            codes = _by_code(cdm, work, score)
            if not work.row(f"SELECT count(*) FROM {codes}")[0]:
                name = ANALYSES[score.analysis_id].name
                message = (
                    f"the CDM maps no code of the vocabulary {score.vocabulary} to a concept that "
                    f"gives points, so {name} (analysis {score.analysis_id}) is 0 for everybody."
                )
                note(Note("no_score_codes", (), message))
            parts.append(codes)
    # By two ways to one concept the larger number of points counts.
    union = " UNION ALL ".join(
        f"SELECT analysis_id, category, points, concept_id FROM {part}" for part in parts
    )
    return work.keep(
        f"SELECT analysis_id, category, concept_id, max(points) AS points FROM ({union}) "
        "GROUP BY ALL"
    )


def person_points(analysis_id: int) -> str | None:
    """SQL of the points for age and sex, in tenths; None where a score has none.

    They count for everybody, so that nobody lacks a value.
    """
    if analysis_id == 903:
        return f"CASE WHEN age >= 75 THEN {TENTHS} ELSE 0 END"
    if analysis_id == 904:
        return (
            f"CASE WHEN age >= 75 THEN {2 * TENTHS} WHEN age >= 65 THEN {TENTHS} ELSE 0 END + "
            f"CASE WHEN gender_concept_id = {FEMALE} THEN {TENTHS} ELSE 0 END"
        )
    return None


def _mappings_known(cdm: Cdm) -> bool:
    return cdm.n_rows("concept_relationship") > 0 and cdm.n_rows("concept") > 0


def _by_concept(cdm: Cdm, work: Scratch, scores: Sequence[ScoreDefinition]) -> str:
    defined = work.values(COLUMNS, (row for s in scores for row in _rows(s)), TYPES)
    if not scores:
        return defined
    pairs = (
        f"(SELECT ancestor_concept_id, descendant_concept_id FROM {ancestors_view(cdm)} UNION "
        f"SELECT concept_id, concept_id FROM {defined})"
    )
    without = work.keep(
        "SELECT d.analysis_id, d.category, a.descendant_concept_id AS concept_id "
        f"FROM {defined} d JOIN {pairs} a ON a.ancestor_concept_id = d.concept_id "
        "WHERE d.role = 'without'"
    )
    return work.keep(
        "SELECT d.analysis_id, d.category, d.points, a.descendant_concept_id AS concept_id "
        f"FROM {defined} d JOIN {pairs} a ON a.ancestor_concept_id = d.concept_id "
        f"ANTI JOIN {without} w ON w.analysis_id = d.analysis_id AND w.category = d.category "
        "AND w.concept_id = a.descendant_concept_id WHERE d.role = 'ancestor' "
        "UNION ALL SELECT analysis_id, category, points, concept_id "
        f"FROM {defined} WHERE role = 'concept'"
    )


def _rows(score: ScoreDefinition) -> Iterator[tuple[object, ...]]:
    for category in score.categories:
        for role, concepts in (
            ("ancestor", category.ancestors),
            ("concept", category.concepts),
            ("without", category.without),
        ):
            for concept in concepts:
                yield score.analysis_id, category.name, _tenths(category), concept, role


def _by_code(cdm: Cdm, work: Scratch, score: ScoreDefinition) -> str:
    """By the standard concepts of SNOMED that the codes of a score map to."""
    rows = [
        (score.analysis_id, category.name, _tenths(category), code)
        for category in score.categories
        for code in category.codes
    ]
    defined = work.values(
        "analysis_id,category,points,code", rows, ("BIGINT", "VARCHAR", "BIGINT", "VARCHAR")
    )
    mapped = cdm.view("concept_relationship", ("concept_id_1", "concept_id_2", "relationship_id"))
    concepts = concept_view(cdm)
    return work.keep(
        "SELECT d.analysis_id, d.category, d.points, t.concept_id FROM "
        f"{defined} d JOIN {concepts} s ON s.concept_code LIKE d.code "
        f"JOIN {mapped} m ON m.concept_id_1 = s.concept_id "
        f"JOIN {concepts} t ON t.concept_id = m.concept_id_2 "
        f"WHERE s.vocabulary_id = '{score.vocabulary}' AND t.vocabulary_id = 'SNOMED' "
        "AND m.relationship_id = 'Maps to'"
    )


def _tenths(category: Category) -> int:
    return round(category.points * TENTHS)
