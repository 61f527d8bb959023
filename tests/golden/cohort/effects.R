# Models of adjusted cohorts that rhc_cohort.R and tiny.R leave out: clusters, covariates, further causes, censoring by group.
# Rscript effects.R [rhc.csv] (survival 3.5.3, cmprsk 2.2.11, glmnet 4.1.6, pROC 1.18.0, survey 4.1.1); writes effects.json.
suppressMessages({library(survival); library(cmprsk); library(glmnet); library(pROC); library(survey)}); source("cohort_lib.R")
a <- commandArgs(TRUE); ps <- read.csv("rhc_ps.csv"); sets <- read.csv("rhc_sets.csv"); cr <- read.csv("cr_cohort.csv"); cr$person <- (cr$id + 1) %/% 2; ps$person <- (ps$id + 1) %/% 2
p <- mean(ps$treat); ps$w <- ifelse(ps$treat == 1, p/ps$ps, (1-p)/(1-ps$ps)); cr$ato <- ifelse(cr$treat == 1, 1-cr$ps, cr$ps); cr$ate <- ifelse(cr$treat == 1, 1/cr$ps, 1/(1-cr$ps)); cr$one <- 1
set0 <- function(x) as.list(setNames(x, c("log_hr", "se_model", "se_robust", "loglik")))
cox <- function(f, d, w, cl, ties = "breslow") { d$w_ <- w; d$cl_ <- cl; m <- suppressWarnings(coxph(f, d, weights = w_, cluster = cl_, ties = ties, control = CC)); set0(c(coef(m)[[1]], sqrt(m$naive.var[1]), sqrt(m$var[1]), m$loglik[2])) }
# matched sets as strata: only a whole set is an independent piece of the score
matched <- lapply(setNames(nm = grep("^set_", names(sets), value = TRUE)), function(s) { k <- !is.na(sets[[s]]); cox(Surv(time, event) ~ treat + strata(set), cbind(ps[k, ], set = sets[[s]][k]), 1, sets[[s]][k])$se_robust })
adj <- Surv(time, event) ~ treat + sex_male + age65 + sepsis
adjusted <- list(efron = cox(adj, ps, ps$w, ps$person, "efron"), breslow = cox(adj, ps, ps$w, ps$person))
# Fine and Gray by definition: G(t-) by group, failures tied with a censoring still at risk of it, 0 after the last time of the group;
# the variance sums over clusters the score and what moves it through G (Fine and Gray 1999, section 3)
fg <- function(d, X, w, strata, g, v, cl) { X <- as.matrix(X); n <- nrow(X); q <- ncol(X); time <- d$time; status <- d$status
  G <- lapply(split(seq_len(n), g), function(i) { u <- sort(unique(time[i][status[i] == 0])); s <- cumprod(vapply(u, function(x) 1 - sum(v[i][time[i] == x & status[i] == 0])/sum(v[i][time[i] >= x]), 0)); top <- max(time[i]); function(t) ifelse(t > top, 0, c(1, s)[findInterval(t, u, left.open = TRUE) + 1]) })
  at <- function(t) { o <- as.numeric(time >= t); for (j in which(status == 2 & time < t)) { own <- G[[as.character(g[j])]]; o[j] <- if (own(time[j]) > 0) own(t)/own(time[j]) else 0 }; o }
  E <- unique(data.frame(s = strata, t = time)[status == 1, ]); R <- sapply(E$t, at)*w*outer(strata, E$s, "=="); D <- mapply(function(s, t) sum(w[status == 1 & strata == s & time == t]), E$s, E$t)
  k1 <- match(paste(strata, time), paste(E$s, E$t)); ev <- which(status == 1)
  eval <- function(b) { r <- exp(drop(X %*% b)); M <- R*r; S0 <- colSums(M); xb <- crossprod(M, X)/S0; I <- matrix(0, q, q); for (k in seq_along(D)) I <- I + D[k]*(crossprod(X*M[, k], X)/S0[k] - tcrossprod(xb[k, ]))
    list(U = colSums(w[ev]*(X[ev, , drop = FALSE] - xb[k1[ev], , drop = FALSE])), I = I, L = sum(w[ev]*log(r[ev])) - sum(D*log(S0)), M = M, xb = xb, h = D/S0) }
  b <- numeric(q); for (i in 1:50) { z <- eval(b); step <- solve(z$I, z$U); b <- b + step; if (max(abs(step)) < 1e-13) break }; z <- eval(b)
  A <- lapply(seq_len(q), function(j) outer(X[, j], z$xb[, j], "-")*t(t(z$M)*z$h)); psi <- -sapply(A, rowSums); psi[ev, ] <- psi[ev, ] + w[ev]*(X[ev, , drop = FALSE] - z$xb[k1[ev], , drop = FALSE])
  for (gg in unique(g)) { i <- g == gg; for (u in unique(time[i & status == 0])) { at_risk <- sum(v[i & time >= u]); now <- time == u & status == 0; dM <- v*i*(now - (time >= u)*sum(v[i & now])/at_risk)
    moved <- sapply(A, function(a) sum(a[i & status == 2 & time < u, E$t >= u])); psi <- psi + outer(dM, moved/at_risk) } }
  V <- solve(z$I); VR <- V %*% crossprod(rowsum(psi, cl)) %*% V; set0(c(b[1], sqrt(V[1]), sqrt(VR[1]), z$L)) }
