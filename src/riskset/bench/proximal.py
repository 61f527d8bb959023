"""Accelerated proximal gradient descent, for comparison; the package does not use it.

Ko, Zhou, Zhou and Won fit Cox models by proximal gradient steps on GPUs, which the paper compares
with coordinate descent in words (section 2.9). Here it has Nesterov's momentum, a step from
backtracking, and restarts where the momentum points uphill, which is the form that is fast without
tuning; and the certificate of the other solvers.

References
----------
Beck and Teboulle (2009), SIAM Journal on Imaging Sciences 2, 183-202, doi:10.1137/080716542.
O'Donoghue and Candes (2015), Foundations of Computational Mathematics 15, 715-732,
doi:10.1007/s10208-013-9150-3. Ko, Zhou, Zhou and Won (2022), Statistical Science 37, 494-518,
doi:10.1214/21-STS835.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riskset._types import Features, Rows
from riskset.model.cox import Evaluation
from riskset.solve.optimality import Problem
from riskset.solve.prox_newton import Minimisation

__all__ = ["Accelerated"]

STEEPNESS_DECAY = 0.95
"""Of the steepness at each step, so that steps grow again where the surface is flatter."""
MAX_BACKTRACKS = 60
CERTIFICATE_RANGE = 4.0
"""The certificate, which costs a product, is asked for once a step is so near to it."""
MAX_IDLE = 200
"""Steps without any progress of the residual after which floating point has no more to give."""


@dataclass
class Accelerated(Minimisation):
    r"""A minimisation by steps :math:`\beta \leftarrow prox(z + (\nabla\ell(z) - l_2 z) / L)`.

    z is the last iterate plus momentum, the prox soft thresholding at :math:`l_1 / L`, and L the
    steepness: raised until the quadratic model with it lies above the objective at the new iterate.
    """

    unit: ClassVar[str] = "step"
    problem: Problem

    def solve(self) -> None:
        """Step until no column violates its condition."""
        before, eta_before = self.beta, self.eta
        steepness, momentum = self._first_steepness(), 1.0
        least, n_idle = np.inf, 0
        while self.n_iter < self.max_iter and not self.stalled:
            following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            ahead = (momentum - 1) / following
            z = np.where(self.allowed, self.beta + ahead * (self.beta - before), 0.0)
            eta = self.eta + ahead * (self.eta - eta_before)
            before, eta_before = self.beta, self.eta
            now, gradient = self._at(eta)
            steepness *= STEEPNESS_DECAY
            step, steepness = self._step(z, eta, now, gradient, steepness)
            self.n_iter += 1
            size = float((np.abs(step) / self.problem.spread).max(initial=0.0)) * steepness
            if float(step @ (self.beta - before)) < 0:
                following = 1.0
                before, eta_before = self.beta, self.eta
            momentum = following
            residual = size / self.problem.kkt_scale
            if residual <= CERTIFICATE_RANGE * self.tol:
                self.gradient = self._cross()
                residual = self._residual()
            if self.report:
                self.report(self.n_iter, residual)
            if residual <= self.tol:
                return
            n_idle = 0 if residual < least else n_idle + 1
            least = min(least, residual)
            self.stalled = n_idle > MAX_IDLE
        self.gradient = self._cross()

    def _at(self, eta: Rows) -> tuple[Evaluation, Features]:
        now = self.problem.loss.evaluate(eta)
        self.n_passes += 1
        return now, self.problem.design.cross(now.residual, runtime=self.problem.loss.runtime)

    def _cross(self) -> Features:
        return self.problem.design.cross(self.now.residual, runtime=self.problem.loss.runtime)

    def _first_steepness(self) -> float:
        """From the change of the gradient over a short way along it."""
        design, loss = self.problem.design, self.problem.loss
        way = np.where(self.allowed, self.gradient, 0.0)
        length = float(np.linalg.norm(way))
        if length == 0.0:
            return 1.0
        way = way * (1e-3 / length)
        _, gradient = self._at(self.eta + design.product(way, runtime=loss.runtime))
        return float(np.linalg.norm(self.gradient - gradient)) / 1e-3 or 1.0

    def _step(
        self, z: Features, eta: Rows, now: Evaluation, gradient: Features, steepness: float
    ) -> tuple[Features, float]:
        """Move from z; the step taken, and the steepness that it took."""
        design, loss = self.problem.design, self.problem.loss
        value = -now.log_likelihood + 0.5 * float(self.l2 @ z**2)
        slope = np.where(self.allowed, gradient - self.l2 * z, 0.0)
        slack = self._rounding(value)
        for _ in range(MAX_BACKTRACKS):
            u = z + slope / steepness
            beta = np.sign(u) * np.maximum(np.abs(u) - self.l1 / steepness, 0.0)
            step = beta - z
            there = eta + design.product(step, runtime=loss.runtime)
            self.now = loss.evaluate(there)
            self.n_passes += 1
            reached = -self.now.log_likelihood + 0.5 * float(self.l2 @ beta**2)
            model = value - float(slope @ step) + 0.5 * steepness * float(step @ step)
            if reached <= model + slack:
                break
            steepness *= 2.0
        self.beta, self.eta = beta, there
        return step, steepness
