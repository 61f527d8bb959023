"""Data for the tests of estimators."""

import numpy as np

import riskset as rs


def simulated(rng, n=120, p=4):
    x = rng.normal(size=(n, p))
    time = np.ceil(10 * rng.exponential(np.exp(-x[:, 0] + 0.5 * x[:, 1])))
    return x, rs.Surv(time, rng.random(n) < 0.7)


def frame(n=90):
    """Columns of every kind that is encoded, as a dict."""
    rng = np.random.default_rng(4)
    return {
        "age": rng.integers(40, 80, n),
        "dose": rng.normal(size=n),
        "smoker": rng.random(n) < 0.4,
        "site": rng.choice(["b", "a", "c"], n).tolist(),
    }


def frame_outcome(n=90):
    rng = np.random.default_rng(5)
    return rs.Surv(rng.exponential(size=n).round(2) + 0.01, rng.random(n) < 0.8)


def frame_matrix(columns):
    site = np.array(columns["site"])
    parts = [columns["age"], columns["dose"], columns["smoker"], site == "b", site == "c"]
    return np.column_stack(parts).astype(float)


def model_and_data(**parameters):
    x, y = simulated(np.random.default_rng(2))
    return rs.Cox(**parameters).fit(x, y), x, y


def state(model):
    """Everything that a model holds, by name: arrays as bytes."""
    out = {}
    for name, value in vars(model).items():
        is_array = isinstance(value, np.ndarray) and value.dtype != object
        out[name] = (value.tobytes(), value.shape) if is_array else repr(value)
    training = model._fitted.training
    return out, training.solution.coef.tobytes(), training.loss.outcome.weight.tobytes()