all <- rep(1, nrow(cr)); x0 <- cr["treat"]; x3 <- cr[c("treat", "x1", "x2")]; k <- !is.na(cr$set); c2 <- crr(cr$time, cr$status, as.matrix(x3), gtol = 1e-12); own <- fg(cr, x3, all, all, all, all, cr$id); stopifnot(abs(own$log_hr - c2$coef[1]) < 1e-6, abs(own$se_robust - sqrt(c2$var[1])) < 1e-6)
fine_gray <- list(adjusted = own, matched_cluster_set = fg(cr[k, ], x0[k, , drop = FALSE], all[k], all[k], all[k], all[k], cr$set[k]), matched_censoring_by_arm = fg(cr[k, ], x0[k, , drop = FALSE], all[k], all[k], cr$treat[k], all[k], cr$set[k]),
  ato_adjusted_cluster_person = fg(cr, x3, cr$ato, all, all, all, cr$person), ate_censoring_weighted_by_arm = fg(cr, x0, cr$ate, all, cr$treat, cr$ate, cr$person),
  strata_censoring_by_stratum = fg(cr, x3, all, cr$stratum, cr$stratum, all, cr$person), competing_cause = fg(transform(cr, status = c(0, 2, 1)[status + 1]), x0, cr$ato, all, all, all, cr$person))
cr$ev <- as.integer(cr$status == 1); cr$ev2 <- as.integer(cr$status == 2)
second_cause <- list(ato_adjusted = cox(Surv(time, ev2) ~ treat + x1 + x2, cr, cr$ato, cr$person), matched = cox(Surv(time, ev2) ~ treat, cr[k, ], 1, cr$set[k]))
# proportional hazards against log time: cox.zph, and the same score with the spread between clusters for its variance
zph <- function(f, w, ties) { cr$w_ <<- w; cox.zph(coxph(f, cr, weights = w_, ties = ties, control = CC, robust = FALSE), transform = log, terms = FALSE, global = FALSE)$table[1, "p"] }
zph_robust <- function(w, cl, ties, x = character(0), d = cr) { d$w_ <- w; d$cl_ <- cl; xs <- c("treat", x); m <- coxph(reformulate(xs, "Surv(time, ev)"), d, weights = w_, ties = ties, control = CC, robust = FALSE)
  L <- survSplit(Surv(time, ev) ~ ., d, cut = sort(unique(d$time[d$ev == 1])), start = "begin", end = "time"); L$g <- log(L$time)*L$treat
  z <- coxph(reformulate(c(xs, "g"), "Surv(begin, time, ev)"), L, weights = w_, ties = ties, init = c(coef(m), 0), control = coxph.control(iter.max = 0, timefix = FALSE), robust = FALSE)
  u <- rowsum(residuals(z, "score")*L$w_, L$cl_); q <- length(xs); I <- solve(z$var); e <- drop(u[, q + 1] - u[, 1:q, drop = FALSE] %*% solve(I[1:q, 1:q], I[1:q, q + 1])); pchisq(sum(e)^2/sum(e^2), 1, lower.tail = FALSE) }
