// Derivatives of one coordinate in one launch: scan, transformation and reduction. See fused_ref.py.
//
// A block takes a ticket and works on the tile of rows of that number, so that every tile before it is
// under way: whoever waits for those before always gets on, even if one block runs at a time.
//
// What comes before a tile is found by looking back: a tile first says what its own rows hand on, and
// then, when it knows what it received, what all rows so far do. Whoever looks back adds up from the
// nearest tile that knows all *forwards*, which are the same sums in the same order as if each tile had
// waited for the one before. So the bits do not depend on who was early, as they do elsewhere.
#include "prelude.cuh"

#define ITEMS 4  // rows of a thread
#define TILE_ROWS (THREADS * ITEMS)
#define WARPS (THREADS / 32)
#define WINDOW 32  // tiles that a tile looks back at, one for each lane of a warp
#define NONE 0   // what a tile has said: nothing,
#define OWN 1    // what its own rows hand on,
#define TOTAL 2  // what all rows up to its end do

// ------------------------------------------------------------------- what rows hand on to others
// The sums of r, x r and x^2 r. With six numbers (Efron) the second three are of rows with an event of a
// group that is not over: when a group closes, they join the first three. A stratum starts with nothing.

template <int N>
struct Run {
  double sum[N];
  int cut;     // a stratum starts within: what came before is forgotten
  int closed;  // a group closes within
};

template <int N>
__device__ inline Run<N> nothing() {
  Run<N> run;
#pragma unroll
  for (int k = 0; k < N; ++k) run.sum[k] = 0.0;
  run.cut = run.closed = 0;
  return run;
}

// First `a`, then `b`.
template <int N>
__device__ inline Run<N> then(Run<N> a, Run<N> b) {
#pragma unroll
  for (int k = 0; k < min(N, 3); ++k) {
    const double rest = N == 6 && b.closed ? a.sum[k] + a.sum[(k + 3) % N] : a.sum[k];
    b.sum[k] = b.cut ? b.sum[k] : rest + b.sum[k];
  }
#pragma unroll
  for (int k = 3; k < N; ++k) b.sum[k] = b.cut || b.closed ? b.sum[k] : a.sum[k] + b.sum[k];
  b.cut |= a.cut;
  b.closed |= a.closed;
  return b;
}

template <int N>
__device__ inline Run<N> from_lane(Run<N> run, int lane) {
#pragma unroll
  for (int k = 0; k < N; ++k) run.sum[k] = __shfl_sync(WHOLE_WARP, run.sum[k], lane);
  const int flags = __shfl_sync(WHOLE_WARP, run.cut | run.closed << 1, lane);
  run.cut = flags & 1;
  run.closed = flags >> 1;
  return run;
}

// What the first warps hand on, one after the other.
template <int N>
__device__ inline Run<N> of_warps(int n_warps, SharedPointer<double> sums, SharedPointer<int> flags) {
  Run<N> run = nothing<N>(), next;
#pragma unroll 1
  for (int w = 0; w < n_warps; ++w) {
#pragma unroll
    for (int k = 0; k < N; ++k) next.sum[k] = sums[w * N + k];
    const int flag = flags[w];
    next.cut = flag & 1;
    next.closed = flag >> 1;
    run = then(run, next);
  }
  return run;
}

// What the threads before this one hand on. Backwards, the last thread of the block comes first.
// Leaves what each warp hands on; barriers inside.
template <int N, bool is_backward>
__device__ inline Run<N> before_thread(Run<N> own, SharedPointer<double> sums, SharedPointer<int> flags) {
  const int t = is_backward ? THREADS - 1 - (int)threadIdx.x : (int)threadIdx.x;
  const int lane = t % 32, warp = t / 32, here = threadIdx.x % 32, back = is_backward ? 1 : -1;
#pragma unroll 1
  for (int by = 1; by < 32; by *= 2) {
    const Run<N> other = from_lane(own, (here + back * by) & 31);
    if (lane >= by) own = then(other, own);
  }
  if (lane == 31) {
#pragma unroll
    for (int k = 0; k < N; ++k) sums[warp * N + k] = own.sum[k];
    flags[warp] = own.cut | own.closed << 1;
  }
  own = from_lane(own, (here + back) & 31);
  if (lane == 0) own = nothing<N>();
  __syncthreads();
  return then(of_warps<N>(warp, sums, flags), own);
}

// ------------------------------------------------------------------------- from tile to tile

// One kind of sums over all tiles. Whoever sees what a tile says in `status` sees its numbers, too.
struct Chain {
  int* status;
  double* own;
  double* total;
};

#define WIDTH(N) ((N) == 6 ? 7 : (N))  // Efron's sums travel with whether a group closed

