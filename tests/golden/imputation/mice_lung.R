# Multiple imputation of survival::lung by mice 3.15, and the pooling of Cox models by mice and mitml.
# Rscript mice_lung.R   (writes lung.csv, completed.csv and mice_lung.json)
suppressMessages({library(survival); library(mice); library(mitml); library(jsonlite)})
d <- lung[, c("time", "status", "age", "sex", "ph.ecog", "wt.loss", "meal.cal")]
d$status <- d$status - 1
d$sex <- factor(c("male", "female")[d$sex])
d$ph.ecog <- factor(ifelse(is.na(d$ph.ecog), NA, pmin(d$ph.ecog, 2)), labels = c("zero", "one", "two"))
# Values of complete columns that depend on the outcome and on age are taken out.
set.seed(7)
d$sex[runif(nrow(d)) < plogis(-1.5 + d$status)] <- NA
d$ph.ecog[runif(nrow(d)) < plogis((d$age - 65) / 5 - 1)] <- NA
write.csv(d, "lung.csv", row.names = FALSE, na = "", quote = FALSE)
d$hazard <- nelsonaalen(d, time, status)
method <- c(time = "", status = "", age = "", sex = "logreg", ph.ecog = "polyreg", wt.loss = "pmm", meal.cal = "pmm", hazard = "")
predictors <- make.predictorMatrix(d); predictors[, "time"] <- 0
model <- quote(coxph(Surv(time, status) ~ age + sex + ph.ecog + wt.loss + meal.cal, ties = "efron"))
numbers <- function(f) {
  s <- summary(f); p <- f$pooled
  list(names = as.character(p$term), estimate = p$estimate, ubar = p$ubar, b = p$b, t = p$t, df = p$df, dfcom = p$dfcom[1],
       riv = p$riv, lambda = p$lambda, fmi = p$fmi, se = s$std.error, p = s$p.value,
       lower = summary(f, conf.int = TRUE)$`2.5 %`, upper = summary(f, conf.int = TRUE)$`97.5 %`)
}
few <- mice(d, m = 5, maxit = 10, method = method, predictorMatrix = predictors, seed = 1, printFlag = FALSE)
long <- complete(few, "long")
write.csv(long[, c(".imp", "time", "status", "age", "sex", "ph.ecog", "wt.loss", "meal.cal")], "completed.csv", row.names = FALSE, quote = FALSE)
fits <- eval(substitute(with(few, M), list(M = model)))
five <- numbers(pool(fits))
infinite <- numbers(pool(fits, dfcom = Inf))
of <- function(names, df.com) {
  fixed <- testConstraints(as.mitml.result(fits$analyses), constraints = names, method = "D1", df.com = df.com)
  as.list(setNames(fixed$test[1, 1:4], c("F", "df1", "df2", "p")))
}
two <- list(large = of(c("ph.ecogone", "ph.ecogtwo"), NULL),
            small = of(c("ph.ecogone", "ph.ecogtwo"), five$dfcom))
many <- mice(d, m = 200, maxit = 10, method = method, predictorMatrix = predictors, seed = 2, printFlag = FALSE)
several <- numbers(pool(eval(substitute(with(many, M), list(M = model)))))
write_json(list(versions = list(R = R.version.string, mice = as.character(packageVersion("mice")), mitml = as.character(packageVersion("mitml"))),
  hazard = with(survfit(Surv(time, status) ~ 1, d), cumhaz[match(d$time, time)]), pooled = five, pooled_large = infinite, d1 = two, many = several), "mice_lung.json", digits = NA, auto_unbox = TRUE, pretty = FALSE)
