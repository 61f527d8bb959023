"""Tables of results about outcomes: estimates, risks, curves, controls, diagnostics, follow-up."""

from riskset.study.schema import COMPARISON, RUN, SUPPRESSED, counts, effect, table

__all__ = ["OUTCOME_TABLES"]

READING = """
model                  text    "cox", "cause-specific" or "finegray"
reading                text    "stratified", "marginal" or "pooled"
"""

OUTCOME_TABLES = (
    table(
        "estimates",
        "A hazard ratio; the first of a run with the role main is its answer.",
        RUN
        + """
number                 int     order within the run
role                   text    "main", "crude", "sensitivity", "model" or "subgroup"
label                  text    what it is, in a few words
"""
        + READING
        + """
subgroup               text?   name of the subgroup variable
level                  text?   level of the subgroup
interaction_p          number? p that the effect is as at the first level; there: of two levels
estimand               text?   whom the effect is about
status                 text    "ok", or why there is no number, such as "no_events"
note                   text?   codes of remarks, such as "few_events", by semicolons
"""
        + effect()
        + """
llr                    number? log likelihood less that with a ratio of 1
interval               text?   "profile", "robust", "wald" or "bootstrap"
interval_level         number  such as 0.95
"""
        + effect("calibrated_", "calibrated ")
        + """
mdrr                   number? smallest ratio the study would detect (power 0.8); may be infinite
expected_se            number? standard error to expect of a ratio of 1; may be infinite
proportionality_p      number? p that the log hazard ratio does not change with log time
informative_strata     int?    strata with both arms and an outcome
informative_people     int?    people in them
n_covariates           int?    covariates in the model beside the treatment
n_used                 int?    those with a coefficient other than 0
l1                     number? strength of their L1 penalty on the total log likelihood
l2                     number? strength of their L2 penalty
variance               number? of the prior that the strength stands for (Cyclops)
chosen_by              text?   "cross-validation", or "given"
folds                  int?    of the cross-validation
repeats                int?    its repetitions
seed                   int?    of the folds
kkt                    number? largest relative violation of the optimality conditions
"""
        + counts("target")
        + counts("comparator")
        + SUPPRESSED
        + """
blinded                bool    the effect is withheld
""",
    ),
    table(
        "outcome_coefficients",
        "A covariate of an outcome model with a coefficient other than 0, the largest first.",
        RUN
        + """
number                 int     number of the estimate
rank                   int     1, 2, ... by size
covariate_id           text    key of the covariate
name                   text    its name
coef                   number  log hazard ratio per unit of the covariate; may be infinite
mean_target            number? mean in the target, of those whom the adjustment keeps
mean_comparator        number? mean in the comparator; of zeros and ones the prevalence
is_binary              bool    zeros and ones
"""
        + SUPPRESSED,
    ),
    table(
        "outcome_cross_validation",
        "A penalty that the cross-validation of an outcome model has tried.",
        RUN
        + """
number                 int     number of the estimate
l1                     number  strength of the L1 penalty
l2                     number  strength of the L2 penalty
variance               number? of the prior that it stands for
mean                   number  log likelihood of people left out, mean over repetitions
se                     number? its standard error over repetitions
chosen                 bool    the one in use
""",
    ),
    table(
        "absolute_risks",
        "Risk of the outcome up to a time.",
        RUN
        + """
adjusted               bool    with the weights of the adjustment
time                   number  days since the start of the time at risk
target_risk            number? in the target
target_lower           number? lower end of its interval
target_upper           number? upper end
comparator_risk        number? in the comparator
comparator_lower       number? lower end of its interval
comparator_upper       number? upper end
difference             number? target less comparator
difference_lower       number? lower end of its interval
difference_upper       number? upper end
interval               text    of the difference: "normal" (from standard errors) or "bootstrap"
interval_level         number  such as 0.95
target_at_risk         int?    people of the target still followed
comparator_at_risk     int?    people of the comparator still followed
"""
        + SUPPRESSED
        + """
blinded                bool    the risks are withheld
""",
    ),
    table(
        "curves",
        "A step of a curve: the value from a time on. It ends where an arm has few people left.",
        RUN
        + """
adjusted               bool    with the weights of the adjustment
kind                   text    "survival", or "incidence" if there are competing events
arm                    text    "target" or "comparator"
cause                  int     1 = outcome, 2 = competing event
time                   number  days since the start of the time at risk
value                  number  survival, or cumulative incidence
standard_error         number? of the value
lower                  number? lower end of its interval
upper                  number? upper end
""",
    ),
    table(
        "numbers_at_risk",
        "People of an arm who are still followed just before a time.",
        RUN
        + """
adjusted               bool    of those whom the adjustment keeps
arm                    text    "target" or "comparator"
time                   number  days since the start of the time at risk
people                 int?    number of people
weighted               number? sum of their weights
effective              number? effective number (Kish)
"""
        + SUPPRESSED,
    ),
    table(
        "controls",
        "A control outcome in one model.",
        COMPARISON
        + READING
        + """
outcome                text    name of the control
true_hr                number  1 for a negative control
status                 text    of its estimate
hr                     number? hazard ratio
hr_lower               number? lower end of its interval
hr_upper               number? upper end
log_hr                 number? logarithm of the ratio
se                     number? its standard error
p                      number? two-sided p
calibrated_p           number? calibrated by all other controls
used                   bool    went into the calibration
reason                 text?   why it did not
""",
    ),
    table(
        "calibration",
        "Systematic error as the controls of one model show it.",
        COMPARISON
        + READING
        + """
status                 text    "ok" or "too_few_controls"
n_negative             int     negative controls in use
n_positive             int     positive controls in use
null_mean              number? of the systematic error of log hazard ratios, maximum likelihood
null_sd                number? its standard deviation
posterior_mean         number? median of the posterior of the mean
posterior_mean_lower   number? lower end of its interval of 95 %
posterior_mean_upper   number? upper end
posterior_sd           number? median of the posterior of the standard deviation
posterior_sd_lower     number? lower end of its interval of 95 %
posterior_sd_upper     number? upper end
ease                   number? expected absolute systematic error
ease_lower             number? lower end of its interval of 95 %
ease_upper             number? upper end
coverage               number? share of negative controls whose interval holds 1
calibrated_coverage    number? the same, each calibrated by all others
error_mean_intercept   number? of the model of error, if there are positive controls
error_mean_slope       number? by the true log ratio
error_sd_intercept     number? of its standard deviation
error_sd_slope         number? by the size of the true log ratio
interval_level         number  such as 0.95
""",
    ),
    table(
        "diagnostics",
        "A check that decides whether the estimate may be looked at.",
        RUN
        + """
name                   text    "balance", "shared_balance", "equipoise", "mdrr", "ease", ...
value                  number? what was found; may be infinite
limit                  number? None: reported only
verdict                text    "pass", "fail" or "not_evaluated"
""",
    ),
    table(
        "follow_up",
        "A quantile of the days at risk, of those whom the adjustment keeps.",
        RUN
        + """
arm                    text    "target" or "comparator"
share                  number  of the quantile: 0, 0.1, 0.25, 0.5, 0.75, 0.9 or 1
days                   number? days at risk
""",
    ),
    table(
        "follow_up_histogram",
        "A bin of the days at risk, of those whom the adjustment keeps; bins with few are joined.",
        RUN
        + """
arm                    text    "target" or "comparator"
start                  number  days at risk, more than
end                    number  and up to
people                 int?    people
"""
        + SUPPRESSED,
    ),
    table(
        "follow_up_ends",
        "Why follow-up ended, of those whom the adjustment keeps.",
        RUN
        + """
arm                    text    "target" or "comparator"
reason                 text    such as "outcome", "competing event" or "observation end"
count                  int?    people
"""
        + SUPPRESSED,
    ),
    table(
        "likelihood_profiles",
        "A point of the profile log likelihood of the main estimate of an outcome or a control.",
        RUN
        + """
log_hr                 number  log hazard ratio, from log 0.1 to log 10
log_likelihood         number  less the largest of the profile, so at most 0
derivative             number? of the profile by the log hazard ratio
""",
    ),
    table(
        "effect_over_time",
        "A run's main effect in an interval of time; intervals have equal numbers of outcomes.",
        RUN
        + """
interval               int     1, 2, ...
start                  number  days since the start of the time at risk, not itself in the interval
end                    number  last day of the interval
target_outcomes        int     outcomes of the target in it
comparator_outcomes    int     outcomes of the comparator in it
hr                     number  hazard ratio in it, by scaled Schoenfeld residuals
hr_lower               number  lower end of its normal interval
hr_upper               number  upper end
log_hr                 number  its logarithm
se                     number  standard error of the logarithm
interval_level         number  such as 0.95
""",
    ),
    table(
        "event_weeks",
        "A week about the index date: first outcomes of people under observation.",
        RUN
        + """
arm                    text    "target" or "comparator"
week                   int     week w begins 7 w days after the index date (tables: after day 1)
events                 int?    people whose first outcome, of those weeks, is in this one
people                 int?    people under observation without one when it begins
"""
        + SUPPRESSED,
    ),
    table(
        "calendar",
        "A year in which people of a comparison started.",
        """
target                 text    name of the target
comparator             text    name of the comparator
arm                    text    "target" or "comparator"
year                   int     calendar year of the index date
starts                 int?    rows
"""
        + SUPPRESSED,
    ),
    table(
        "codes",
        "A concept of a definition.",
        """
list                   text    what is defined, such as the name of a target or an outcome
concept_id             int     of the vocabulary
name                   text    its name
vocabulary             text?   such as "RxNorm"
excluded               bool    taken out of the definition
""",
    ),
    table(
        "warnings",
        "A remark of a step, once for all estimates it concerns.",
        """
step                   text    such as "propensity score"
code                   text    a short name, such as "high_correlation"
message                text    in a sentence
count                  int     how many estimates it concerns
where                  text    the first of them: target, comparator, outcome, analysis
""",
    ),
)
