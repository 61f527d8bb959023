# Table 1 of the right-heart-catheterisation cohort, by base R alone: Rscript make_table1.R rhc.csv table1.csv
# rhc.csv is riskset/datasets/rhc_raw.parquet written as CSV, in its order of rows.
args <- commandArgs(TRUE)
d <- read.csv(args[1], stringsAsFactors = FALSE)
out <- data.frame(name = character(), value = numeric())
put <- function(name, value) out[nrow(out) + 1, ] <<- list(name, value)
i <- seq_len(nrow(d)) - 1
d$num_alb1[i %% 10 == 3] <- NA
target <- d$fac_swang1 == "RHC"
score <- 0.2 + 0.1 * (i %% 7)
weights <- list(before = rep(1, nrow(d)), after = ifelse(target, 1 / score, 1 / (1 - score)))

# Type 2 of stats::quantile, and its weighted form: the smallest value at which the weighted
# distribution function reaches p, or the mean with the next one where it is p.
weighted_quantile <- function(x, w, p) {
  f <- tapply(w, x, sum); v <- as.numeric(names(f)); f <- cumsum(f) / sum(w)
  k <- which(f >= p - 1e-12)[1]
  if (abs(f[k] - p) < 1e-12) (v[k] + v[k + 1]) / 2 else v[k]
}
moments <- function(x, w) {
  u <- w / sum(w); m <- sum(u * x)
  c(m, sqrt(sum(u * (x - m)^2) / (1 - sum(u^2))))
}
for (side in names(weights)) {
  w <- weights[[side]]
  for (arm in c("target", "comparator")) {
    own <- if (arm == "target") target else !target
    put(paste(side, arm, "n"), sum(own))
    put(paste(side, arm, "effective"), sum(w[own])^2 / sum(w[own]^2))
    for (x in c("num_age", "num_alb1", "num_crea1")) {
      v <- d[[x]][own]; wv <- w[own][!is.na(v)]; v <- v[!is.na(v)]
      m <- if (side == "before") c(mean(v), sd(v)) else moments(v, wv)
      put(paste(side, arm, x, "mean"), m[1]); put(paste(side, arm, x, "sd"), m[2])
      q <- if (side == "before") quantile(v, c(.25, .5, .75), type = 2, names = FALSE)
           else sapply(c(.25, .5, .75), function(p) weighted_quantile(v, wv, p))
      for (k in 1:3) put(paste0(side, " ", arm, " ", x, " q", k), q[k])
    }
    for (x in c("fac_cat1", "fac_race", "fac_sex", "fac_amihx")) {
      u <- w[own] / sum(w[own])
      for (level in sort(unique(d[[x]]))) {
        put(paste(side, arm, x, level, "count"), sum(d[[x]][own] == level))
        put(paste(side, arm, x, level, "share"), sum(u * (d[[x]][own] == level)))
      }
    }
    put(paste(side, arm, "num_alb1 missing"), sum(w[own] * is.na(d$num_alb1[own])) / sum(w[own]))
  }
}
# Differences: relative to the standard deviations before the adjustment.
for (side in names(weights)) {
  w <- weights[[side]]
  for (x in c("num_age", "num_alb1", "num_crea1", "fac_amihx")) {
    v <- d[[x]]; known <- !is.na(v)
    m <- sapply(list(target & known, !target & known), function(s) moments(v[s], w[s])[1])
    s <- sapply(list(target & known, !target & known), function(s) var(v[s]))
    put(paste(side, x, "smd"), (m[1] - m[2]) / sqrt(mean(s)))
  }
  for (x in c("fac_cat1", "fac_race", "fac_sex")) {
    z <- model.matrix(~ factor(d[[x]]))[, -1, drop = FALSE]
    gap <- apply(z[target, , drop = FALSE], 2, weighted.mean, w[target]) -
      apply(z[!target, , drop = FALSE], 2, weighted.mean, w[!target])
    s <- (cov(z[target, , drop = FALSE]) + cov(z[!target, , drop = FALSE])) / 2
    put(paste(side, x, "smd"), sqrt(drop(t(gap) %*% solve(s) %*% gap)))
  }
}
out$value <- sprintf("%.15g", out$value)
write.csv(out, args[2], row.names = FALSE)
