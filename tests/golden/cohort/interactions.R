# Effects that differ by sex and by sepsis, from the score, sets and strata of the other files.
# Rscript interactions.R (survival 3.5.3, cmprsk 2.2.11); writes interactions.json.
suppressMessages({library(survival); library(cmprsk)})
json <- function(x) if (is.list(x)) paste0("{", paste0('"', names(x), '": ', vapply(x, json, ""), collapse = ",\n"), "}") else if (is.character(x)) paste0('"', x, '"') else
  paste0(if (length(x) > 1) "[", paste(format(x, digits = 15, trim = TRUE), collapse = ", "), if (length(x) > 1) "]")
d <- read.csv("rhc_ps.csv"); d$set <- read.csv("rhc_sets.csv")$set_r1; d$stratum <- read.csv("rhc_strata.csv")$s5_all
p <- mean(d$treat); d$w <- ifelse(d$treat == 1, p/d$ps, (1-p)/(1-d$ps))
one <- function(f) { b <- coef(f); list(coef = as.list(b), se_model = as.list(setNames(sqrt(diag(f[["naive.var"]])), names(b))),
  se_robust = as.list(setNames(sqrt(diag(f$var)), names(b))), cov_robust_treat_sex = f$var[1, which(names(b) == "treat:sex_male")], loglik = f$loglik) }
ctl <- coxph.control(eps = 1e-13, toler.chol = 1e-14, iter.max = 100)
m <- Surv(time, event) ~ treat * sex_male + treat * sepsis
fit <- function(f, data, w = rep(1, nrow(data)), id = seq_len(nrow(data))) { data$w_ <- w; data$id_ <- id
  one(coxph(f, data = data, weights = w_, cluster = id_, ties = "breslow", control = ctl)) }
e <- d[!is.na(d$set), ]
lik <- function(b, f0) coxph(f0, data = transform(d, off = treat * sex_male * b), ties = "breslow", control = ctl)$loglik[2]
full <- coxph(m, data = d, ties = "breslow", control = ctl); q <- qchisq(.95, 1)/2
f0 <- Surv(time, event) ~ treat + sex_male + sepsis + treat:sepsis + offset(off)
end <- function(s) uniroot(function(b) full$loglik[2] - lik(b, f0) - q, coef(full)["treat:sex_male"] + s*c(0, .4), tol = 1e-12)$root
cr <- read.csv("cr_cohort.csv")
g <- crr(cr$time, cr$status, cbind(treat = cr$treat, x1 = cr$x1, inter = cr$treat*cr$x1), gtol = 1e-12)
writeLines(json(list(versions = list(R = R.version.string, survival = as.character(packageVersion("survival")), cmprsk = as.character(packageVersion("cmprsk"))),
  plain = fit(m, d), profile_treat_sex = list(lower = end(-1), upper = end(1)),
  matched_r1_cluster_set = fit(m, e, id = e$set), iptw_ate_stab = fit(m, d, w = d$w),
  strata5 = fit(Surv(time, event) ~ treat * sex_male + treat * sepsis + strata(stratum), d),
  fine_gray_crr = list(coef = as.list(g$coef), se = as.list(setNames(sqrt(diag(g$var)), names(g$coef))), loglik = g$loglik))),
  "interactions.json")
