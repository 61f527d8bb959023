# Fine and Gray's model with late entry by R's survival: finegray() of start-stop outcomes, then a
# weighted coxph. Run in this folder; writes mgus2_age.csv, pbcseq.csv and finegray_late.json.
suppressMessages(library(survival))
num <- function(x) if (length(x) == 1) sprintf("%.17g", x) else paste0("[", paste(sprintf("%.17g", x), collapse = ","), "]")
mat <- function(m) paste0("[", paste(apply(m, 1, num), collapse = ","), "]")
obj <- function(x) paste0("{", paste(sprintf('"%s":%s', names(x), unlist(x)), collapse = ",\n "), "}")
fit <- function(data, covariates, etype, weights = NULL, strata = NULL) {
  data$row <- seq_len(nrow(data))
  if (is.null(weights)) data$case <- 1 else data$case <- data[[weights]]
  data$state <- factor(data$event, 0:2, c("censored", "1", "2"))
  right <- if (is.null(strata)) "." else paste(". + strata(", strata, ")")
  # strata() leaves the frame: a copy stays as a covariate
  if (!is.null(strata)) data$copy <- data[[strata]]
  wide <- finegray(as.formula(paste("Surv(start, stop, state) ~", right)), data = data, id = id,
    weights = case, etype = etype)
  more <- if (is.null(strata)) "" else "+ strata(copy)"
  f <- coxph(as.formula(paste("Surv(fgstart, fgstop, fgstatus) ~", paste(covariates, collapse = "+"), more)),
    data = wide, weights = fgwt, cluster = id, ties = "breslow",
    control = coxph.control(eps = 1e-13, iter.max = 100, toler.chol = 1e-15))
  times <- sort(unique(wide$fgstop[wide$fgstatus == 1]))
  at <- unique(times[round(seq(1, length(times), length.out = 12))])
  sizes <- sapply(at, function(t) sum(wide$fgwt[wide$fgstart < t & wide$fgstop >= t]))
  out <- list(n = num(nrow(data)), n_expanded = num(nrow(wide)), coef = num(unname(coef(f))),
    loglik_null = num(f$loglik[1]), loglik = num(f$loglik[2]), vcov_naive = mat(f$naive.var),
    vcov_robust = mat(f$var), times = num(at), sizes = num(sizes),
    largest_weight = num(max(wide$fgwt / wide$case)))
  if (is.null(strata)) {
    h <- basehaz(f, centered = FALSE)
    out$cumulative_hazard <- num(h$hazard[match(at, h$time)])
  }
  obj(out)
}
# Age as the time scale, in months; people enter at the age of their diagnosis, but not before 50.
d <- mgus2
d$time <- ifelse(d$pstat == 0, d$futime, d$ptime)
d$event <- ifelse(d$pstat == 0, 2 * d$death, 1)
d$male <- as.integer(d$sex == "M")
d$start <- pmax(12 * d$age, 600)
d$stop <- 12 * d$age + d$time
d <- d[complete.cases(d[, c("hgb", "mspike")]) & d$stop > d$start, ]
set.seed(3)
d$weight <- sample(c(0.5, 1, 2, 3), nrow(d), TRUE)
d <- d[, c("id", "start", "stop", "event", "male", "hgb", "mspike", "weight")]
write.csv(d, "mgus2_age.csv", row.names = FALSE)
# Visits of pbcseq: covariates change, transplantation (1) competes with death (2). Followed from a
# day drawn at random on, so that those who die before it are missing.
p <- pbcseq[order(pbcseq$id, pbcseq$day), c("id", "futime", "status", "age", "day", "bili", "albumin")]
set.seed(5)
entry <- floor(runif(max(p$id), 0, 1500))
p$start <- p$day
p$stop <- ave(p$day, p$id, FUN = function(x) c(x[-1], NA))
last <- is.na(p$stop)
p$stop[last] <- p$futime[last]
p$event <- ifelse(last, p$status, 0)
p$start <- pmax(p$start, entry[p$id])
p <- p[p$stop > p$start, ]
p$log_bili <- log(p$bili)
p <- p[, c("id", "start", "stop", "event", "age", "log_bili", "albumin")]
write.csv(p, "pbcseq.csv", row.names = FALSE)
x <- c("male", "hgb", "mspike")
z <- c("age", "log_bili", "albumin")
write(obj(list(
  R = sprintf('"%s"', R.version.string), survival = sprintf('"%s"', packageVersion("survival")),
  mgus2_1 = fit(d, x, "1"), mgus2_2 = fit(d, x, "2"), mgus2_1_weighted = fit(d, x, "1", "weight"),
  mgus2_1_strata = fit(d, x[-1], "1", strata = "male"),
  pbcseq_2 = fit(p, z, "2"), pbcseq_1 = fit(p, z, "1"))), "finegray_late.json")
