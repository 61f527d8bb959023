# Restricted means and times lost, from R's survfit (survival 3.5.3; R 4.2.2).
# Rscript make_restricted_mean.R; reads the CSV files beside it, writes restricted_mean.json.
#
# rmean and its standard error are those that print.survfit shows. Robust ones are the areas under the influence of each
# row (or cluster) on the curve: the squares of the influence add up to survfit's own variance, which is checked below.
suppressMessages(library(survival))
json <- function(x) if (is.list(x) && !is.null(names(x))) paste0("{", paste0('"', names(x), '": ', vapply(x, json, ""), collapse = ",\n"), "}") else if (is.list(x)) paste0("[", paste(vapply(x, json, ""), collapse = ",\n"), "]") else
  if (is.character(x)) paste0('"', x, '"') else paste0(if (length(x) > 1) "[", paste(format(x, digits = 15, trim = TRUE), collapse = ", "), if (length(x) > 1) "]")
out <- list(versions = list(R = paste(R.version$major, R.version$minor, sep = "."), survival = as.character(packageVersion("survival"))))

# ---- one kind of event: survmean, with Greenwood's variance
means <- function(fit, taus) lapply(taus, function(tau) { m <- survival:::survmean(fit, rmean = tau)$matrix
  if (is.null(dim(m))) m <- t(m); list(time = tau, mean = unname(m[, "rmean"]), se = unname(m[, "se(rmean)"])) })
lung <- read.csv("lung.csv"); heart <- read.csv("heart.csv"); veteran <- read.csv("veteran.csv")
out$lung_by_sex <- means(survfit(Surv(time, event) ~ sex, lung), c(100, 365, 365.25, 700))
out$lung_counts <- means(survfit(Surv(time, event) ~ sex, lung, weights = 1 + inst %% 3), c(365, 700))
out$heart_late_entry <- means(survfit(Surv(start, stop, event) ~ transplant, heart), c(30, 365, 1000))

# ---- areas under the influence of rows
widths <- function(time, tau) { t <- c(time, Inf); pmax(pmin(t[-1], tau) - t[-length(t)], 0) }   # of the steps that begin at `time`
area_influence <- function(fit, tau) drop(fit$influence.surv %*% widths(fit$time, tau))   # weights are in it
one <- function(d, w, cl, tau) { d$w_ <- w; d$cl_ <- cl
  f <- survfit(Surv(time, ev) ~ 1, d, weights = w_, cluster = cl_, robust = TRUE, influence = 1)
  s <- summary(f, times = f$time)$std.err; v <- sqrt(colSums(f$influence.surv^2)); stopifnot(max(abs(s - v), na.rm = TRUE) < 1e-12)
  list(mean = tau - sum(widths(f$time, tau) * (1 - f$surv)), influence = area_influence(f, tau), cluster = sort(unique(cl))) }
d <- read.csv("cohort/cr_cohort.csv", na.strings = "NA"); d$ev <- as.integer(d$status > 0)
d$ate <- ifelse(d$treat == 1, 1/d$ps, 1/(1-d$ps)); d$person <- (d$id + 1) %/% 2
taus <- c(60, 200)
arms <- function(f, taus) lapply(taus, function(tau) c(list(time = tau), lapply(list(target = 1, comparator = 0), function(a) { z <- f(d[d$treat == a, ], tau); list(mean = z$mean, se = sqrt(sum(z$influence^2))) })))
out$any_event_ate <- arms(function(e, tau) one(e, e$ate, e$id, tau), taus)
out$any_event_ate_cluster_person <- arms(function(e, tau) one(e, e$ate, e$person, tau), taus)

# ---- several causes: the influence of survfit's multi-state curves, summed over both arms by cluster
states <- function(e, w, cl, tau) { e$w_ <- w
  f <- survfit(Surv(time, factor(status, 0:2)) ~ 1, e, weights = w_, id = id, influence = TRUE); I <- f$influence.pstate[, -1, ] * w   # rows by id; the first time is 0
  stopifnot(!is.unsorted(e$id), max(abs(sqrt(apply(I^2, 2:3, sum)) - f$std.err), na.rm = TRUE) < 1e-12)
  k <- widths(f$time, tau); lost <- colSums(k * f$pstate[, 2:3])
  moved <- rowsum(apply(I[, , 2:3], c(1, 3), function(x) sum(x * k)), cl)
  list(lost = lost, influence = cbind(-rowSums(moved), moved), mean = tau - sum(lost)) }
compare <- function(k, w, cl, tau) { z <- lapply(c(1, 0), function(a) { i <- k & d$treat == a; states(d[i, ], w[i], cl[i], tau) })
  all <- sort(unique(cl[k])); I <- lapply(z, function(one) { m <- matrix(0, length(all), 3); m[match(rownames(one$influence), all), ] <- one$influence; m })
  v <- lapply(z, function(one) c(one$mean, one$lost)); dif <- sqrt(colSums((I[[1]] - I[[2]])^2))
  ratio <- sqrt(colSums((t(t(I[[1]])/v[[1]]) - t(t(I[[2]])/v[[2]]))^2))
  list(time = tau, target = unname(v[[1]]), target_se = sqrt(colSums(I[[1]]^2)), comparator = unname(v[[2]]), comparator_se = sqrt(colSums(I[[2]]^2)), difference_se = dif, log_ratio_se = ratio) }
all <- rep(TRUE, nrow(d)); in_set <- !is.na(d$set)
out$competing <- list(crude = lapply(taus, function(tau) compare(all, rep(1, nrow(d)), d$id, tau)), ate = lapply(taus, function(tau) compare(all, d$ate, d$id, tau)),
  ate_cluster_person = lapply(taus, function(tau) compare(all, d$ate, d$person, tau)), matched = lapply(taus, function(tau) compare(in_set, rep(1, nrow(d)), d$set, tau)))

# ---- strata: each mean, and the mean over the strata with the people of both arms, which is random, too
strata <- sort(unique(d$stratum)); n <- nrow(d)
out$standardized <- lapply(taus, function(tau) { psi <- matrix(0, n, 2); mu <- matrix(0, length(strata), 2); share <- as.vector(table(d$stratum)) / n
  for (j in seq_along(strata)) for (a in 1:2) { i <- which(d$stratum == strata[j] & d$treat == 2 - a); z <- one(d[i, ], rep(1, length(i)), d$id[i], tau); mu[j, a] <- z$mean; psi[i, a] <- share[j] * z$influence }
  total <- colSums(share * mu); for (a in 1:2) psi[, a] <- psi[, a] + (mu[match(d$stratum, strata), a] - total[a]) / n
  list(time = tau, mean = total, se = sqrt(colSums(psi^2)), difference_se = sqrt(sum((psi[, 1] - psi[, 2])^2))) })
writeLines(json(out), "restricted_mean.json")