// `to` and `from` point to doubles, in shared memory or not.
template <int N, class To>
__device__ inline void put(Run<N> run, To to, int at) {
#pragma unroll
  for (int k = 0; k < N; ++k) to[at * WIDTH(N) + k] = run.sum[k];
  if (N == 6) to[at * WIDTH(N) + WIDTH(N) - 1] = (double)run.closed;
}

template <int N, class From>
__device__ inline Run<N> get(From from, int at) {
  Run<N> run = nothing<N>();
#pragma unroll
  for (int k = 0; k < N; ++k) run.sum[k] = from[at * WIDTH(N) + k];
  if (N == 6) run.closed = from[at * WIDTH(N) + WIDTH(N) - 1] != 0.0;
  return run;
}

template <int N>
__device__ inline void say(Run<N> run, double* numbers, int* status, int tile, int what) {
  if (threadIdx.x > 0) return;
  if (what == TOTAL) run.closed = 0;  // which nobody asks for
  put(run, numbers, tile);
  store_release(&status[tile], what);
}

// What all rows before a tile hand on. One warp looks at the tiles before it.
template <int N>
__device__ inline Run<N> look_back(const Chain& chain, int tile, SharedPointer<double> window) {
  const int lane = threadIdx.x, other = lane < WINDOW ? tile - 1 - lane : -1;
  int seen = NONE;
  while (other >= 0 && (seen = load_acquire(&chain.status[other])) == NONE) {}
  int nearest = seen == TOTAL ? lane : 32;
  for (int half = 16; half; half >>= 1)
    nearest = min(nearest, __shfl_xor_sync(WHOLE_WARP, nearest, half));
  if (nearest == 32) {  // then the window is full, and the farthest will be the first to know
    nearest = WINDOW - 1;
    while (lane == nearest && load_acquire(&chain.status[other]) != TOTAL) {}
  }
  if (lane <= nearest) put(get<N>(lane == nearest ? chain.total : chain.own, other), window, lane);
  __syncwarp();
  Run<N> before = get<N>(window, nearest);
#pragma unroll 1
  for (int k = nearest - 1; k >= 0; --k) before = then(before, get<N>(window, k));
  __syncwarp();
  return before;
}

// Hand on what the warps of a tile do, and tell all threads what the tile receives.
template <int N>
__device__ inline Run<N> hand_on(const Chain& chain, int tile, SharedPointer<double> sums,
                                 SharedPointer<int> flags, SharedPointer<double> window) {
  if (threadIdx.x < 32) {
    const Run<N> whole = of_warps<N>(WARPS, sums, flags);
    // Nothing comes before the first, and nobody asks for what came before the start of a stratum.
    const bool knows_all = tile == 0 || whole.cut;
    say(whole, knows_all ? chain.total : chain.own, chain.status, tile, knows_all ? TOTAL : OWN);
    const Run<N> before = tile > 0 ? look_back<N>(chain, tile, window) : nothing<N>();
    if (threadIdx.x == 0) put(before, window, 0);
    if (!knows_all) say(then(before, whole), chain.total, chain.status, tile, TOTAL);
  }
  __syncthreads();
  return get<N>(window, 0);
}

__device__ inline int take_ticket(int* ticket, SharedPointer<int> kept) {
  if (threadIdx.x == 0) kept[0] = atomicAdd(ticket, 1);
  __syncthreads();
  const int own = kept[0];
  __syncthreads();
  return own;
}

// --------------------------------------------------------------------------------- likelihoods

struct Rows {
  const double* r;
  const double* xr;
  const double* xxr;
  const double* events;
  const Flag* starts;
  int n_rows;
};

__device__ inline int first_row(int tile) { return tile * TILE_ROWS + threadIdx.x * ITEMS; }
__device__ inline int last_row(int tile, const Rows& rows) {
  return min(first_row(tile) + ITEMS, rows.n_rows);
}

// Let a row come after a run. With six numbers rows with an event are kept apart until it closes.
template <int N>
__device__ inline void add_row(Run<N>& run, const Rows& rows, int i, double share, bool is_apart) {
  const double r = share * rows.r[i], xr = share * rows.xr[i], xxr = share * rows.xxr[i];
  if (N == 6 && is_apart) {
    run.sum[N - 3] += r, run.sum[N - 2] += xr, run.sum[N - 1] += xxr;
  } else {
    run.sum[0] += r, run.sum[1] += xr, run.sum[2] += xxr;
  }
}

template <int N>
__device__ inline void start(Run<N>& run) {
  run = nothing<N>();
  run.cut = 1;
}

