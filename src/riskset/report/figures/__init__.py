"""The figures of the report: numbers and words in, a `Drawing` out; none knows what is hidden."""
