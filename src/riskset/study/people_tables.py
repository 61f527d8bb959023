"""Tables of results about people, before any outcome: scores, adjustments, balance; and of runs."""

from riskset.study.schema import RUN, SUPPRESSED, counts, table

__all__ = ["PEOPLE_TABLES"]


def _side(side: str) -> str:
    return f"""
{side}_mean_target        number? mean in the target; of a covariate of zeros and ones, its share
{side}_mean_comparator    number? mean in the comparator
{side}_sd_target          number? standard deviation in the target
{side}_sd_comparator      number? standard deviation in the comparator
{side}_count_target       int?    people of the target who have it; null unless zeros and ones
{side}_count_comparator   int?    people of the comparator who have it
{side}_smd                number? standardised difference of the means; may be infinite
{side}_smd_current_sd     number? by the standard deviation of the same side
{side}_smd_variance       number? variance of the standardised difference
{side}_p                  number? p of one as large if the truth lies at the threshold
{side}_balanced           bool?   within the threshold
"""


PEOPLE_TABLES = (
    table(
        "runs",
        "An estimate that was asked for: what became of it.",
        RUN
        + """
outcome_kind           text    "outcome", "negative control" or "positive control"
true_hr                number? hazard ratio of a control, 1 for a negative one
status                 text    "ok", or why there is no estimate, such as "no_matches"
step                   text?   the step that has this status, such as "propensity score"
reason                 text?   the status in a sentence
estimand               text?   whom the effect is about: "ate", "att", "atu", "ato", "matching"
adjustment_kind        text?   "none", "trimming", "matching", "stratification" or "weighting"
ps                     int?    number of the propensity score
adjustment             int?    number of the adjustment
shared_adjustment      int?    number of the adjustment of everybody, whatever the outcome
unblind                bool    no diagnostic failed
unblind_for_evidence_synthesis bool no diagnostic failed, except perhaps "mdrr"
blinded                bool    effects are withheld in these tables
""",
    ),
    table(
        "attrition",
        "A step that made the people of an adjustment; the first is what was read.",
        """
adjustment             int     number of the adjustment
number                 int     1, 2, ...
step                   text    what was done
target_persons         int?    people of the target left
comparator_persons     int?    people of the comparator left
target_exposures       int?    rows of the target left
comparator_exposures   int?    rows of the comparator left
removed_target         int?    rows of the target that it removed
removed_comparator     int?    rows of the comparator that it removed
"""
        + SUPPRESSED,
    ),
    table(
        "arms",
        "One side of an estimate: who was followed, for how long, and what happened.",
        RUN
        + """
side                   text    "before" or "after" adjustment
"""
        + counts("target")
        + counts("comparator")
        + SUPPRESSED,
    ),
    table(
        "ps",
        "A propensity score.",
        """
ps                     int     its number
target                 text    name of the target
comparator             text    name of the comparator
status                 text    "ok", or why there is none, or none to use
reason                 text?   the status in a sentence
source                 text    "fitted", or "given" with the data
n_target               int?    rows of the target that it was fitted for
n_comparator           int?    rows of the comparator
auc                    number? chance that a target has a higher score than a comparator
auc_lower              number? lower end of its interval of 95 % (DeLong)
auc_upper              number? upper end
equipoise              number? share of people with a preference score of 0.3 to 0.7
n_covariates           int?    covariates after tidying
n_used                 int?    those with a coefficient other than 0
n_excluded             int?    those left out because they determine the treatment
penalty                text?   "none", "l1", "l2" or "elasticnet"
l1                     number? strength of the L1 penalty on the total log likelihood
l2                     number? strength of the L2 penalty
variance               number? of the prior that the strength stands for (Cyclops)
chosen_by              text?   "cross-validation", or "given"
folds                  int?    of the cross-validation
repeats                int?    its repetitions
seed                   int?    of the folds
intercept              number? of the model
log_likelihood         number? of the model
kkt                    number? largest relative violation of the optimality conditions
removed_empty          int?    covariates that nobody has
removed_redundant      int?    covariates that follow from others
removed_rare           int?    covariates too rare
removed_duplicate      int?    covariates equal to another one
"""
        + SUPPRESSED,
    ),
    table(
        "ps_coefficients",
        "A covariate of a propensity score with a coefficient other than 0, the largest first.",
        """
ps                     int     number of the propensity score
rank                   int     1, 2, ... by size
covariate_id           text    key of the covariate
name                   text    its name
coef                   number  log odds ratio per unit of the covariate; may be infinite
mean_target            number? mean in the target; of zeros and ones the prevalence
mean_comparator        number? mean in the comparator
"""
        + SUPPRESSED,
    ),
    table(
        "ps_cross_validation",
        "A penalty that the cross-validation of a propensity score has tried.",
        """
ps                     int     number of the propensity score
l1                     number  strength of the L1 penalty
l2                     number  strength of the L2 penalty
variance               number? of the prior that it stands for
mean                   number  log likelihood of people left out, mean over repetitions
se                     number? its standard error over repetitions
chosen                 bool    the one in use
""",
    ),
    table(
        "ps_flagged",
        "A covariate that nearly determines the treatment, or that one arm alone has.",
        """
ps                     int     number of the propensity score
kind                   text    "high_correlation" or "one_arm_only"
covariate_id           text    key of the covariate
name                   text    its name
correlation            number? with the treatment
mean_target            number? mean in the target
mean_comparator        number? mean in the comparator
excluded               bool    left out of the model
"""
        + SUPPRESSED,
    ),
    table(
        "adjustments",
        "An adjustment: who is compared with which weights, and how alike the arms then are.",
        """
adjustment             int     its number
target                 text    name of the target
comparator             text    name of the comparator
ps                     int?    number of the propensity score
kind                   text    "none", "trimming", "matching", "stratification" or "weighting"
estimand               text?   whom the effect is about
status                 text    "ok", "empty", "one_arm_empty" or "no_matches"
target_rows            int?    rows kept of the target
comparator_rows        int?    rows kept of the comparator
target_effective       number? effective size with weights (Kish)
comparator_effective   number? of the comparator
stratum_borders        numbers? borders of strata, as preference scores
caliper                number? largest distance of matched people, on the scale of the distance
details                text    what the step found, as JSON
n_covariates           int?    covariates whose balance was looked at
before_max             number? largest size of a standardised difference before
before_worst           text?   its covariate
before_above           int?    differences above the threshold before
after_max              number? largest size after
after_worst            text?   its covariate
after_above            int?    differences above the threshold after
after_min_p            number? smallest p of a difference above the threshold, times their number
generalisability_of    text?   "target", "comparator" or "both": whom the effect is about
generalisability_max   number? their largest standardised difference before and after
threshold              number? of balance, 0.1 as a rule
sd                     text?   "before" or "current": whose standard deviation divides
has_balance            bool    whether the table `balance` has its covariates
"""
        + SUPPRESSED,
    ),
    table(
        "preference",
        "A bar of the histogram of preference scores of an arm; bars with few people are joined.",
        """
adjustment             int     number of the adjustment
arm                    text    "target" or "comparator"
lower                  number  lower end, a multiple of 0.01
upper                  number  upper end
count                  int?    rows before adjustment
kept                   int?    those that the adjustment keeps
weight                 number? sum of their weights
"""
        + SUPPRESSED,
    ),
    table(
        "balance",
        "A covariate before and after an adjustment.",
        """
adjustment             int     number of the adjustment
covariate_id           text    key of the covariate
name                   text    its name
analysis_id            int?    how it was made (OMOP), such as 210 for groups of conditions
domain                 text?   such as "condition"
is_binary              bool    zeros and ones
category               int?    number of its category; everybody has exactly one level of it
"""
        + _side("before")
        + _side("after")
        + """
generalisability_target     number? difference of the target before and after
generalisability_comparator number? difference of the comparator before and after
generalisability_both       number? difference of both arms before and after
"""
        + SUPPRESSED,
    ),
    table(
        "table1",
        "A line of the table of characteristics.",
        """
adjustment             int     number of the adjustment
number                 int     order of the lines
section                text    such as "Medical history"
label                  text    the characteristic
kind                   text    "share" or "mean"
before_target          number? share or mean in the target
before_comparator      number? in the comparator
before_target_sd       number? standard deviation, of a mean
before_comparator_sd   number? in the comparator
before_smd             number? standardised difference
after_target           number? after adjustment, weighted
after_comparator       number? in the comparator
after_target_sd        number? standard deviation, of a mean
after_comparator_sd    number? in the comparator
after_smd              number? standardised difference
"""
        + SUPPRESSED,
    ),
)