template <int N>
__device__ inline void close(Run<N>& run) {
  if (N != 6) return;
#pragma unroll
  for (int k = 0; k < 3; ++k) run.sum[k] += run.sum[N - 3 + k], run.sum[N - 3 + k] = 0.0;
  run.closed = 1;
}

// Terms of a group: slope N S / D, bend N (Q / D - (S / D)^2).
__device__ inline void add_term(double events, double d, double s, double q, double& slope, double& bend) {
  const double mean = s / d;
  slope += events * mean;
  bend += events * (q / d - mean * mean);
}

template <int N>
__device__ inline void cox_tile(const Rows& rows, const Flag* is_tied, const int* n_tied, int* ticket,
                                const Chain& chain, double* slopes, double* bends,
                                SharedPointer<double> sums, SharedPointer<double> window,
                                SharedPointer<int> flags) {
  const int tile = take_ticket(ticket, flags);
  const int first = first_row(tile), last = last_row(tile, rows);
  Run<N> run = nothing<N>();
#pragma unroll(N == 6 ? 1 : ITEMS)
  for (int i = first; i < last; ++i) {
    if (rows.starts[i]) start(run);
    add_row(run, rows, i, 1.0, N == 6 && is_tied[i]);
    if (rows.events[i] > 0.0) close(run);
  }
  run = before_thread<N, false>(run, sums, flags);
  run = then(hand_on<N>(chain, tile, sums, flags, window), run);
  double slope = 0.0, bend = 0.0;
#pragma unroll(N == 6 ? 1 : ITEMS)
  for (int i = first; i < last; ++i) {
    if (rows.starts[i]) start(run);
    add_row(run, rows, i, 1.0, N == 6 && is_tied[i]);
    const double events = rows.events[i];
    if (!(events > 0.0)) continue;
    const int m = N == 6 ? n_tied[i] : 1;
    const double share = 1.0 / m;
#pragma unroll 1
    for (int k = 0; k < m; ++k) {
      const double left = (m - k) * share;  // of each event, in the sum over those at risk
      double at_risk[3];
#pragma unroll
      for (int c = 0; c < 3; ++c) at_risk[c] = N == 6 ? run.sum[c] + left * run.sum[N - 3 + c] : run.sum[c];
      add_term(share * events, at_risk[0], at_risk[1], at_risk[2], slope, bend);
    }
    close(run);
  }
  slope = block_sum(slope, sums);
  bend = block_sum(bend, sums);
  if (threadIdx.x == 0) slopes[tile] = slope, bends[tile] = bend;
}

KERNEL cox_fused(const double* r, const double* xr, const double* xxr, const double* events,
                 const Flag* starts, int n_rows, int n_tiles, int* ticket, int* status, double* own,
                 double* total, double* slope, double* bend) {
  SHARED(double, sums, 3 * WARPS);
  SHARED(double, window, 3 * 32);
  SHARED(int, flags, WARPS);
  cox_tile<3>({r, xr, xxr, events, starts, n_rows}, nullptr, nullptr, ticket, {status, own, total},
              slope, bend, sums, window, flags);
}

KERNEL efron_fused(const double* r, const double* xr, const double* xxr, const double* events,
                   const Flag* starts, const Flag* is_tied, const int* n_tied, int n_rows, int n_tiles,
                   int* ticket, int* status, double* own, double* total, double* slope, double* bend) {
  SHARED(double, sums, 6 * WARPS);
  SHARED(double, window, 7 * 32);
  SHARED(int, flags, WARPS);
  cox_tile<6>({r, xr, xxr, events, starts, n_rows}, is_tied, n_tied, ticket, {status, own, total}, slope,
              bend, sums, window, flags);
}

// Rows with a competing event, which are at risk after it: by curve of censoring, 1 / G(time-) of each,
// and G(t-) of each curve at the last row of each group.
struct Stay {
  const double* later;
  const int* curve;
  const double* survival;
};

__device__ inline double share_of(const Stay& stay, int i, int curve) {
  return stay.curve[i] == curve ? stay.later[i] : 0.0;
}

// Through the rows of this thread; backwards those of one curve only.
__device__ inline Run<3> forward_run(const Rows& rows, int tile) {
  Run<3> run = nothing<3>();
  const int last = last_row(tile, rows);
  for (int i = first_row(tile); i < last; ++i) {
    if (rows.starts[i]) start(run);
    add_row(run, rows, i, 1.0, false);
  }
  return run;
}

__device__ inline Run<3> backward_run(const Rows& rows, const Stay& stay, int curve, int tile) {
  Run<3> run = nothing<3>();
  for (int i = last_row(tile, rows) - 1; i >= first_row(tile); --i) {
    add_row(run, rows, i, share_of(stay, i, curve), false);
    if (rows.starts[i]) start(run);
  }
  return run;
}

