// Sums and extremes over rows, lane by lane: see sums_ref.py.
//
// A launch makes one row of lanes from 64; launched again on what it made, until one row is left. The
// order of the sum depends on the number of rows alone.
#include "prelude.cuh"

#define STRIDE 64

KERNEL add_up(const double* x, int n_rows, int n_lanes, double* sums) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk * STRIDE >= n_rows) return;
  double sum = 0.0;
  for (Pointer i = chunk * STRIDE; i < n_rows && i < (chunk + 1) * STRIDE; ++i)
    sum += x[at(i, lane, n_lanes)];
  sums[at(chunk, lane, n_lanes)] = sum;
}

KERNEL extremes(const double* low, const double* high, int n_rows, int n_lanes, double* lowest,
                double* highest) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk * STRIDE >= n_rows) return;
  double least = NEVER, most = -NEVER;
  for (Pointer i = chunk * STRIDE; i < n_rows && i < (chunk + 1) * STRIDE; ++i) {
    least = fmin(least, low[at(i, lane, n_lanes)]);
    most = fmax(most, high[at(i, lane, n_lanes)]);
  }
  lowest[at(chunk, lane, n_lanes)] = least;
  highest[at(chunk, lane, n_lanes)] = most;
}

KERNEL score(const double* eta, const double* shift, const double* weight, const int* event_row,
             int n_events, int n_lanes, double* sums) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk * STRIDE >= n_events) return;
  double sum = 0.0;
  for (Pointer k = chunk * STRIDE; k < n_events && k < (chunk + 1) * STRIDE; ++k) {
    const Pointer own = at(event_row[k], lane, n_lanes);
    sum += weight[own] * (eta[own] - shift[lane]);
  }
  sums[at(chunk, lane, n_lanes)] = sum;
}

KERNEL move_rows(const double* eta, const double* along, const double* share, int n_rows, int n_lanes,
                 double* moved) {
  const int lane = own_lane();
  const Pointer i = own_item();
  if (lane >= n_lanes || i >= n_rows) return;
  const Pointer own = at(i, lane, n_lanes);
  moved[own] = eta[own] + share[lane] * along[own];
}

KERNEL fill(double value, int n_rows, int n_lanes, double* x) {
  const int lane = own_lane();
  const Pointer i = own_item();
  if (lane >= n_lanes || i >= n_rows) return;
  x[at(i, lane, n_lanes)] = value;
}

KERNEL repeat_rows(const double* x, int n_rows, int n_lanes, double* out) {
  const int lane = own_lane();
  const Pointer i = own_item();
  if (lane >= n_lanes || i >= n_rows) return;
  out[at(i, lane, n_lanes)] = x[i];
}

// Expected events of rows: what a residual leaves of the observed ones.
KERNEL expected_rows(const double* weight, const Flag* is_event, const double* residual, int n_rows,
                     int n_lanes, double* expected) {
  const int lane = own_lane();
  const Pointer i = own_item();
  if (lane >= n_lanes || i >= n_rows) return;
  const Pointer own = at(i, lane, n_lanes);
  expected[own] = fmax((is_event[i] ? weight[own] : 0.0) - residual[own], 0.0);
}
