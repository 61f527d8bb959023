# Logistic and Poisson outcome models of veteran.csv: stats::glm and survival::clogit.
# Rscript make_outcome_models.R > outcome_models.json, in the folder of veteran.csv.
suppressMessages(library(survival))
d <- read.csv("veteran.csv")
d$treated <- d$trt
# An outcome within the time at risk, whose share differs between strata of cell type.
d$event <- as.numeric(d$event == 1 & d$time <= 60)
d$days <- pmin(d$time, 60)
d$stratum <- 1 + d$squamous + 2 * d$smallcell + 3 * d$adeno
d$w <- 0.5 + (seq_len(nrow(d)) %% 4) / 2
num <- function(x) paste0("[", paste(sprintf("%.15g", x), collapse = ", "), "]")
profile_ci <- function(fit0, b, ll) {
  g <- function(x) 2 * (ll(b) - ll(x)) - qchisq(0.95, 1)
  c(uniroot(g, c(b - 4, b), tol = 1e-10)$root, uniroot(g, c(b, b + 4), tol = 1e-10)$root)
}
tight <- glm.control(epsilon = 1e-14, maxit = 100)
describe <- function(name, family, offset, formula, weights = NULL, p = 2) {
  d$off <- offset; d$wt <- if (is.null(weights)) 1 else weights
  fit <- suppressWarnings(glm(formula, family = family, data = d, offset = off, weights = wt, control = tight))
  X <- model.matrix(fit); mu <- fitted(fit); y <- d$event
  v <- if (family$family == "binomial") mu * (1 - mu) else mu
  info <- t(X) %*% (X * (d$wt * v)); U <- X * (d$wt * (y - mu))
  robust <- solve(info) %*% crossprod(U) %*% solve(info)
  cl <- rowsum(U, d$cluster); clustered <- solve(info) %*% crossprod(cl) %*% solve(info)
  b <- coef(fit)["treated"]
  loglik <- function(f) { m <- fitted(f); sum(d$wt * (if (family$family == "binomial") ifelse(y == 1, log(m), log1p(-m)) else y * log(m) - m)) }
  ll <- function(x) { d$off2 <- d$off + x * d$treated
    loglik(suppressWarnings(glm(update(formula, . ~ . - treated), family = family, data = d, offset = off2, weights = wt, control = tight))) }
  at <- function(m, k) sqrt(diag(m))[which(colnames(X) == k)]
  sprintf('"%s": {"coef": %.15g, "se": %.15g, "se_robust": %.15g, "se_cluster": %.15g, "profile": %s, "llr": %.15g, "log_likelihood": %.15g}',
    name, b, at(solve(info), "treated"), at(robust, "treated"), at(clustered, "treated"), num(profile_ci(fit, b, ll)), ll(b) - ll(0), loglik(fit))
}
d$cluster <- (seq_len(nrow(d)) - 1) %/% 2
out <- c(
  describe("logistic", binomial(), 0, event ~ treated),
  describe("logistic_adjusted", binomial(), 0, event ~ treated + karno + age),
  describe("logistic_weighted", binomial(), 0, event ~ treated, d$w),
  describe("poisson", poisson(), log(d$days), event ~ treated),
  describe("poisson_adjusted", poisson(), log(d$days), event ~ treated + karno + age),
  describe("poisson_weighted", poisson(), log(d$days), event ~ treated, d$w),
  describe("poisson_stratified", poisson(), log(d$days), event ~ treated + factor(stratum)))
cl <- function(name, formula, data) {
  f <- clogit(formula, data = data, method = "exact", control = coxph.control(eps = 1e-14, iter.max = 50))
  b <- coef(f)["treated"]
  sprintf('"%s": {"coef": %.15g, "se": %.15g, "log_likelihood": %.15g, "null_log_likelihood": %.15g}', name, b, sqrt(diag(vcov(f)))["treated"], f$loglik[2], f$loglik[1])
}
# Pairs of neighbours, one of each arm where there is one, with at most two outcomes.
d$pair <- (seq_len(nrow(d)) - 1) %/% 2
d$half <- as.numeric(seq_len(nrow(d)) %% 2 == 0)
out <- c(out, cl("logistic_stratified", event ~ treated + strata(stratum), d),
  cl("logistic_stratified_adjusted", event ~ treated + karno + strata(stratum), d))
d2 <- d; d2$treated <- d$half
out <- c(out, cl("logistic_pairs", event ~ treated + strata(pair), d2))
cat(sprintf('{"R": "%s", "survival": "%s",\n%s}\n', R.version.string, packageVersion("survival"), paste(out, collapse = ",\n")))
