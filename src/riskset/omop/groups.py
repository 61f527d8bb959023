"""Roll-ups: ancestors of conditions and drugs that are covariates."""

from dataclasses import dataclass

from riskset.data.database import text
from riskset.omop.cdm import Cdm
from riskset.omop.scratch import Scratch

__all__ = [
    "ConditionGroups",
    "DrugGroups",
    "ancestors_known",
    "ancestors_view",
    "concept_view",
    "is_ingredient",
]

CLINICAL_FINDING = 441840


@dataclass(frozen=True)
class ConditionGroups:
    """Ancestors of conditions that are covariates, by default those of FeatureExtraction.

    Parameters
    ----------
    root : int
        Ancestor of all groups, by default SNOMED's clinical finding.
    min_levels : int
        Groups must be more than this number of levels below the root.
    always : sequence of int
        Concepts that are groups at any level.
    unless_like : sequence of str
        Patterns (with %) of names that are not groups, because they are containers and not
        diseases.

    Examples
    --------
    >>> import riskset as rs
    >>> groups = rs.omop.ConditionGroups(min_levels=3)
    >>> analyses = ["ConditionGroupEraLongTerm"]
    >>> rs.omop.CovariateSettings(analyses, condition_groups=groups).analyses
    (210,)
    """

    root: int = CLINICAL_FINDING
    min_levels: int = 2
    always: tuple[int, ...] = (
        72404,
        76784,
        137977,
        192671,
        258449,
        313878,
        375258,
        433595,
        433736,
        433778,
        434157,
        434621,
        437312,
        438555,
        439847,
        441408,
        4145627,
        4171917,
        4299449,
        40483532,
    )
    unless_like: tuple[str, ...] = (
        "%finding",
        "Finding of%",
        "Disorder of%",
        "Disease of%",
        "Injury of%",
        "%by site",
        "%by body site",
        "%by mechanism",
        "%of body region",
        "%of anatomical site",
        "%of specific body structure%",
    )

    def stage(self, cdm: Cdm, work: Scratch) -> str:
        """Pairs ``concept_id, group_id`` as a temporary table."""
        ancestors, concepts = ancestors_view(cdm), concept_view(cdm)
        always = ", ".join(str(int(c)) for c in (0, *self.always))
        unless = "".join(f" AND c.concept_name NOT LIKE {text(p)}" for p in self.unless_like)
        return work.keep(
            "SELECT DISTINCT a.descendant_concept_id AS concept_id, "
            f"a.ancestor_concept_id AS group_id FROM {ancestors} a SEMI JOIN "
            f"(SELECT r.descendant_concept_id AS group_id FROM {ancestors} r JOIN {concepts} c "
            f"ON c.concept_id = r.descendant_concept_id WHERE r.ancestor_concept_id = {self.root} "
            f"AND (r.min_levels_of_separation > {self.min_levels} "
            f"OR r.descendant_concept_id IN ({always})) AND c.domain_id = 'Condition'{unless}) g "
            "ON g.group_id = a.ancestor_concept_id"
        )


@dataclass(frozen=True)
class DrugGroups:
    """Ancestors of drugs that are covariates: ingredients and ATC classes.

    Parameters
    ----------
    code_lengths : sequence of int
        Levels of the ATC classes: 1 (anatomical) to 5 (chemical).
    ingredients : bool

    Examples
    --------
    >>> import riskset as rs
    >>> ingredients = rs.omop.DrugGroups(code_lengths=())
    >>> rs.omop.CovariateSettings(["DrugGroupEraLongTerm"], drug_groups=ingredients).analyses
    (410,)
    """

    code_lengths: tuple[int, ...] = (1, 3, 4, 5)
    ingredients: bool = True

    def stage(self, cdm: Cdm, work: Scratch) -> str:
        """Pairs ``concept_id, group_id`` as a temporary table."""
        ancestors, concepts = ancestors_view(cdm), concept_view(cdm)
        lengths = ", ".join(str(int(n)) for n in (0, *self.code_lengths))
        is_class = f"c.vocabulary_id = 'ATC' AND length(c.concept_code) IN ({lengths})"
        if self.ingredients:
            is_class += f" OR {is_ingredient('c')}"
        return work.keep(
            "SELECT DISTINCT a.descendant_concept_id AS concept_id, "
            f"a.ancestor_concept_id AS group_id FROM {ancestors} a JOIN {concepts} c "
            f"ON c.concept_id = a.ancestor_concept_id WHERE c.concept_id <> 0 AND ({is_class})"
        )


def is_ingredient(concept: str) -> str:
    """Whether a row of table concept is an active substance."""
    return (
        f"({concept}.concept_class_id = 'Ingredient' AND {concept}.standard_concept = 'S' "
        f"AND {concept}.domain_id = 'Drug')"
    )


def ancestors_known(cdm: Cdm) -> bool:
    """Whether the CDM says what descends from what."""
    return cdm.has_rows("concept_ancestor") and cdm.has_rows("concept")


def ancestors_view(cdm: Cdm) -> str:
    """Table concept_ancestor; empty if the CDM has none."""
    return cdm.view(
        "concept_ancestor",
        ("ancestor_concept_id", "descendant_concept_id"),
        ("min_levels_of_separation",),
        needed=False,
    )


def concept_view(cdm: Cdm) -> str:
    """Table concept; empty if the CDM has none."""
    return cdm.view(
        "concept",
        ("concept_id",),
        (
            "concept_name",
            "domain_id",
            "vocabulary_id",
            "concept_class_id",
            "standard_concept",
            "concept_code",
        ),
        needed=False,
    )
