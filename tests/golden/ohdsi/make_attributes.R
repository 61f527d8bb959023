# Writes attributes-*.rds, the attributes of an object of CohortMethod as Andromeda saves them, with
# base R alone (R 4.2.2): Rscript make_attributes.R
attributes <- list(
  metaData = list(
    targetId = 1,
    comparatorId = 2,
    nestingCohortId = NULL,
    studyStartDate = "20100101",
    studyEndDate = "",
    outcomeIds = c(3, 4, 5),
    populationSize = 8L,
    cohortIds = c(1, 2),
    attrition = data.frame(
      description = c("Original cohorts", "First exp. only & 365 days of obs. prior"),
      targetPersons = c(6L, 4L),
      comparatorPersons = c(7L, 4L),
      targetExposures = c(8L, 4L),
      comparatorExposures = c(9L, 4L)
    ),
    sql = "SELECT 1;",
    call = quote(getDbCohortMethodData(connectionDetails = connectionDetails)),
    date = as.Date("2025-01-31")
  ),
  class = structure("CohortMethodData", package = "CohortMethod")
)
saveRDS(attributes, "attributes-3.rds")
saveRDS(attributes, "attributes-2.rds", version = 2)
saveRDS(attributes, "attributes-xz.rds", compress = "xz")
