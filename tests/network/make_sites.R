# Writes sites.csv and prints the numbers of test_pooling.py.
# R 4.x with survival; EvidenceSynthesis' R files are read from the folder in the first argument.
library(survival)
RNGversion("4.0.0"); set.seed(7)
n <- c(400, 600, 150, 150, 300); rate <- c(.06, .04, .05, .05, .04)
d <- do.call(rbind, lapply(1:5, function(s) {
  x <- rbinom(n[s], 1, .4)
  t <- rexp(n[s], rate[s] * exp(log(.3) * x)); c <- runif(n[s], .2, 2)
  data.frame(site = s, x = x, time = round(pmin(t, c), 3), event = as.integer(t <= c))
}))
write.csv(d, "sites.csv", row.names = FALSE, quote = FALSE)
print(with(d, tapply(event, list(site, x), sum)))
fit <- coxph(Surv(time, event) ~ x + strata(site), d, ties = "breslow")
ll <- function(b) coxph(Surv(time, event) ~ offset(b * x) + strata(site), d, ties = "breslow")$loglik[1]
top <- fit$loglik[2]
end <- function(a, b) uniroot(function(v) 2 * (top - ll(v)) - qchisq(.95, 1), c(a, b), tol = 1e-10)$root
cat(sprintf("pooled %.9f %.9f %.9f\n", coef(fit), end(-5, coef(fit)), end(coef(fit), 3)))
b <- se <- rep(NA, 5)
for (s in 1:5) {
  f <- suppressWarnings(coxph(Surv(time, event) ~ x, d[d$site == s, ], ties = "breslow"))
  b[s] <- coef(f); se[s] <- sqrt(vcov(f)); cat(sprintf("site %d %.9f %.9f\n", s, b[s], se[s]))
}
ok <- se < 10; w <- 1 / se[ok]^2
cat(sprintf("inverse variance %.9f %.9f\n", sum(w * b[ok]) / sum(w), sqrt(1 / sum(w))))
# EvidenceSynthesis: eight even points, and the maximum if it is inside.
source(file.path(commandArgs(TRUE)[1], "LikelihoodApproximation.R"))
source(file.path(commandArgs(TRUE)[1], "FixedEffectMetaAnalysis.R"))
warn <- warning
profiles <- lapply(1:5, function(s) {
  x <- seq(log(.1), log(10), length.out = 8)
  if (b[s] > log(.1)) x <- sort(c(x, b[s]))
  e <- d[d$site == s, ]
  v <- sapply(x, function(k) coxph(Surv(time, event) ~ offset(k * x), e, ties = "breslow")$loglik[1])
  g <- sapply(x, function(k) {
    f <- coxph(Surv(time, event) ~ x, e, ties = "breslow", init = k, iter.max = 0)
    sum(residuals(f, "score"))
  })
  data.frame(point = x, value = v, derivative = g)
})
for (s in 1:5) write.csv(profiles[[s]], sprintf("profile-%d.csv", s), row.names = FALSE, quote = FALSE)
cat(sprintf("%.9f ", hermiteInterpolation(c(-4, -2, -.7, 0, 1.1, 3), profiles[[3]])), "\n")
print(computeEstimateFromApproximation(combineLogLikelihoodFunctionsList, .05, fits = profiles, fun = hermiteInterpolation), digits = 9)