// Wait for what all rows up to the end of a tile hand on; nothing, before the first.
__device__ inline Run<3> wait_for(const Chain& chain, int tile, SharedPointer<double> window) {
  if (threadIdx.x == 0) {
    Run<3> run = nothing<3>();
    if (tile >= 0) {
      while (load_acquire(&chain.status[tile]) != TOTAL) {}
      run = get<3>(chain.total, tile);
    }
    put(run, window, 0);
  }
  __syncthreads();
  return get<3>(window, 0);
}

__device__ inline Chain chain_of(const Chain& first, int k, int n_tiles) {
  const Pointer from = (Pointer)k * n_tiles;
  return {first.status + from, first.own + 3 * from, first.total + 3 * from};
}

// Both sums of a tile meet: `after` keeps, for each row, those over rows with a competing event before.
__device__ inline void fg_terms(const Rows& rows, const Stay& stay, const Chain& chains, int tile,
                                int n_tiles, int n_curves, double& slope, double& bend,
                                SharedPointer<double> sums, SharedPointer<double> window,
                                SharedPointer<int> flags, SharedPointer<double> after) {
  const int first = first_row(tile), last = last_row(tile, rows);
  const int t = threadIdx.x;
  for (int k = 0; k < 3 * ITEMS; ++k) after[k * THREADS + t] = 0.0;
#pragma unroll 1
  for (int c = 0; c < n_curves; ++c) {
    Run<3> run = before_thread<3, true>(backward_run(rows, stay, c, tile), sums, flags);
    run = then(wait_for(chain_of(chains, 1 + c, n_tiles), n_tiles - 2 - tile, window), run);
#pragma unroll 1
    for (int i = last - 1; i >= first; --i) {
      if (rows.events[i] > 0.0) {
        const double survival = stay.survival[(Pointer)c * rows.n_rows + i];
        for (int v = 0; v < 3; ++v) after[(3 * (i - first) + v) * THREADS + t] += survival * run.sum[v];
      }
      add_row(run, rows, i, share_of(stay, i, c), false);
      if (rows.starts[i]) start(run);
    }
  }
  Run<3> run = before_thread<3, false>(forward_run(rows, tile), sums, flags);
  run = then(wait_for(chains, tile - 1, window), run);
#pragma unroll 1
  for (int i = first; i < last; ++i) {
    if (rows.starts[i]) start(run);
    add_row(run, rows, i, 1.0, false);
    const int at = 3 * (i - first) * THREADS + t;
    if (rows.events[i] > 0.0)
      add_term(rows.events[i], run.sum[0] + after[at], run.sum[1] + after[at + THREADS],
               run.sum[2] + after[at + 2 * THREADS], slope, bend);
  }
}

// The block of ticket b hands on tile b forwards and tile b from the end backwards. What a tile receives
// from both sides is known once the later of its two tickets has come: that is tile b, or the one as far
// from the end, if b lies in the second half. So the blocks of that half bring the sums together.
KERNEL fg_fused(const double* r, const double* xr, const double* xxr, const double* events,
                const Flag* starts, const double* later, const int* curve, const double* survival,
                int n_rows, int n_tiles, int n_curves, int* ticket, int* status, double* own,
                double* total, double* slope, double* bend) {
  SHARED(double, sums, 3 * WARPS);
  SHARED(double, window, 3 * 32);
  SHARED(double, after, 3 * TILE_ROWS);
  SHARED(int, flags, WARPS);
  const Rows rows = {r, xr, xxr, events, starts, n_rows};
  const Stay stay = {later, curve, survival};
  const Chain chains = {status, own, total};
  const int front = take_ticket(ticket, flags), back = n_tiles - 1 - front;
  before_thread<3, false>(forward_run(rows, front), sums, flags);
  hand_on<3>(chains, front, sums, flags, window);
#pragma unroll 1
  for (int c = 0; c < n_curves; ++c) {
    before_thread<3, true>(backward_run(rows, stay, c, back), sums, flags);
    hand_on<3>(chain_of(chains, 1 + c, n_tiles), front, sums, flags, window);
  }
  double slope_sum = 0.0, bend_sum = 0.0;
#pragma unroll 1
  for (int tile = front; front >= back && tile >= back; tile -= max(front - back, 1))
    fg_terms(rows, stay, chains, tile, n_tiles, n_curves, slope_sum, bend_sum, sums, window, flags,
             after);
  slope_sum = block_sum(slope_sum, sums);
  bend_sum = block_sum(bend_sum, sums);
  if (threadIdx.x == 0) slope[front] = slope_sum, bend[front] = bend_sum;
}
