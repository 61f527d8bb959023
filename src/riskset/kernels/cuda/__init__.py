"""The kernels of a GPU, in CUDA C++, and how they are compiled and launched.

A topic has a source ``topic.cuh`` and its specification ``topic_ref.py``: the same names, the same
arguments in the same order, in plain NumPy. Every kernel serves all replicates at once, but for the
last two topics, which take one coordinate of one fit at a time. What belongs to rows, groups or
entries has the replicate, here called *lane*, as its fastest index, ``(n, R)``: one row of lanes is
read together, and a lane's bits depend on its own numbers alone. What belongs to columns of
the design has it as its slowest, ``(R, q)``: a block of threads works on one lane.

=================  =====================================================================
`risk_sets`        sums over nested risk sets, hazards, residuals; Fine and Gray's tails
`late_entry`       the same for rows that enter late
`matrix`           products with the design
`sums`             sums and extremes over rows, lane by lane
`quadratic`        the penalised quadratic of a Newton step
`lane_steps`       the optimality conditions, steps and secant pairs
`gram`             sums of squares of a sample of rows
`fused`            derivatives of one coordinate: scan, transformation and reduction in one
`coordinate`       the entries of one coordinate and its step
=================  =====================================================================

`signatures` reads the arguments of a kernel from its source, `launch` checks and launches,
`scan_plan` cuts risk sets into pieces of even size; `device` runs kernels on a GPU. Anything else
that has the methods of a `Backend` can run them too: the tests have one that needs no GPU.
"""
