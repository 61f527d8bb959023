// One coordinate: its entries, and its step. See coordinate_ref.py.
#include "prelude.cuh"

#define WARPS (THREADS / 32)

__device__ inline Pointer own_entry() { return (Pointer)blockIdx.x * THREADS + threadIdx.x; }

// x r and x^2 r of a column, which are 0 elsewhere.
KERNEL spread_column(const double* r, const int* place, const double* value, Pointer first,
                     int n_entries, int is_binary, double* xr, double* xxr) {
  const Pointer k = own_entry();
  if (k >= n_entries) return;
  const int i = place[first + k];
  const double x = is_binary ? 1.0 : value[first + k];
  xr[i] = x * r[i];
  xxr[i] = x * x * r[i];  // of a column of zeros and ones the same array
}

// Go along the step of a column, and leave its entries as they are for all others: 0.
KERNEL move_column(const int* row, const double* weight, const double* shift, const int* place,
                   const double* value, const double* step, Pointer first, int n_entries, int is_binary,
                   double* eta, double* r, double* xr, double* xxr) {
  const Pointer k = own_entry();
  if (k >= n_entries) return;
  const int i = place[first + k];
  xr[i] = 0.0;
  xxr[i] = 0.0;
  if (step[0] == 0.0) return;
  const double moved = eta[row[i]] + step[0] * (is_binary ? 1.0 : value[first + k]);
  eta[row[i]] = moved;
  r[i] = weight[i] * exp(moved - shift[0]);
}

// Add up the derivatives, take the step within the trust region, and let the next launch of a fused
// kernel begin anew. One block.
KERNEL take_step(const double* slope, const double* bend, const double* score, const double* l1,
                 const double* l2, int column, int n_tiles, int n_status, int* ticket, int* status,
                 double* beta, double* width, double* curvature, double* step) {
  SHARED(double, scratch, WARPS);
  double expected = 0.0, hessian = 0.0;
  for (int k = threadIdx.x; k < n_tiles; k += THREADS) expected += slope[k], hessian += bend[k];
  expected = block_sum(expected, scratch);
  hessian = block_sum(hessian, scratch);
  for (int k = threadIdx.x; k < n_status; k += THREADS) status[k] = 0;
  if (threadIdx.x > 0) return;
  ticket[0] = 0;
  const double b = beta[column], bound = width[column];
  double u = score[column] - expected - l2[column] * b;
  if (b > 0.0 || (b == 0.0 && u > l1[column]))
    u -= l1[column];
  else if (b < 0.0 || (b == 0.0 && u < -l1[column]))
    u += l1[column];
  else
    u = 0.0;
  const double along = fmax(hessian, 0.0) + l2[column];
  double d = 0.0;
  if (u != 0.0) d = fabs(u) < along * bound ? u / along : copysign(bound, u);
  if (l1[column] > 0.0 && b * (b + d) < 0.0) d = -b;  // not across 0
  beta[column] = b + d;
  width[column] = fmax(2.0 * fabs(d), bound / 2.0);
  curvature[column] = hessian;
  step[0] = d;
}
