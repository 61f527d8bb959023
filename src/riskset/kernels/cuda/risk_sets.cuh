// Sums over nested risk sets, hazards and residuals: see risk_sets_ref.py.
//
// Rows are cut into pieces that never leave a group, groups into chunks of about as many pieces.
// A running sum over groups then takes three kernels: the sum of each chunk, what each chunk receives
// from those before it, and the sum again from there. Sums only add. A stratum starts at 0.
#include "prelude.cuh"

KERNEL risks(const double* eta, const double* shift, const int* row, const int* place,
             const double* weight, int n_places, int n_lanes, double* r) {
  const int lane = own_lane();
  const Pointer i = own_item();
  if (lane >= n_lanes || i >= n_places) return;
  const Pointer to = at(place[i], lane, n_lanes);
  r[to] = weight[to] * exp(eta[at(row[i], lane, n_lanes)] - shift[lane]);
}

KERNEL sum_pieces(const double* r, const int* place, const int* piece_ptr, int n_pieces, int n_lanes,
                  double* sums) {
  const int lane = own_lane();
  const Pointer piece = own_item();
  if (lane >= n_lanes || piece >= n_pieces) return;
  double sum = 0.0;
  for (int i = piece_ptr[piece]; i < piece_ptr[piece + 1]; ++i)
    sum += r[at(place[i], lane, n_lanes)];
  sums[at(piece, lane, n_lanes)] = sum;
}

__device__ inline double sum_between(const double* sums, int first, int last, int lane, int n_lanes) {
  double sum = 0.0;
  for (int piece = first; piece < last; ++piece) sum += sums[at(piece, lane, n_lanes)];
  return sum;
}

KERNEL sum_chunks(const double* sums, const int* group_piece, const Flag* starts, const int* chunk_ptr,
                  int n_chunks, int is_backward, int n_lanes, double* handed) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk >= n_chunks) return;
  const int first = chunk_ptr[chunk], last = chunk_ptr[chunk + 1];
  double running = 0.0;
  for (int k = first; k < last; ++k) {
    const int g = is_backward ? first + last - 1 - k : k;
    if (starts[g] && !is_backward) running = 0.0;
    running += sum_between(sums, group_piece[g], group_piece[g + 1], lane, n_lanes);
    if (starts[g] && is_backward) running = 0.0;
  }
  handed[at(chunk, lane, n_lanes)] = running;
}

// One block has 8 lanes and cuts the chunks into 32 parts, whatever the number of lanes.
KERNEL carry(const Flag* has_start, int n_chunks, int is_backward, int n_lanes, double* handed) {
  SHARED(double, sum, THREADS);
  SHARED(int, has_cut, THREADS);
  const int lane = own_lane(), part = threadIdx.y, own = part * 8 + threadIdx.x;
  const int size = (n_chunks + 31) / 32;
  const int first = min(part * size, n_chunks), last = min(first + size, n_chunks);
  double running = 0.0;
  int cut = 0;
  for (int k = first; k < last && lane < n_lanes; ++k) {
    const int c = is_backward ? n_chunks - 1 - k : k;
    running = handed[at(c, lane, n_lanes)] + (has_start[c] ? 0.0 : running);
    cut |= has_start[c];
  }
  sum[own] = running;
  has_cut[own] = cut;
  __syncthreads();
  double before = 0.0;
  for (int p = 0; p < part; ++p) {
    const int other = p * 8 + threadIdx.x;
    before = sum[other] + (has_cut[other] ? 0.0 : before);
  }
  for (int k = first; k < last && lane < n_lanes; ++k) {
    const int c = is_backward ? n_chunks - 1 - k : k;
    const double own_sum = handed[at(c, lane, n_lanes)];
    handed[at(c, lane, n_lanes)] = before;
    before = own_sum + (has_start[c] ? 0.0 : before);
  }
}

KERNEL add_nested(const double* sums, const int* group_piece, const int* tied_piece, const Flag* starts,
                  const int* chunk_ptr, const double* carried, int n_chunks, int is_efron, int n_lanes,
                  double* rest, double* tied) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk >= n_chunks) return;
  double running = carried[at(chunk, lane, n_lanes)];
  for (int g = chunk_ptr[chunk]; g < chunk_ptr[chunk + 1]; ++g) {
    if (starts[g]) running = 0.0;
    const double alive = sum_between(sums, group_piece[g], tied_piece[g], lane, n_lanes);
    const double dead = sum_between(sums, tied_piece[g], group_piece[g + 1], lane, n_lanes);
    rest[at(g, lane, n_lanes)] = running + alive;
    if (is_efron) tied[at(g, lane, n_lanes)] = dead;
    running += alive + dead;
  }
}

KERNEL add_tail(const double* sums, const int* group_piece, const Flag* starts, const int* chunk_ptr,
                const double* carried, const double* survival, int n_chunks, int n_lanes,
                double* total) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk >= n_chunks) return;
  double running = carried[at(chunk, lane, n_lanes)];
  for (int g = chunk_ptr[chunk + 1] - 1; g >= chunk_ptr[chunk]; --g) {
    const Pointer own = at(g, lane, n_lanes);
    total[own] += survival[own] * running;
    running += sum_between(sums, group_piece[g], group_piece[g + 1], lane, n_lanes);
    if (starts[g]) running = 0.0;
  }
}

