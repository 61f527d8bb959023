"""Results of a study: the rows of their tables, and the folder that holds them."""
