"""Tables of results about people, before any outcome: scores, adjustments, balance; and of runs."""

from riskset.study.schema import RUN, SUPPRESSED, counts, table

__all__ = ["PEOPLE_TABLES"]


def _side(side: str) -> str:
    return f"""
{side}_mean_target        number? derived mean in the target; of zeros and ones, the share
{side}_mean_comparator    number? derived mean in the comparator
{side}_sd_target          number? derived standard deviation in the target
{side}_sd_comparator      number? derived standard deviation in the comparator
{side}_count_target       int?    count   people of the target who have it; zeros and ones only
{side}_count_comparator   int?    count   people of the comparator who have it
{side}_smd                number? derived standardised difference of the means; may be infinite
{side}_smd_current_sd     number? derived by the standard deviation of the same side
{side}_smd_variance       number? derived variance of the standardised difference
{side}_p                  number? derived p of one as large if the truth lies at the threshold
{side}_balanced           bool?   derived within the threshold
"""


PEOPLE_TABLES = (
    table(
        "runs",
        "An estimate that was asked for: what became of it.",
        RUN
        + """
outcome_kind           text    setting "outcome", "negative control" or "positive control"
true_hr                number? setting hazard ratio of a control, 1 for a negative one
status                 text    summary "ok", or why there is no estimate, such as "no_matches"
step                   text?   summary the step that has this status, such as "propensity score"
reason                 text?   text    the status in a sentence
estimand               text?   setting whom it is about: "ate", "att", "atu", "ato", "matching"
adjustment_kind        text?   setting "none", "trimming", "matching", "stratification", "weighting"
ps                     int?    id      number of the propensity score
adjustment             int?    id      number of the adjustment
shared_adjustment      int?    id      number of the adjustment that all outcomes share
unblind                bool    summary no diagnostic failed
unblind_for_evidence_synthesis bool summary no diagnostic failed, except perhaps "mdrr"
blinded                bool    summary effects are withheld in these tables
""",
    ),
    table(
        "attrition",
        "A step that made the people of an adjustment; the first is what was read.",
        """
adjustment             int     id      number of the adjustment
number                 int     id      1, 2, ...
step                   text    setting what was done
target_persons         int?    count   people of the target left
comparator_persons     int?    count   people of the comparator left
target_exposures       int?    count   rows of the target left
comparator_exposures   int?    count   rows of the comparator left
removed_target         int?    count   rows of the target that it removed
removed_comparator     int?    count   rows of the comparator that it removed
"""
        + SUPPRESSED,
    ),
    table(
        "arms",
        "One side of an estimate: who was followed, for how long, and what happened.",
        RUN
        + """
side                   text    id      "before" or "after" adjustment
"""
        + counts("target")
        + counts("comparator")
        + SUPPRESSED,
    ),
    table(
        "ps",
        "A propensity score.",
        """
ps                     int     id      its number
target                 text    id      name of the target
comparator             text    id      name of the comparator
status                 text    summary "ok", or why there is none, or none to use
reason                 text?   text    the status in a sentence
source                 text    setting "fitted", or "given" with the data
n_target               int?    count   rows of the target that it was fitted for
n_comparator           int?    count   rows of the comparator
auc                    number? summary chance that a target has a higher score than a comparator
auc_lower              number? summary lower end of its interval of 95 % (DeLong)
auc_upper              number? summary upper end
equipoise              number? derived share of people with a preference score of 0.3 to 0.7
n_covariates           int?    summary covariates after tidying
n_used                 int?    summary those with a coefficient other than 0
n_excluded             int?    summary those left out because they determine the treatment
penalty                text?   summary "none", "l1", "l2" or "elasticnet"
l1                     number? summary strength of the L1 penalty on the total log likelihood
l2                     number? summary strength of the L2 penalty
variance               number? summary of the prior that the strength stands for (Cyclops)
chosen_by              text?   summary "cross-validation", or "given"
folds                  int?    summary of the cross-validation
repeats                int?    summary its repetitions
seed                   int?    summary of the folds
intercept              number? derived of the model
log_likelihood         number? derived of the model
kkt                    number? summary largest relative violation of the optimality conditions
removed_empty          int?    summary covariates that nobody has
removed_redundant      int?    summary covariates that follow from others
removed_rare           int?    summary covariates too rare
removed_duplicate      int?    summary covariates equal to another one
"""
        + SUPPRESSED,
    ),
    table(
        "ps_coefficients",
        "A covariate of a propensity score with a coefficient other than 0, the largest first.",
        """
ps                     int     id      number of the propensity score
rank                   int     id      1, 2, ... by size
covariate_id           text    id      key of the covariate
name                   text    id      its name
coef                   number? derived log odds ratio per unit of the covariate; may be infinite
mean_target            number? derived mean in the target; of zeros and ones the prevalence
mean_comparator        number? derived mean in the comparator
is_binary              bool?   id      zeros and ones
"""
        + SUPPRESSED,
    ),
    table(
        "ps_cross_validation",
        "A penalty that the cross-validation of a propensity score has tried.",
        """
ps                     int     id      number of the propensity score
l1                     number  summary strength of the L1 penalty
l2                     number  summary strength of the L2 penalty
variance               number? summary of the prior that it stands for
mean                   number  summary log likelihood of people left out, mean over repetitions
se                     number? summary its standard error over repetitions
chosen                 bool    summary the one in use
""",
    ),
    table(
        "ps_flagged",
        "A covariate that nearly determines the treatment, or that one arm alone has.",
        """
ps                     int     id      number of the propensity score
kind                   text    id      "high_correlation" or "one_arm_only"
covariate_id           text    id      key of the covariate
name                   text    id      its name
correlation            number? derived with the treatment
mean_target            number? derived mean in the target
mean_comparator        number? derived mean in the comparator
excluded               bool    summary left out of the model
"""
        + SUPPRESSED,
    ),
    table(
        "adjustments",
        "An adjustment: who is compared with which weights, and how alike the arms then are.",
        """
adjustment             int     id      its number
target                 text    id      name of the target
comparator             text    id      name of the comparator
ps                     int?    id      number of the propensity score
kind                   text    setting "none", "trimming", "matching", "stratification", "weighting"
estimand               text?   setting whom the effect is about
status                 text    summary "ok", "empty", "one_arm_empty" or "no_matches"
target_rows            int?    count   rows kept of the target
comparator_rows        int?    count   rows kept of the comparator
target_effective       number? derived effective size with weights (Kish)
comparator_effective   number? derived of the comparator
stratum_borders        numbers? summary borders of strata, as preference scores
caliper                number? summary largest distance of matched people
details                text    text    what the step found, as JSON
n_covariates           int?    summary covariates whose balance was looked at
before_max             number? derived largest size of a standardised difference before
before_worst           text?   summary its covariate
before_above           int?    summary differences above the threshold before
after_max              number? derived largest size after
after_worst            text?   summary its covariate
after_above            int?    summary differences above the threshold after
after_min_p            number? derived smallest p of a difference, times their number
generalisability_of    text?   setting "target", "comparator" or "both": whom the effect is about
generalisability_max   number? derived their largest standardised difference before and after
threshold              number? setting of balance, 0.1 as a rule
sd                     text?   setting "before" or "current": whose standard deviation divides
has_balance            bool    summary whether the table `balance` has its covariates
"""
        + SUPPRESSED,
    ),
    table(
        "preference",
        "A bar of the histogram of preference scores of an arm; bars with few people are joined.",
        """
adjustment             int     id      number of the adjustment
arm                    text    id      "target" or "comparator"
lower                  number  id      lower end, a multiple of 0.01
upper                  number  id      upper end
count                  int?    count   rows before adjustment
kept                   int?    count   those that the adjustment keeps
weight                 number? derived sum of their weights
"""
        + SUPPRESSED,
    ),
    table(
        "balance",
        "A covariate before and after an adjustment.",
        """
adjustment             int     id      number of the adjustment
covariate_id           text    id      key of the covariate
name                   text    id      its name
analysis_id            int?    id      how it was made (OMOP), such as 210 for groups of conditions
domain                 text?   id      such as "condition"
is_binary              bool    id      zeros and ones
category               int?    id      number of its category; everybody has exactly one level of it
"""
        + _side("before")
        + _side("after")
        + """
generalisability_target     number? derived difference of the target before and after
generalisability_comparator number? derived difference of the comparator before and after
generalisability_both       number? derived difference of both arms before and after
"""
        + SUPPRESSED,
    ),
    table(
        "table1",
        "A line of the table of characteristics.",
        """
adjustment             int     id      number of the adjustment
number                 int     id      order of the lines
section                text    id      such as "Medical history"
covariate_id           text?   id      key of the covariate
label                  text    id      the characteristic
kind                   text    id      "share" or "mean"
before_target          number? derived share or mean in the target
before_comparator      number? derived in the comparator
before_target_sd       number? derived standard deviation, of a mean
before_comparator_sd   number? derived in the comparator
before_smd             number? derived standardised difference
after_target           number? derived after adjustment, weighted
after_comparator       number? derived in the comparator
after_target_sd        number? derived standard deviation, of a mean
after_comparator_sd    number? derived in the comparator
after_smd              number? derived standardised difference
"""
        + SUPPRESSED,
    ),
)