KERNEL sum_events(const double* weight, const int* event_ptr, const int* event_row, int n_groups,
                  int is_efron, int n_lanes, double* group_events, int* group_tied) {
  const int lane = own_lane();
  const Pointer g = own_item();
  if (lane >= n_lanes || g >= n_groups) return;
  double sum = 0.0;
  int n_tied = 0;
  for (int k = event_ptr[g]; k < event_ptr[g + 1]; ++k) {
    const double w = weight[at(event_row[k], lane, n_lanes)];
    sum += w;
    n_tied += w > 0.0;
  }
  group_events[at(g, lane, n_lanes)] = sum;
  if (is_efron) group_tied[at(g, lane, n_lanes)] = n_tied;
}

// From totals to hazards, in place, with the chunk's part of the likelihood, its least total, and the
// hazard that it hands to the chunk before it.
KERNEL hazards(const double* group_events, const int* group_tied, const Flag* starts,
               const int* chunk_ptr, int n_chunks, int is_efron, int n_lanes, double* rest,
               double* tied, double* value, double* least, double* handed) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk >= n_chunks) return;
  double sum = 0.0, low = NEVER, hand = 0.0;
  bool inside = true;
  for (int g = chunk_ptr[chunk]; g < chunk_ptr[chunk + 1]; ++g) {
    const Pointer own = at(g, lane, n_lanes);
    const double events = group_events[own];
    double hazard = 0.0, hazard_tied = 0.0;
    if (events > 0.0) {
      const int m = is_efron ? group_tied[own] : 1;
      const double alive = rest[own], dead = is_efron ? tied[own] : 0.0, each = events / m;
      low = fmin(low, alive + dead);
      for (int k = 0; k < m; ++k) {
        const double share = (double)(m - k) / m, d = alive + share * dead;
        sum -= each * log(d);
        hazard += each / d;
        hazard_tied += share * each / d;
      }
    }
    rest[own] = hazard;
    if (is_efron) tied[own] = hazard_tied;
    if (starts[g]) inside = false;
    if (inside) hand += hazard;
  }
  const Pointer own = at(chunk, lane, n_lanes);
  value[own] = sum;
  least[own] = low;
  handed[own] = hand;
}

// From hazards to what rows of the group have seen of them, in place.
KERNEL seen_nested(const Flag* starts, const int* chunk_ptr, const double* carried, int n_chunks,
                   int is_efron, int n_lanes, double* hazard, double* hazard_tied) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk >= n_chunks) return;
  double running = carried[at(chunk, lane, n_lanes)];
  for (int g = chunk_ptr[chunk + 1] - 1; g >= chunk_ptr[chunk]; --g) {
    const Pointer own = at(g, lane, n_lanes);
    if (is_efron) hazard_tied[own] += running;
    running += hazard[own];
    hazard[own] = running;
    if (starts[g]) running = 0.0;
  }
}

KERNEL sum_tail_hazards(const double* hazard, const double* survival, const Flag* starts,
                        const int* chunk_ptr, int n_chunks, int n_lanes, double* handed) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk >= n_chunks) return;
  double running = 0.0;
  for (int g = chunk_ptr[chunk]; g < chunk_ptr[chunk + 1]; ++g) {
    const Pointer own = at(g, lane, n_lanes);
    running = survival[own] * hazard[own] + (starts[g] ? 0.0 : running);
  }
  handed[at(chunk, lane, n_lanes)] = running;
}

KERNEL seen_after(const double* hazard, const double* survival, const Flag* starts,
                  const int* chunk_ptr, const double* carried, int n_chunks, int n_lanes,
                  double* seen) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk >= n_chunks) return;
  double running = carried[at(chunk, lane, n_lanes)];
  for (int g = chunk_ptr[chunk]; g < chunk_ptr[chunk + 1]; ++g) {
    const Pointer own = at(g, lane, n_lanes);
    if (starts[g]) running = 0.0;
    seen[own] = running;
    running += survival[own] * hazard[own];
  }
}

// `residual` comes with the risks of `risks`, by row.
KERNEL residuals(const double* weight, const Flag* is_event, const int* group, const double* seen,
                 const double* seen_tied, int n_rows, int is_efron, int n_lanes, double* residual) {
  const int lane = own_lane();
  const Pointer i = own_item();
  if (lane >= n_lanes || i >= n_rows) return;
  const Pointer own = at(i, lane, n_lanes), to = at(group[i], lane, n_lanes);
  const double hazard = is_efron && is_event[i] ? seen_tied[to] : seen[to];
  residual[own] = (is_event[i] ? weight[own] : 0.0) - residual[own] * hazard;
}

KERNEL tail_residuals(const int* row, const int* group, const double* r, const double* seen,
                      int n_places, int n_lanes, double* residual) {
  const int lane = own_lane();
  const Pointer i = own_item();
  if (lane >= n_lanes || i >= n_places) return;
  residual[at(row[i], lane, n_lanes)] -=
      r[at(i, lane, n_lanes)] * seen[at(group[i], lane, n_lanes)];
}
