# E-values by the formulas of VanderWeele and Ding (2017), in base R, with the values that their article prints.
# Rscript make_e_values.R > e_values.json
e <- function(rr) { rr <- max(rr, 1 / rr); rr + sqrt(rr * (rr - 1)) }
of_hazard <- function(h) (1 - 0.5^sqrt(h)) / (1 - 0.5^sqrt(1 / h))
one <- function(scale, common, est, lo, hi) {
  f <- if (!common) identity else if (scale == "hazard") of_hazard else if (scale == "odds") sqrt else identity
  rr <- f(est)
  near <- if (rr > 1) f(lo) else f(hi)
  limit <- if ((rr > 1) == (near > 1)) e(near) else 1
  sprintf('{"scale": "%s", "common": %s, "estimate": %.17g, "lower": %.17g, "upper": %.17g, "risk_ratio": %.17g, "e_value": %.17g, "limit": %.17g}',
          scale, if (common) "true" else "false", est, lo, hi, rr, e(rr), limit)
}
cases <- c(
  one("hazard", TRUE, 0.56, 0.46, 0.69), one("hazard", FALSE, 0.56, 0.46, 0.69), one("hazard", TRUE, 2.4, 1.1, 5.2),
  one("hazard", TRUE, 0.8, 0.5, 1.3), one("odds", TRUE, 0.86, 0.75, 0.99), one("odds", FALSE, 3.1, 2.0, 4.8),
  one("rate", TRUE, 1.4, 0.9, 2.2), one("risk", FALSE, 12, 7, 20))
published <- c(
  '{"scale": "risk", "estimate": 3.9, "lower": 1.8, "upper": 8.7, "e_value": 7.26, "limit": 3.0}',
  '{"scale": "risk", "estimate": 0.8, "lower": 0.71, "upper": 0.91, "e_value": 1.8, "limit": 1.4}')
cat(sprintf('{"R": "%s",\n"cases": [\n%s],\n"published": [\n%s]}\n', R.version.string, paste(cases, collapse = ",\n"), paste(published, collapse = ",\n")))
