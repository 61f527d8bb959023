# Densities of preference scores as CohortMethod makes them: stats::density of R 4.2.2, bandwidth nrd0.
n <- 400
scores <- list(target = qbeta((1:n - 0.5) / n, 3, 2), comparator = qbeta((1:n - 0.5) / n, 2, 4))
found <- lapply(scores, density, from = 0, to = 1, n = 100)
write.csv(
  data.frame(score = found$target$x, target = found$target$y, comparator = found$comparator$y),
  "density.csv", row.names = FALSE
)
