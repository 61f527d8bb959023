// The penalised quadratic of a Newton step in every lane: see quadratic_ref.py.
#include "prelude.cuh"

#define MAX_PAIRS 32  // secant vectors of a lane, one for each thread of a warp

// A block of threads works on one lane. Which coordinate moves, and how far, every warp finds out by
// itself from the same numbers; then all threads move the image of the step, a row of the curvature.
KERNEL minimise_quadratics(const double* curvature, const double* scale, const double* pairs,
                           const int* n_pairs, const double* gradient, const double* beta,
                           const double* l1, const double* l2, const double* box,
                           const Flag* may_move, const double* tolerance, int n_columns, int max_pairs,
                           int max_sweeps, int n_lanes, double* size, double* step, double* image) {
  SHARED(double, seen, MAX_PAIRS);
  const int lane = blockIdx.x, t = threadIdx.x, own_pair = t % 32, n = n_pairs[lane];
  const Pointer first = (Pointer)lane * n_columns;
  const double* pair = pairs + first * max_pairs;
  const double scaled = scale[lane], enough = tolerance[lane];
  const double sign = own_pair & 1 ? -1.0 : 1.0;
  for (int j = t; j < n_columns; j += THREADS) {
    const double h = scaled * curvature[(Pointer)j * n_columns + j];
    double along = h;
    for (int a = 0; a < n; ++a) {
      const double p = pair[(Pointer)j * max_pairs + a];
      along += a & 1 ? -p * p : p * p;
    }
    size[first + j] = fmax(along, 1e-3 * h);
    step[first + j] = image[first + j] = 0.0;
  }
  if (t < MAX_PAIRS) seen[t] = 0.0;
  __syncthreads();
  bool full = true;  // this sweep looks at coordinates at zero, too
  for (int sweep = 0; sweep < max_sweeps; ++sweep) {
    double moved = 0.0;
    for (int j = 0; j < n_columns; ++j) {
      const Pointer own = first + j;
      const double b = beta[own] + step[own], h = size[own];
      if (!may_move[own] || !(full || b != 0.0) || h + l2[j] <= 0.0) continue;
      double pull = gradient[own] - image[own];
      if (n) {
        const bool used = own_pair < n;
        pull -= warp_sum(used ? sign * pair[(Pointer)j * max_pairs + own_pair] * seen[own_pair] : 0.0);
      }
      const double z = b * h + pull;
      const double target = copysign(fmax(fabs(z) - l1[j], 0.0) / (h + l2[j]), z);
      const double goal = fmin(fmax(target - beta[own], -box[own]), box[own]);
      const double change = goal - step[own];
      if (change == 0.0) continue;
      moved = fmax(moved, fabs(change) * (h + l2[j]));
      __syncthreads();  // everybody has read
      for (int k = t; k < n_columns; k += THREADS)
        image[first + k] += change * scaled * curvature[(Pointer)j * n_columns + k];
      if (t < n) seen[t] += pair[(Pointer)j * max_pairs + t] * change;
      if (t == 0) step[own] = goal;
      __syncthreads();
    }
    if (moved <= enough && full) break;
    full = moved <= enough;
  }
  for (int j = t; j < n_columns; j += THREADS)
    for (int a = 0; a < n; ++a) {
      const double part = pair[(Pointer)j * max_pairs + a] * seen[a];
      image[first + j] += a & 1 ? -part : part;
    }
}
