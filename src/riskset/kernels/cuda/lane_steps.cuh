// Optimality conditions, steps and secant pairs: see lane_steps_ref.py. A block of threads works on one lane.
#include "prelude.cuh"

#define WARPS (THREADS / 32)

KERNEL violations(const double* gradient, const double* beta, const double* l1, const double* l2,
                  const double* spread, const Flag* counts, const double* unit, int n_columns,
                  int n_lanes, double* violation, double* largest) {
  SHARED(double, scratch, WARPS);
  const int lane = blockIdx.x;
  double most = 0.0;
  for (int j = threadIdx.x; j < n_columns; j += THREADS) {
    const Pointer own = (Pointer)lane * n_columns + j;
    const double b = beta[own], u = gradient[own] - l2[j] * b;
    double v = b != 0.0 ? fabs(u - copysign(l1[j], b)) : fmax(fabs(u) - l1[j], 0.0);
    if (u != u) v = NEVER;  // which a maximum would pass over
    violation[own] = counts[own] ? v / spread[own] / unit[lane] : 0.0;
    most = fmax(most, violation[own]);
  }
  most = block_max(most, scratch);
  if (threadIdx.x == 0) largest[lane] = most;
}

// Sums over columns: a thread adds those whose numbers leave its own as remainder. Columns of other
// lanes are 0 and change no bits, which they would if places in the working set decided.
#define EACH_OWN(j) \
  for (int j = 0; j < n_columns; ++j) \
    if (column[j] % THREADS == threadIdx.x)

__device__ inline double penalty(double b, double l1, double l2) { return l1 * fabs(b) + 0.5 * l2 * b * b; }

// beta + share step, and its penalty.
KERNEL move_columns(const int* column, const double* beta, const double* step, const double* share,
                    const double* l1, const double* l2, int n_columns, int n_lanes, double* moved,
                    double* penalties) {
  SHARED(double, scratch, WARPS);
  const int lane = blockIdx.x;
  double sum = 0.0;
  EACH_OWN(j) {
    const Pointer own = (Pointer)lane * n_columns + j;
    moved[own] = beta[own] + share[lane] * step[own];
    sum += penalty(moved[own], l1[j], l2[j]);
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) penalties[lane] = sum;
}

KERNEL predicted_gains(const int* column, const double* gradient, const double* beta,
                       const double* step, const double* l1, const double* l2, int n_columns,
                       int n_lanes, double* gains) {
  SHARED(double, scratch, WARPS);
  const int lane = blockIdx.x;
  double sum = 0.0;
  EACH_OWN(j) {
    const Pointer own = (Pointer)lane * n_columns + j;
    const double b = beta[own], d = step[own], moved = b + d;
    sum += gradient[own] * d - l1[j] * (fabs(moved) - fabs(b)) - 0.5 * l2[j] * (moved + b) * d;
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) gains[lane] = sum;
}

// Keep the secant pair of a step, if it is a sensible one; a lane without room begins anew.
KERNEL learn(const int* column, const double* step, const double* image, const double* before,
             const double* gradient, const Flag* mine, const double* share, const Flag* is_live, int n_columns, int max_pairs,
             int n_lanes, int* n_pairs, double* pairs) {
  SHARED(double, scratch, WARPS);
  const int lane = blockIdx.x, t = threadIdx.x;
  const Pointer first = (Pointer)lane * n_columns;
  double* pair = pairs + first * max_pairs;
  double sy = 0.0, sbs = 0.0;
  EACH_OWN(j) if (mine[first + j]) {
      const double s = share[lane] * step[first + j];
      sy += s * (before[first + j] - gradient[first + j]);
      sbs += s * share[lane] * image[first + j];
    }
  sy = block_sum(sy, scratch);
  sbs = block_sum(sbs, scratch);
  if (!is_live[lane] || !(sy > 1e-14 * fabs(sbs)) || !(sbs > 0.0)) return;
  int n = n_pairs[lane];
  const bool is_full = n + 2 > max_pairs;
  if (is_full) n = 0;
  for (int j = t; j < n_columns; j += THREADS) {
    double* own = pair + (Pointer)j * max_pairs;
    const Flag is_mine = mine[first + j];
    if (is_full)
      for (int a = 0; a < max_pairs; ++a) own[a] = 0.0;
    own[n] = is_mine ? (before[first + j] - gradient[first + j]) / sqrt(sy) : 0.0;
    own[n + 1] = is_mine ? share[lane] * image[first + j] / sqrt(sbs) : 0.0;
  }
  __syncthreads();  // everybody has read the number
  if (t == 0) n_pairs[lane] = n + 2;
}

// Bounds of the next step: twice the last one, or half the last bounds, `least` at least.
KERNEL widen(const double* step, const double* share, const Flag* is_live, const double* least,
             int n_columns, int n_lanes, double* box) {
  const int lane = blockIdx.x;
  if (!is_live[lane]) return;
  for (int j = threadIdx.x; j < n_columns; j += THREADS) {
    const Pointer own = (Pointer)lane * n_columns + j;
    box[own] = fmax(fmax(2.0 * fabs(share[lane] * step[own]), 0.5 * box[own]), least[own]);
  }
}

// Weighted standard deviations from weighted sums of values and of squares.
KERNEL deviations(const double* first, const double* second, const double* total, int n_columns,
                  int n_lanes, double* deviation) {
  const int lane = blockIdx.x;
  for (int j = threadIdx.x; j < n_columns; j += THREADS) {
    const Pointer own = (Pointer)lane * n_columns + j;
    const double mean = first[own] / total[lane];
    deviation[own] = sqrt(fmax(second[own] / total[lane] - mean * mean, 0.0));
  }
}

// Columns of each lane, to their places among more of them.
KERNEL place_columns(const double* x, const int* to, int n_columns, int width, int n_lanes,
                     double* out) {
  const int lane = blockIdx.x;
  for (int j = threadIdx.x; j < n_columns; j += THREADS)
    out[(Pointer)lane * width + to[j]] = x[(Pointer)lane * n_columns + j];
}
