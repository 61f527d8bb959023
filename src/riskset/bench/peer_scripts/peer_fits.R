# Fits of R packages, in a process of their own: Rscript peer_fits.R TOOL FOLDER
#
# FOLDER holds task.json and the arrays of peers.hand_over; it gets coef.bin and answer.json: seconds
# to convert the data and to work, and the memory at the peak beyond that before, in MiB.
# `--versions` prints the packages that are installed. Every tool gets the penalty on its own scale.
# A task with a "value" asks for something else than a fit: see `values`.

packages <- c("glmnet", "survival", "fastcmprsk", "Cyclops")

memory <- function(field) {
  if (!file.exists("/proc/self/status")) return(NA)
  line <- grep(paste0("^", field), readLines("/proc/self/status"), value = TRUE)
  as.numeric(gsub("[^0-9]", "", line)) / 1024
}

number <- function(text, name) {
  # A flat JSON object of numbers, which needs no package; NA if it has no such name.
  pattern <- paste0('.*"', name, '": *([-+.eE0-9]+).*')
  if (grepl(pattern, text)) as.numeric(sub(pattern, "\\1", text)) else NA
}

read_task <- function(folder) {
  text <- paste(readLines(file.path(folder, "task.json"), warn = FALSE), collapse = " ")
  get <- function(name, what, n, size) {
    readBin(file.path(folder, paste0(name, ".bin")), what, n, size = size)
  }
  n <- number(text, "n_rows")
  p <- number(text, "n_columns")
  is_dense <- !is.na(number(text, "is_dense"))
  indptr <- if (is_dense) 0 else get("indptr", "double", p + 1, 8)
  strengths <- number(text, "n_strengths")
  l1 <- number(text, "l1")
  l2 <- number(text, "l2")
  strength <- l1 + if (is.na(l2)) 0 else l2
  has <- function(name) !is.na(number(text, name))
  list(
    n = n, p = p, l1 = l1, strength = strength, l1_ratio = if (strength > 0) l1 / strength else 1,
    threads = number(text, "threads"), ties = if (has("efron")) "efron" else "breslow",
    entry = if (has("late")) get("entry", "double", n, 8), is_robust = has("robust"),
    x = if (is_dense) matrix(get("x", "double", n * p, 8), n, p),
    strengths = if (!is.na(strengths)) get("strengths", "double", strengths, 8),
    has_default_tolerance = !is.na(number(text, "has_default_tolerance")),
    folds = number(text, "folds"), repeats = number(text, "repeats"), seed = number(text, "seed"),
    is_finegray = grepl('"finegray"', text),
    time = get("time", "double", n, 8), event = get("event", "integer", n, 4),
    indptr = indptr, indices = if (!is_dense) get("indices", "integer", indptr[p + 1], 4)
  )
}

followed <- function(task) {
  event <- as.integer(task$event == 1)
  if (is.null(task$entry)) survival::Surv(task$time, event) else
    survival::Surv(task$entry, task$time, event)
}

sparse <- function(task) {
  if (!is.null(task$x)) return(task$x)
  Matrix::sparseMatrix(
    i = task$indices, p = as.integer(task$indptr), x = 1, dims = c(task$n, task$p), index1 = FALSE
  )
}

dense <- function(task) {
  if (!is.null(task$x)) return(task$x)
  x <- matrix(0, task$n, task$p)
  column <- rep(seq_len(task$p), diff(task$indptr))
  x[cbind(task$indices + 1, column)] <- 1
  x
}

