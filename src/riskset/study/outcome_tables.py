"""Tables of results about outcomes: estimates, risks, curves, controls, diagnostics, follow-up."""

from riskset.study.schema import COMPARISON, RUN, SUPPRESSED, counts, effect, table

__all__ = ["OUTCOME_TABLES"]

READING = """
model                  text    id      "cox", "cause-specific" or "finegray"
reading                text    id      "stratified", "marginal" or "pooled"
"""

OUTCOME_TABLES = (
    table(
        "estimates",
        "A hazard ratio; the first of a run with the role main is its answer.",
        RUN
        + """
number                 int     id      order within the run
role                   text    id      "main", "crude", "sensitivity", "model" or "subgroup"
label                  text    id      what it is, in a few words
"""
        + READING
        + """
subgroup               text?   id      name of the subgroup variable
level                  text?   id      level of the subgroup
interaction_p          number? effect  p that the effect is that at the first level
estimand               text?   setting whom the effect is about
status                 text    summary "ok", or why there is no number, such as "no_events"
note                   text?   summary codes of remarks, such as "few_events", by semicolons
"""
        + effect()
        + """
llr                    number? effect  log likelihood less that with a ratio of 1
interval               text?   setting "profile", "robust", "wald" or "bootstrap"
interval_level         number  setting such as 0.95
"""
        + effect("calibrated_", "calibrated ")
        + """
mdrr                   number? derived smallest ratio the study would detect (power 0.8)
expected_se            number? derived standard error to expect of a ratio of 1; may be infinite
proportionality_p      number? effect  p that the log hazard ratio does not change with log time
informative_strata     int?    count   strata with both arms and an outcome
informative_people     int?    count   people in them
n_covariates           int?    summary covariates in the model beside the treatment
n_used                 int?    summary those with a coefficient other than 0
l1                     number? summary strength of their L1 penalty on the total log likelihood
l2                     number? summary strength of their L2 penalty
variance               number? summary of the prior that the strength stands for (Cyclops)
chosen_by              text?   summary "cross-validation", or "given"
folds                  int?    summary of the cross-validation
repeats                int?    summary its repetitions
seed                   int?    summary of the folds
kkt                    number? summary largest relative violation of the optimality conditions
"""
        + counts("target")
        + counts("comparator")
        + SUPPRESSED
        + """
blinded                bool    summary the effect is withheld
""",
    ),
    table(
        "outcome_coefficients",
        "A covariate of an outcome model with a coefficient other than 0, the largest first.",
        RUN
        + """
number                 int     id      number of the estimate
rank                   int     id      1, 2, ... by size
covariate_id           text    id      key of the covariate
name                   text    id      its name
coef                   number? derived log hazard ratio per unit of the covariate; may be infinite
mean_target            number? derived mean in the target, of people whom the adjustment keeps
mean_comparator        number? derived mean in the comparator; of zeros and ones the prevalence
is_binary              bool    id      zeros and ones
"""
        + SUPPRESSED,
    ),
    table(
        "outcome_cross_validation",
        "A penalty that the cross-validation of an outcome model has tried.",
        RUN
        + """
number                 int     id      number of the estimate
l1                     number  summary strength of the L1 penalty
l2                     number  summary strength of the L2 penalty
variance               number? summary of the prior that it stands for
mean                   number  effect  log likelihood of people left out, mean over repetitions
se                     number? effect  its standard error over repetitions
chosen                 bool    summary the one in use
""",
    ),
    table(
        "absolute_risks",
        "Risk of the outcome up to a time.",
        RUN
        + """
adjusted               bool    id      with the weights of the adjustment
time                   number  id      days since the start of the time at risk
target_risk            number? derived in the target
target_lower           number? derived lower end of its interval
target_upper           number? derived upper end
comparator_risk        number? derived in the comparator
comparator_lower       number? derived lower end of its interval
comparator_upper       number? derived upper end
difference             number? derived target less comparator
difference_lower       number? derived lower end of its interval
difference_upper       number? derived upper end
interval               text    setting of the difference: "normal" or "bootstrap"
interval_level         number  setting such as 0.95
target_at_risk         int?    count   people of the target still followed
comparator_at_risk     int?    count   people of the comparator still followed
target_outcomes        int?    count   people of the target with the outcome by then
comparator_outcomes    int?    count   people of the comparator with the outcome by then
"""
        + SUPPRESSED
        + """
blinded                bool    summary the risks are withheld
""",
    ),
    table(
        "curves",
        "A step of a curve: the value from a time on. It ends where an arm has few people left.",
        RUN
        + """
adjusted               bool    id      with the weights of the adjustment
kind                   text    id      "survival", or "incidence" if there are competing events
arm                    text    id      "target" or "comparator"
cause                  int     id      1 = outcome, 2 = competing event
time                   number  id      days since the start of the time at risk
value                  number  derived survival, or cumulative incidence
standard_error         number? derived of the value
lower                  number? derived lower end of its interval
upper                  number? derived upper end
people                 int?    private people at risk in the arm with fewer
events                 int?    private people of the arm with an event of this cause by then
""",
    ),
    table(
        "numbers_at_risk",
        "People of an arm who are still followed just before a time.",
        RUN
        + """
adjusted               bool    id      whether only people whom the adjustment keeps count
arm                    text    id      "target" or "comparator"
time                   number  id      days since the start of the time at risk
people                 int?    count   number of people
weighted               number? derived sum of their weights
effective              number? derived effective number (Kish)
"""
        + SUPPRESSED,
    ),
    table(
        "controls",
        "A control outcome in one model.",
        COMPARISON
        + READING
        + """
outcome                text    id      name of the control
true_hr                number  setting 1 for a negative control
status                 text    summary of its estimate
hr                     number? effect  hazard ratio
hr_lower               number? effect  lower end of its interval
hr_upper               number? effect  upper end
log_hr                 number? effect  logarithm of the ratio
se                     number? effect  its standard error
p                      number? effect  two-sided p
calibrated_p           number? effect  calibrated by all other controls
used                   bool    summary went into the calibration
reason                 text?   summary why it did not
""",
    ),
    table(
        "calibration",
        "Systematic error as the controls of one model show it.",
        COMPARISON
        + READING
        + """
status                 text    summary "ok" or "too_few_controls"
n_negative             int     summary negative controls in use
n_positive             int     summary positive controls in use
null_mean              number? summary mean systematic error of log hazard ratios
null_sd                number? summary its standard deviation
posterior_mean         number? summary median of the posterior of the mean
posterior_mean_lower   number? summary lower end of its interval of 95 %
posterior_mean_upper   number? summary upper end
posterior_sd           number? summary median of the posterior of the standard deviation
posterior_sd_lower     number? summary lower end of its interval of 95 %
posterior_sd_upper     number? summary upper end
ease                   number? summary expected absolute systematic error
ease_lower             number? summary lower end of its interval of 95 %
ease_upper             number? summary upper end
coverage               number? summary share of negative controls whose interval holds 1
calibrated_coverage    number? summary the same, each calibrated by all others
error_mean_intercept   number? summary of the model of error, if there are positive controls
error_mean_slope       number? summary by the true log ratio
error_sd_intercept     number? summary of its standard deviation
error_sd_slope         number? summary by the size of the true log ratio
interval_level         number  setting such as 0.95
region_se              numbers? summary standard errors of the log hazard ratio
region_lower           numbers? summary at each, the lowest log ratio with a calibrated p of 0.05
region_upper           numbers? summary at each, the highest log ratio with a calibrated p of 0.05
""",
    ),
    table(
        "diagnostics",
        "A check that decides whether the estimate may be looked at.",
        RUN
        + """
name                   text    id      "balance", "shared_balance", "equipoise", "mdrr", ...
value                  number? derived what was found; may be infinite
limit                  number? setting None: reported only
verdict                text    summary "pass", "fail" or "not_evaluated"
""",
    ),
    table(
        "follow_up",
        "A quantile of the days at risk, of people whom the adjustment keeps.",
        RUN
        + """
arm                    text    id      "target" or "comparator"
share                  number  id      of the quantile: 0, 0.1, 0.25, 0.5, 0.75, 0.9 or 1
days                   number? derived days at risk
""",
    ),
    table(
        "follow_up_histogram",
        "A bin of the days at risk, of people whom the adjustment keeps; bins with few are joined.",
        RUN
        + """
arm                    text    id      "target" or "comparator"
start                  number  id      days at risk, more than
end                    number  id      and up to
people                 int?    count   people
"""
        + SUPPRESSED,
    ),
    table(
        "follow_up_ends",
        "Why follow-up ended, of people whom the adjustment keeps.",
        RUN
        + """
arm                    text    id      "target" or "comparator"
reason                 text    id      such as "outcome", "competing event" or "observation end"
count                  int?    count   people
"""
        + SUPPRESSED,
    ),
    table(
        "likelihood_profiles",
        "A point of the profile log likelihood of the main estimate of an outcome or a control.",
        RUN
        + """
log_hr                 number  effect  log hazard ratio, from log 0.1 to log 10
log_likelihood         number  effect  less the largest of the profile, so at most 0
derivative             number? effect  of the profile by the log hazard ratio
""",
    ),
    table(
        "effect_over_time",
        "A run's main effect in an interval of time; intervals have equal numbers of outcomes.",
        RUN
        + """
interval               int     id      1, 2, ...
start                  number  id      day after which it begins, since the start of follow-up
end                    number  id      last day of the interval
target_outcomes        int     count   outcomes of the target in it
comparator_outcomes    int     count   outcomes of the comparator in it
hr                     number  effect  hazard ratio in it, by scaled Schoenfeld residuals
hr_lower               number  effect  lower end of its normal interval
hr_upper               number  effect  upper end
log_hr                 number  effect  its logarithm
se                     number  effect  standard error of the logarithm
interval_level         number  setting such as 0.95
""",
    ),
    table(
        "event_weeks",
        "A week about the index date: first outcomes of people under observation.",
        RUN
        + """
arm                    text    id      "target" or "comparator"
week                   int     id      week w begins 7 w days after the index date
events                 int?    count   people whose first outcome within these weeks is in this one
people                 int?    count   people under observation without one when it begins
"""
        + SUPPRESSED,
    ),
    table(
        "calendar",
        "A year in which people of a comparison started.",
        """
target                 text    id      name of the target
comparator             text    id      name of the comparator
arm                    text    id      "target" or "comparator"
year                   int     id      calendar year of the index date
starts                 int?    count   rows
"""
        + SUPPRESSED,
    ),
    table(
        "codes",
        "A concept of a definition.",
        """
list                   text    id      what is defined, such as the name of a target or an outcome
concept_id             int     id      of the vocabulary
name                   text    id      its name
vocabulary             text?   id      such as "RxNorm"
excluded               bool    setting taken out of the definition
""",
    ),
    table(
        "warnings",
        "A remark of a step, once for all estimates it concerns.",
        """
step                   text    id      such as "propensity score"
code                   text    id      a short name, such as "high_correlation"
message                text    text    in a sentence
count                  int     summary how many estimates it concerns
where                  text    id      the first of them: target, comparator, outcome, analysis
""",
    ),
)
