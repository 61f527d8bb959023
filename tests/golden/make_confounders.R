# Risk ratios with and without a confounder in the model, by glm and integrate in base R; the effects that explain a
# ratio, by uniroot; and quantiles of the size of a normal error. Rscript make_confounders.R > confounders.json
source("json.R")
binary <- function(p1, p0, effect, ratio) {
  d <- expand.grid(a = 0:1, u = 0:1)
  d$n <- ifelse(d$a == 1, ifelse(d$u == 1, p1, 1 - p1), ifelse(d$u == 1, p0, 1 - p0))
  d$risk <- 0.01 * ratio^d$a * effect^d$u
  fit <- function(f) exp(coef(glm(f, quasipoisson, d, weights = n, control = list(epsilon = 1e-15, maxit = 100)))[["a"]])
  list(target_prevalence = p1, comparator_prevalence = p0, effect = effect, crude = fit(risk ~ a), adjusted = fit(risk ~ a + u))
}
normal <- function(difference, effect, ratio) {
  mean_risk <- function(m) integrate(function(u) effect^u * dnorm(u, m), m - 15, m + 15, rel.tol = 1e-12)$value
  list(difference = difference, effect = effect, crude = ratio * mean_risk(difference) / mean_risk(0), adjusted = ratio)
}
tip <- function(of, limit, ends) uniroot(function(g) log(of(g)$crude / limit), ends, tol = 1e-13)$root
folded <- function(mean, sd, level)
  list(mean = mean, sd = sd, level = level,
       quantile = uniroot(function(q) pnorm(q, mean, sd) - pnorm(-q, mean, sd) - level, c(0, 9), tol = 1e-14)$root)
cat(json(list(
  R = R.version.string,
  binary = list(binary(0.5, 0.2, 3, 1.2), binary(0.1, 0.4, 2, 1.5), binary(0.7, 0.3, 0.4, 0.8), binary(0.05, 0.01, 8, 1)),
  normal = list(normal(0.4, 1.8, 1.3), normal(-0.2, 2.5, 0.7), normal(0.6, 0.5, 1.1)),
  tipping = list(
    list(target_prevalence = 0.5, comparator_prevalence = 0.2, limit = 1.3, effect = tip(function(g) binary(0.5, 0.2, g, 1), 1.3, c(1, 50))),
    list(target_prevalence = 0.1, comparator_prevalence = 0.3, limit = 0.8, effect = tip(function(g) binary(0.1, 0.3, g, 1), 0.8, c(1, 50))),
    list(difference = 0.3, limit = 1.3, effect = tip(function(g) normal(0.3, g, 1), 1.3, c(1, 50)))),
  folded = list(folded(0.1, 0.2, 0.95), folded(-0.3, 0.05, 0.9), folded(0, 1, 0.5)))), "\n", sep = "")