tools <- list(
  glmnet = function(task) {
    x <- sparse(task)
    y <- followed(task)
    tight <- if (!task$has_default_tolerance) 1e-12
    work <- function() {
      # A path that ends at the strength: glmnet is made for warm starts.
      end <- task$strength / task$n
      lambda <- end * exp(seq(log(100), 0, length.out = 20))
      if (!is.null(task$strengths)) lambda <- task$strengths / task$n
      fit <- glmnet::glmnet(x, y, family = "cox", standardize = FALSE, lambda = lambda,
                            alpha = task$l1_ratio, maxit = 1e6,
                            thresh = if (is.null(tight)) 1e-7 else tight)
      last <- ncol(fit$beta)
      as.numeric(fit$beta[, if (is.null(task$strengths)) last else seq_len(last)])
    }
    structure(work, tol = tight)
  },
  survival = function(task) {
    x <- dense(task)
    y <- followed(task)
    tight <- if (!task$has_default_tolerance) 1e-10
    control <- if (is.null(tight)) survival::coxph.control() else
      survival::coxph.control(eps = tight)
    work <- function() {
      if (task$is_robust) {
        fit <- survival::coxph(y ~ x, robust = TRUE, ties = task$ties, control = control)
        return(as.numeric(fit$coefficients))
      }
      solve <- if (is.null(task$entry)) survival::coxph.fit else survival::agreg.fit
      as.numeric(solve(x, y, NULL, NULL, NULL, control, NULL, task$ties,
                       rownames = NULL)$coefficients)
    }
    structure(work, tol = tight)
  },
  fastcmprsk = function(task) {
    x <- dense(task)
    function() {
      fit <- fastcmprsk::fastCrrp(
        fastcmprsk::Crisk(task$time, task$event) ~ x, penalty = "LASSO",
        lambda = task$l1 / task$n, standardize = FALSE, eps = 1e-8, max.iter = 10000
      )
      as.numeric(fit$coef)
    }
  },
  Cyclops = function(task) {
    kind <- if (task$is_finegray) "fgr" else "cox"
    y <- if (task$is_finegray) task$event else as.integer(task$event == 1)
    outcomes <- data.frame(rowId = seq_len(task$n), stratumId = 0, time = task$time, y = y)
    covariates <- data.frame(
      rowId = task$indices + 1, covariateId = rep(seq_len(task$p), diff(task$indptr)),
      covariateValue = 1
    )
    data <- Cyclops::convertToCyclopsData(outcomes, covariates, modelType = kind, quiet = TRUE,
                                          checkRowIds = FALSE)
    selects <- !is.na(task$folds)
    prior <- if (selects) {
      Cyclops::createPrior("laplace", useCrossValidation = TRUE)
    } else if (task$l1 > 0) {
      Cyclops::createPrior("laplace", variance = 2 / task$l1^2)
    } else {
      Cyclops::createPrior("none")
    }
    control <- if (selects) {
      Cyclops::createControl(
        cvType = "auto", fold = task$folds, cvRepetitions = task$repeats, seed = task$seed,
        threads = task$threads, startingVariance = 0.01, maxIterations = 1e5
      )
    } else {
      Cyclops::createControl(maxIterations = 1e5)
    }
    function() {
      fit <- Cyclops::fitCyclopsModel(data, prior = prior, control = control)
      found <- stats::coef(fit)
      coef <- numeric(task$p)
      coef[as.integer(names(found))] <- found
      if (selects) structure(coef, variance = fit$variance[1]) else coef
    }
  }
)

observed <- function(folder) {
  # Times and events, with what else a value needs.
  get <- function(name, what, size) {
    path <- file.path(folder, paste0(name, ".bin"))
    if (file.exists(path)) readBin(path, what, file.size(path) / size, size = size)
  }
  list(time = get("time", "double", 8), event = get("event", "integer", 4) == 1,
       score = get("score", "double", 8), times = get("times", "double", 8),
       code = get("event", "integer", 4), x = get("x", "double", 8),
       entry = get("entry", "double", 8), cuts = get("cuts", "double", 8),
       group = get("group", "integer", 4), strata = get("strata", "integer", 4),
       cluster = get("cluster", "integer", 4), case = get("case", "integer", 4),
       set = get("set", "integer", 4), record_id = get("record_id", "integer", 4),
       record_time = get("record_time", "double", 8),
       record_value = get("record_value", "double", 8))
}

covariates <- function(rows) as.data.frame(matrix(rows$x, length(rows$time)))

predicted <- function(rows) {
  # A Cox model, and the ten people for whom something is predicted.
  data <- covariates(rows)
  y <- survival::Surv(rows$time, rows$event)
  list(fit = survival::coxph(y ~ ., data, ties = "breslow"), new = data[seq_len(10), ])
}

middle <- function(curves, times) {
  # Estimate and limits of the first curve at the third time.
  found <- summary(curves, times)
  vapply(found[c("surv", "lower", "upper")], function(part) as.matrix(part)[3, 1], 0)
}

tested <- function(found) c(found$chisq, stats::pchisq(found$chisq, length(found$n) - 1,
                                                       lower.tail = FALSE))

