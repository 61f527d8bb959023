"""Comorbidity scores: the Charlson index, DCSI, CHADS2, CHA2DS2-VASc and HFRS.

Concepts and codes are those of FeatureExtraction, so that scores of other studies compare.

References
----------
Romano, Roos and Jollis (1993), Journal of Clinical Epidemiology 46(10), 1075-1079,
doi:10.1016/0895-4356(93)90103-8 (Charlson). Young et al. (2008), American Journal of Managed Care
14(1), 15-23 (DCSI). Gage et al. (2001), JAMA 285(22), 2864-2870, doi:10.1001/jama.285.22.2864
(CHADS2). Lip et al. (2010), Chest 137(2), 263-272, doi:10.1378/chest.09-1584 (CHA2DS2-VASc).
Gilbert et al. (2018), The Lancet 391(10132), 1775-1782, doi:10.1016/S0140-6736(18)30668-8 (HFRS).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from riskset._messages import Note, Value
from riskset.omop.analyses import ANALYSES
from riskset.omop.cdm import Cdm
from riskset.omop.groups import ancestors_known, ancestors_view, concept_view
from riskset.omop.scratch import Scratch

__all__ = [
    "SCORES",
    "TENTHS",
    "ScoreCategory",
    "ScoreDefinition",
    "computable",
    "person_points",
    "stage_points",
]

TENTHS = 10
"""Points are counted in tenths, as whole numbers: their sum is then exact in any order."""


@dataclass(frozen=True)
class ScoreCategory:
    """A group of diseases; a person gets its points once, and the largest of those that apply.

    The diseases are `ancestors` with their descendants, but for `without` and its descendants, and
    `concepts` themselves; or `codes` of the vocabulary of the score, where ``%`` stands for any
    further characters.
    """

    name: str
    points: float
    ancestors: tuple[int, ...] = ()
    concepts: tuple[int, ...] = ()
    without: tuple[int, ...] = ()
    codes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScoreDefinition:
    """A score; `label` is the name of its covariate.

    Several categories of one name are the degrees of one disease. `vocabulary` is that of the
    codes, which the CDM must map to standard concepts; "" if there are none.
    """

    analysis_id: int
    label: str
    categories: tuple[ScoreCategory, ...]
    vocabulary: str = ""


_CHARLSON = (
    ScoreCategory("myocardial infarction", 1, (4329847,)),
    ScoreCategory("congestive heart failure", 1, (316139,)),
    ScoreCategory("peripheral vascular disease", 1, (321052,)),
    ScoreCategory("cerebrovascular disease", 1, (381591, 434056)),
    ScoreCategory("dementia", 1, (4182210,)),
    ScoreCategory("chronic pulmonary disease", 1, (4063381,)),
    ScoreCategory("rheumatologic disease", 1, (257628, 134442, 80800, 80809, 256197, 255348)),
    ScoreCategory("peptic ulcer disease", 1, (4247120,)),
    ScoreCategory("mild liver disease", 1, (4064161, 4212540)),
    ScoreCategory("diabetes", 1, (201820,)),
    ScoreCategory("diabetes with chronic complications", 2, (443767, 442793)),
    ScoreCategory("hemiplegia or paraplegia", 2, (192606, 374022)),
    ScoreCategory("renal disease", 2, (4030518,)),
    ScoreCategory("malignancy", 2, (443392,)),
    ScoreCategory("moderate or severe liver disease", 3, (4245975, 4029488, 192680, 24966)),
    ScoreCategory("metastatic solid tumor", 6, (432851,)),
    ScoreCategory("AIDS", 6, (439727,)),
)

_DCSI = (
    ScoreCategory(
        "retinopathy",
        1,
        codes=("250.5%", "362.01", "362.1", "362.83", "362.53", "362.81", "362.82"),
    ),
    ScoreCategory("retinopathy", 2, codes=("361%", "369%", "362.02", "379.23")),
    ScoreCategory("nephropathy", 1, codes=("250.4", "580%", "581%", "582%", "583%")),
    ScoreCategory("nephropathy", 2, codes=("585%", "586%", "593.9%")),
    ScoreCategory(
        "neuropathy",
        1,
        codes=(
            *("250.6%", "337.0%", "337.1%", "354.%", "355", "355.%", "356.9%", "357.2%", "358.1%"),
            *("458.0%", "536.3%", "564.5%", "596.54", "713.5%", "951.0%", "951.1%", "951.3%"),
        ),
    ),
    ScoreCategory("cerebrovascular disease", 1, codes=("435%",)),
    ScoreCategory("cerebrovascular disease", 2, codes=("431%", "433%", "434%", "436%")),
    ScoreCategory("cardiovascular disease", 1, codes=("411%", "413%", "414%", "429.2%", "440%")),
    ScoreCategory(
        "cardiovascular disease",
        2,
        codes=(
            *("410%", "412%", "427.1%", "427.3%", "427.4%", "427.5%", "428%", "441%"),
            *("440.23", "440.24"),
        ),
    ),
    ScoreCategory(
        "peripheral vascular disease", 1, codes=("250.7%", "442.3%", "443.81", "443.9%", "892.1%")
    ),
    ScoreCategory("peripheral vascular disease", 2, codes=("040.0%", "444.22", "707.1%", "785.4%")),
    ScoreCategory("metabolic complication", 2, codes=("250.1%", "250.2%", "250.3%")),
)

_CHADS2 = (
    ScoreCategory("congestive heart failure", 1, (316139,)),
    ScoreCategory("hypertension", 1, (316866,)),
    ScoreCategory("diabetes", 1, (201820,)),
    ScoreCategory("stroke", 2, (381591, 434056)),
)

_CHA2DS2_VASC = (
    ScoreCategory("congestive heart failure", 1, (316139, 314378), (318773, 321319)),
    ScoreCategory("hypertension", 1, (320128, 442604, 201313), without=(197930,)),
    ScoreCategory(
        "diabetes",
        1,
        (201820, 442793),
        without=(195771, 376112, 4174977, 4058243, 193323, 376979),
    ),
    ScoreCategory(
        "stroke",
        2,
        (4043731, 4110192, 375557, 4108356, 373503, 434656, 433505, 376714, 312337),
    ),
    ScoreCategory(
        "vascular disease",
        1,
        (
            *(312327, 43020432, 314962, 312939, 315288, 317309, 134380, 196438, 200138, 194393),
            *(319047, 40486130, 317003, 4313767, 321596),
        ),
        (317305, 321886, 314659, 321887, 437312, 134057),
    ),
)

_HFRS_POINTS = (
    (7.1, "F00"),
    (4.4, "G81"),
    (4.0, "G30"),
    (3.7, "I69"),
    (3.6, "R29"),
    (3.2, "F05 N39 S00 W19"),
    (3.0, "R31"),
    (2.9, "B96"),
    (2.7, "R41"),
    (2.6, "I67 R26 R56"),
    (2.5, "R40"),
    (2.4, "S06 T83"),
    (2.3, "E86 E87 M25 S42"),
    (2.2, "R54"),
    (2.1, "F03 W18 Z50"),
    (2.0, "F01 L03 S80 Z75"),
    (1.9, "E53 H54"),
    (1.8, "G20 K59 N17 R55 S22 Z60"),
    (1.7, "B95 L89 Z22"),
    (1.6, "A41 I95 K26 L97 N19 R44"),
    (1.5, "G40 J96 M19 X59 Z87"),
    (1.4, "E16 M81 N18 R94 S32 S72"),
    (1.3, "N28 R33 R69"),
    (1.2, "G31 G45 R32 R45 S09 Y95"),
    (1.1, "A04 A09 J18 M79 S01 W06 Z74"),
    (1.0, "E55 J69 R02 R47 Z93"),
    (0.9, "E05 H91 M41 R63 W01 W10"),
    (0.8, "I63 K92 M80 R13 U80 Z99"),
    (0.7, "F10 J22 N20 R00 Y84"),
    (0.6, "R79 Z73"),
    (0.5, "F32 M48 S51 Z91"),
    (0.4, "D64 E83 L08 M15"),
    (0.3, "K52 R11"),
    (0.1, "R50"),
)
"""Points of the 109 categories of ICD-10 (Gilbert et al., supplement, table A2)."""

_HFRS = tuple(
    ScoreCategory(code, points, codes=(f"{code}%",))
    for points, codes in _HFRS_POINTS
    for code in codes.split()
)

SCORES = {
    score.analysis_id: score
    for score in (
        ScoreDefinition(901, "Charlson index - Romano adaptation", _CHARLSON),
        ScoreDefinition(902, "Diabetes Comorbidity Severity Index (DCSI)", _DCSI, "ICD9CM"),
        ScoreDefinition(903, "CHADS2", _CHADS2),
        ScoreDefinition(904, "CHADS2VASc", _CHA2DS2_VASC),
        ScoreDefinition(926, "Hospital Frailty Risk Score (HFRS)", _HFRS, "ICD10"),
    )
}
"""Number of the analysis -> score."""


# -------------------------------------------------------------------- points of concepts

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
    scores = []
    for is_by_code, tables in (
        (False, "concept and concept_ancestor"),
        (True, "concept and concept_relationship"),
    ):
        of_kind = [score for score in chosen if bool(score.vocabulary) == is_by_code]
        known = _mappings_known(cdm) if is_by_code else ancestors_known(cdm)
        if known:
            scores += of_kind
        elif of_kind:
            listed = ", ".join(f"{s.analysis_id} {ANALYSES[s.analysis_id].name}" for s in of_kind)
            text = f"the CDM lacks the tables {tables}, so these analyses are left out: {{listed}}."
            note(Note("no_score", (), text, {"listed": Value("name", listed)}))
    return scores


def stage_points(
    cdm: Cdm, work: Scratch, scores: Sequence[ScoreDefinition], note: Callable[[Note], None]
) -> str:
    """Table ``analysis_id, category, points, concept_id``; points in tenths."""
    parts = [_by_concept(cdm, work, [s for s in scores if not s.vocabulary])]
    for score in scores:
        if score.vocabulary:
            codes = _by_code(cdm, work, score)
            if not work.row(f"SELECT count(*) FROM {codes}")[0]:
                text = (
                    "the CDM maps no code of the vocabulary {vocabulary} to a concept that gives "
                    "points, so {name} (analysis {analysis}) is 0 for everybody."
                )
                values = {
                    "vocabulary": Value("name", score.vocabulary),
                    "name": Value("name", ANALYSES[score.analysis_id].name),
                    "analysis": Value("setting", score.analysis_id),
                }
                note(Note("no_score_codes", (), text, values))
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

    They count for every person, so that no value is missing.
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
    return cdm.has_rows("concept_relationship") and cdm.has_rows("concept")


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


def _tenths(category: ScoreCategory) -> int:
    return round(category.points * TENTHS)
