// Steps (2) to (4) of the paper's section 2.7, apart and as tuples, beside `cox_fused`: what fusion gains.
// They follow fused.cuh, from which they have the scan with look-back.

// Running sums of N vectors.
template <int N>
__device__ inline void scan_tile(const double* const (&x)[N], double* const (&out)[N], int n_rows,
                                 int* ticket, const Chain& chain, SharedPointer<double> sums,
                                 SharedPointer<double> window, SharedPointer<int> flags) {
  const int tile = take_ticket(ticket, flags);
  const int first = first_row(tile), last = min(first + ITEMS, n_rows);
  Run<N> run = nothing<N>();
  for (int i = first; i < last; ++i)
#pragma unroll
    for (int k = 0; k < N; ++k) run.sum[k] += x[k][i];
  run = before_thread<N, false>(run, sums, flags);
  run = then(hand_on<N>(chain, tile, sums, flags, window), run);
  for (int i = first; i < last; ++i)
#pragma unroll
    for (int k = 0; k < N; ++k) out[k][i] = run.sum[k] += x[k][i];
}

KERNEL scan_one(const double* x, int n_rows, int* ticket, int* status, double* own, double* total,
                double* out) {
  SHARED(double, sums, WARPS);
  SHARED(double, window, 32);
  SHARED(int, flags, WARPS);
  scan_tile<1>({x}, {out}, n_rows, ticket, {status, own, total}, sums, window, flags);
}

KERNEL scan_three(const double* r, const double* xr, const double* xxr, int n_rows, int* ticket,
                  int* status, double* own, double* total, double* s0, double* s1, double* s2) {
  SHARED(double, sums, 3 * WARPS);
  SHARED(double, window, 3 * 32);
  SHARED(int, flags, WARPS);
  scan_tile<3>({r, xr, xxr}, {s0, s1, s2}, n_rows, ticket, {status, own, total}, sums, window, flags);
}

KERNEL transform(const double* s0, const double* s1, const double* s2, const double* event, int n_rows,
                 double* first, double* second) {
  const int i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= n_rows) return;
  const double g = s1[i] / s0[i];
  first[i] = event[i] * g;
  second[i] = event[i] * (s2[i] / s0[i] - g * g);
}

// Sums of the rows of each tile.
KERNEL reduce_one(const double* x, int n_rows, double* partial) {
  SHARED(double, scratch, WARPS);
  double sum = 0.0;
  for (int k = 0; k < ITEMS; ++k) {
    const int i = blockIdx.x * TILE_ROWS + k * THREADS + threadIdx.x;
    if (i < n_rows) sum += x[i];
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

KERNEL transform_reduce(const double* s0, const double* s1, const double* s2, const double* event,
                        int n_rows, double* first, double* second) {
  SHARED(double, scratch, WARPS);
  double slope = 0.0, bend = 0.0;
  for (int k = 0; k < ITEMS; ++k) {
    const int i = blockIdx.x * TILE_ROWS + k * THREADS + threadIdx.x;
    if (i < n_rows && event[i] > 0.0) add_term(event[i], s0[i], s1[i], s2[i], slope, bend);
  }
  slope = block_sum(slope, scratch);
  bend = block_sum(bend, scratch);
  if (threadIdx.x == 0) first[blockIdx.x] = slope, second[blockIdx.x] = bend;
}

// One sum of all tiles, and of a second kind if there is one. One block.
KERNEL finish(const double* first, const double* second, int n_tiles, int n_kinds, double* sums) {
  SHARED(double, scratch, WARPS);
  for (int kind = 0; kind < n_kinds; ++kind) {
    double sum = 0.0;
    for (int k = threadIdx.x; k < n_tiles; k += THREADS) sum += (kind ? second : first)[k];
    sum = block_sum(sum, scratch);
    if (threadIdx.x == 0) sums[kind] = sum;
  }
}

// Before a scan. One block.
KERNEL clear(int n_tiles, int* ticket, int* status) {
  for (int k = threadIdx.x; k < n_tiles; k += THREADS) status[k] = NONE;
  if (threadIdx.x == 0) ticket[0] = 0;
}