values <- list(
  concordance = function(rows) {
    y <- survival::Surv(rows$time, rows$event)
    function() survival::concordance(y ~ rows$score, reverse = TRUE)$concordance
  },
  `kaplan-meier` = function(rows) {
    y <- survival::Surv(rows$time, rows$event)
    function() summary(survival::survfit(y ~ 1, conf.type = "log-log"), rows$times)$surv
  },
  `cox-interval` = function(rows) {
    known <- predicted(rows)
    function() middle(survival::survfit(known$fit, known$new), rows$times)
  },
  quantile = function(rows) {
    known <- predicted(rows)
    function() vapply(stats::quantile(survival::survfit(known$fit, known$new), 0.5),
                      function(part) as.numeric(part)[1], 0)
  },
  mean = function(rows) {
    y <- survival::Surv(rows$time, rows$event)
    function() {
      found <- summary(survival::survfit(y ~ rows$group), rmean = max(rows$times))$table
      as.numeric(t(found[, c("rmean", "se(rmean)")]))
    }
  },
  logrank = function(rows) {
    y <- survival::Surv(rows$time, rows$event)
    function() tested(survival::survdiff(y ~ rows$group))
  },
  `logrank-strata` = function(rows) {
    y <- survival::Surv(rows$time, rows$event)
    strata <- survival::strata
    function() {
      found <- survival::survdiff(y ~ rows$group + strata(rows$strata))
      found$n <- unique(rows$group)
      tested(found)
    }
  },
  `curve-clusters` = function(rows) {
    y <- survival::Surv(rows$time, rows$event)
    cluster <- rows$cluster
    function() middle(survival::survfit(y ~ 1, cluster = cluster), rows$times)
  },
  split = function(rows) {
    data <- data.frame(time = rows$time, event = rows$event)
    Surv <- survival::Surv
    function() nrow(survival::survSplit(Surv(time, event) ~ ., data, cut = rows$cuts))
  },
  merge = function(rows) {
    people <- data.frame(id = seq_along(rows$time) - 1L, time = rows$time, event = rows$event)
    records <- data.frame(id = rows$record_id, time = rows$record_time, value = rows$record_value)
    function() {
      base <- survival::tmerge(people, people, id = id, died = event(time, event))
      nrow(survival::tmerge(base, records, id = id, value = tdc(time, value)))
    }
  },
  `finegray-late` = function(rows) {
    x <- covariates(rows)
    data <- cbind(x, entry = rows$entry, time = rows$time, status = factor(rows$code),
                  id = seq_along(rows$time))
    Surv <- survival::Surv
    terms <- paste(names(x), collapse = " + ")
    before <- stats::as.formula(paste("Surv(entry, time, status) ~", terms))
    after <- stats::as.formula(paste("Surv(fgstart, fgstop, fgstatus) ~", terms))
    function() {
      weighted <- survival::finegray(before, data, etype = "1", id = id)
      stats::coef(survival::coxph(after, weighted, weights = fgwt, ties = "breslow"))[1:2]
    }
  },
  `exact-ties` = function(rows) {
    x <- covariates(rows)
    data <- cbind(x, case = rows$case, set = rows$set, one = 1)
    Surv <- survival::Surv
    strata <- survival::strata
    terms <- paste(names(x), collapse = " + ")
    model <- stats::as.formula(paste("Surv(one, case) ~ strata(set) +", terms))
    function() stats::coef(survival::coxph(model, data, ties = "exact"))[1:2]
  },
  `frailty-gamma` = function(rows) {
    x <- covariates(rows)
    data <- cbind(x, time = rows$time, event = rows$event, hospital = rows$cluster)
    Surv <- survival::Surv
    frailty <- survival::frailty
    terms <- paste(names(x), collapse = " + ")
    right <- paste(terms, "+ frailty(hospital, eps = 1e-10)")
    model <- stats::as.formula(paste("Surv(time, event) ~", right))
    function() {
      control <- survival::coxph.control(outer.max = 50)
      fit <- survival::coxph(model, data, ties = "breslow", control = control)
      tried <- fit$history[[1]]$history
      c(stats::coef(fit)[1:2], tried[nrow(tried), 1])
    }
  }
)

main <- function(arguments) {
  if (arguments[1] == "--versions") {
    found <- Filter(function(name) nzchar(system.file(package = name)), packages)
    said <- vapply(found, function(name) {
      sprintf('"%s": "%s"', name, as.character(utils::packageVersion(name)))
    }, "")
    cat("{", paste(said, collapse = ", "), "}\n", sep = "")
    return(invisible())
  }
  folder <- arguments[2]
  loadNamespace(arguments[1])
  text <- paste(readLines(file.path(folder, "task.json"), warn = FALSE), collapse = " ")
  asks <- grepl('"value"', text)
  value <- if (asks) sub('.*"value": *"([^"]+)".*', "\\1", text)
  task <- if (asks) observed(folder) else read_task(folder)
  before <- memory("VmHWM")
  start <- proc.time()[["elapsed"]]
  work <- if (asks) values[[value]](task) else tools[[arguments[1]]](task)
  ready <- proc.time()
  coef <- work()
  took <- proc.time() - ready
  writeBin(as.numeric(coef), file.path(folder, "coef.bin"))
  variance <- attr(coef, "variance")
  tol <- attr(work, "tol")
  cat(sprintf(
    '{"prepare": %.6f, "seconds": %.6f, "cpu": %.6f, "peak_mb": %s%s%s}',
    ready[["elapsed"]] - start, took[["elapsed"]], took[["user.self"]] + took[["sys.self"]],
    if (is.na(before)) "null" else sprintf("%.3f", memory("VmHWM") - before),
    if (is.null(variance)) "" else sprintf(', "variance": %.17g', variance),
    if (is.null(tol)) "" else sprintf(', "tol": %.17g', tol)
  ), file = file.path(folder, "answer.json"))
}

main(commandArgs(trailingOnly = TRUE))