proportional <- list(crude = zph(Surv(time, ev) ~ treat, 1, "breslow"), strata = zph(Surv(time, ev) ~ treat + strata(stratum), 1, "breslow"), ate = zph_robust(cr$ate, cr$id, "breslow"), ate_persons_adjusted_efron = zph_robust(cr$ate, cr$person, "efron", c("x1", "x2")), matched = zph_robust(rep(1, sum(k)), cr$set[k], "breslow", d = cr[k, ]))
at <- c(30, 90, 180, 270)
curves <- lapply(list(target = 1, comparator = 0), function(a) { d <- cr[cr$treat == a, ]; z <- summary(survfit(Surv(time, factor(status, 0:2)) ~ 1, d, weights = ato, id = id, conf.type = "log-log"), times = at); lapply(list(cause1 = 2, cause2 = 3), function(j) list(se = z$std.err[, j], lower = z$lower[, j], upper = z$upper[, j])) })
rates <- lapply(list(target = 1, comparator = 0), function(a) { d <- cr[cr$treat == a, ]; n <- length(unique(d$person)); s <- svyratio(~ev, ~time, svydesign(ids = ~person, weights = ~ato, data = d)); r <- coef(s)[[1]]; e <- sqrt(vcov(s)[1]*(n-1)/n)/r; x <- poisson.test(sum(d$ev), sum(d$time)); list(rate = 365250*c(x$estimate[[1]], x$conf.int), weighted = 365250*r*exp(c(0, -1, 1)*qnorm(.975)*e)) })
roc0 <- roc(ps$treat, ps$ps, direction = "<", quiet = TRUE)
# the score's model: glmnet minimises -loglik/n + lambda |b|
d <- read.csv(if (length(a)) a[1] else "rhc.csv"); X <- as.matrix(d[, setdiff(names(d), c("id", "time", "event", "swang1"))]); t <- d$swang1; n <- length(t); fold <- d$id %% 5; glmnet.control(fdev = 0); grid <- max(abs(crossprod(X, t - mean(t))))*exp(1e-4)*1e-4^(0:19/19)   # from a little above the largest score on
fit <- function(i, l1) glmnet(X[i, ], t[i], "binomial", lambda = l1/sum(i), standardize = FALSE, thresh = 1e-20, maxit = 1e7); m <- fit(rep(TRUE, n), c(320, 160, 80, 40, 20))
held_out <- sapply(0:4, function(f) { o <- fold == f; e <- predict(fit(!o, grid), X[o, ]); colSums(t[o]*e - log1p(exp(e))) })
J(list(versions = lapply(setNames(nm = c("survival", "cmprsk", "glmnet", "pROC", "survey")), function(x) as.character(packageVersion(x))), note = "person = (id + 1) %/% 2; fold = id %% 5",
  matched_as_strata_se_robust_cluster = matched, adjusted_iptw_ate_stab_cluster_person = adjusted, fine_gray = fine_gray, second_cause = second_cause, proportionality_log_p = proportional, incidence_ato = c(list(time = at), curves), rates_ato = rates,
  auc = list(auc = as.numeric(auc(roc0)), interval = as.numeric(ci.auc(roc0, method = "delong"))[c(1, 3)]), propensity_l1 = list(grid = grid, nonzero = m$df[5], intercept = m$a0[[5]], coef_l1_20 = as.list(m$beta[, 5]), loglik_l1_20 = { e <- drop(m$a0[5] + X %*% m$beta[, 5]); sum(t*e - log1p(exp(e))) }, held_out = held_out)), "effects.json")
