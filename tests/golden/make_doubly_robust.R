# Doubly robust risks by riskRegression::ate (estimator "AIPTW") on the first 200 rows of cohort/cr_cohort.csv, with times moved apart:
# of any event by a Cox model, and of cause 1 by cause-specific Cox models, with a logistic score and a Cox model of censoring, all of both arms.
# Run in this folder: Rscript make_doubly_robust.R
suppressMessages({library(survival); library(riskRegression); library(data.table)}); source("json.R")
d <- read.csv("cohort/cr_cohort.csv", na.strings = "NA")[1:200, ]
d$time <- d$time + d$id * 1e-4; d$treat <- factor(d$treat); d$ev <- as.integer(d$status > 0); times <- c(60, 200)
exact <- coxph.control(eps = 1e-12, iter.max = 50)
cox <- function(f) coxph(f, data = d, x = TRUE, y = TRUE, ties = "breslow", control = exact)
censor <- cox(Surv(time, ev == 0) ~ treat + x1 + x2)
treatment <- glm(treat ~ x1 + x2, data = d, family = binomial, control = glm.control(epsilon = 1e-14))
risks <- function(event, ...) {
  found <- ate(event = event, treatment = treatment, censor = censor, data = d, times = times, estimator = "AIPTW",
    se = TRUE, known.nuisance = TRUE, verbose = FALSE, ...)
  m <- found$meanRisk; r <- found$diffRisk
  list(target = m[treatment == "1", estimate], target_se = m[treatment == "1", se], comparator = m[treatment == "0", estimate],
    comparator_se = m[treatment == "0", se], difference = r$estimate, difference_se = r$se)
}
causes <- CSC(list(Hist(time, status) ~ treat + x1 + x2, Hist(time, status) ~ treat + x1 + x2), data = d, cause = 1, ties = "breslow", control = exact)
out <- list(
  versions = list(R = paste(R.version$major, R.version$minor, sep = "."), riskRegression = as.character(packageVersion("riskRegression"))),
  times = times, cox = risks(cox(Surv(time, ev) ~ treat + x1 + x2)), causes = risks(causes, cause = 1, product.limit = FALSE)
)
writeLines(json(out), "doubly_robust.json")
