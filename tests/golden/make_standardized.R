# Standardised risks and restricted means by Cox, cause-specific and Fine-Gray models of each arm, averaged over
# the first 200 rows of cohort/cr_cohort.csv, and standard errors: roots of the sums of squares of numerical derivatives in the case weight of each row.
# Run in this folder: Rscript make_standardized.R
library(survival); source("json.R")
d <- read.csv("cohort/cr_cohort.csv", na.strings = "NA")[1:200, ]; d$ev <- as.integer(d$status > 0); n <- nrow(d)
times <- c(60, 200)
area <- function(time, value, first, tau) {
  keep <- time <= tau
  sum(c(first, value[keep]) * diff(c(0, time[keep], tau)))
}
measures <- function(time, free, risk) {
  rows <- lapply(times, function(t) {
    at <- function(v) c(0, v)[sum(time <= t) + 1]
    c(risk = at(risk), restricted_mean = area(time, free, 1, t), time_lost = area(time, risk, 0, t))
  })
  do.call(cbind, rows)
}
arm_cox <- function(a, w, target) {
  own <- d$treat == a
  dd <- d[own, ]; dd$w <- w[own]
  fit <- coxph(Surv(time, ev) ~ x1 + x2, dd, weights = w, ties = "breslow", control = coxph.control(eps = 1e-13, iter.max = 50))
  curve <- survfit(fit, newdata = d, se.fit = FALSE)
  s <- as.vector(curve$surv %*% (target / sum(target)))
  measures(curve$time, s, 1 - s)
}
hazards <- function(fit) {
  base <- basehaz(fit, centered = FALSE)
  list(time = base$time, jump = diff(c(0, base$hazard)), risk = exp(as.vector(as.matrix(d[, c("x1", "x2")]) %*% coef(fit))))
}
arm_causes <- function(a, w, target, causes = 1:2) {
  dd <- d[d$treat == a, ]; dd$w <- w[d$treat == a]
  dd$kind <- if (length(causes) == 1) dd$ev else dd$status
  fits <- lapply(causes, function(k) hazards(coxph(Surv(time, kind == k) ~ x1 + x2, dd, weights = w, ties = "breslow",
    control = coxph.control(eps = 1e-13, iter.max = 50))))
  time <- fits[[1]]$time; keep <- time <= max(times)
  h1 <- outer(fits[[1]]$risk, fits[[1]]$jump[keep]); h <- h1
  for (other in fits[-1]) h <- h + outer(other$risk, other$jump[keep])
  s <- t(exp(-apply(h, 1, cumsum))); before <- cbind(1, s[, -ncol(s)])
  step <- before * (1 - exp(-h)) * ifelse(h > 0, h1 / ifelse(h > 0, h, 1), 0)
  p <- target / sum(target)
  measures(time[keep], as.vector(p %*% s), cumsum(as.vector(p %*% step)))
}
arm_one <- function(a, w, target) arm_causes(a, w, target, 1)
arm_finegray <- function(a, w, target) {
  dd <- d[d$treat == a, ]; dd$time <- dd$time + dd$id * 1e-4   # no ties, which cmprsk and finegray treat differently
  fg <- finegray(Surv(time, factor(status, 0:2)) ~ x1 + x2, dd, etype = "1")
  fit <- coxph(Surv(fgstart, fgstop, fgstatus) ~ x1 + x2, fg, weights = fgwt, ties = "breslow", control = coxph.control(eps = 1e-13, iter.max = 50))
  curve <- survfit(fit, newdata = d, se.fit = FALSE)
  s <- as.vector(curve$surv %*% (target / sum(target)))
  measures(curve$time, s, 1 - s)
}
everybody <- function(of, target) function(w) rbind(of(1, w, target * w), of(0, w, target * w))
values <- function(of, target) { v <- everybody(of, target)(rep(1, n)); list(target = v[1:3, ], comparator = v[4:6, ]) }
errors <- function(of, target) {
  estimate <- everybody(of, target); step <- 1e-3
  cells <- array(sapply(seq_len(n), function(i) {
    move <- replace(rep(0, n), i, step)
    as.vector(estimate(1 + move) - estimate(1 - move)) / (2 * step)
  }), c(6, 2, n))
  root <- function(a) sqrt(apply(a^2, 1:2, sum))
  list(target_se = root(cells[1:3, , ]), comparator_se = root(cells[4:6, , ]), difference_se = root(cells[1:3, , ] - cells[4:6, , ]))
}
all <- rep(1, n)
stopifnot(max(abs(everybody(arm_one, all)(all) - everybody(arm_cox, all)(all))) < 1e-9)   # survfit and the formula
out <- list(
  versions = list(R = paste(R.version$major, R.version$minor, sep = "."), survival = as.character(packageVersion("survival"))),
  times = times, cox_ate = c(values(arm_cox, all), errors(arm_one, all)), cox_att = c(values(arm_cox, d$treat), errors(arm_one, d$treat)),
  causes_ate = c(values(arm_causes, all), errors(arm_causes, all)), finegray_ate = values(arm_finegray, all)
)
writeLines(json(out), "standardized.json")
