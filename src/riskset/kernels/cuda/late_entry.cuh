// Sums over risk sets that rows enter late: see late_entry_ref.py.
//
// A row is at risk in the groups [own, end). Where the highest bit in which `own` and `end - 1` differ
// changes, the range is cut into a tail of the left half and a head of the right half of one aligned
// block of 2 `half` groups; rows that share the bit share a level. Left halves are summed forwards and
// right halves backwards: with the groups of right halves in mirrored order, one running sum does both.
#include "prelude.cuh"

// Place of group g, and the group at place p. Level 0, half = 0: every group by itself.
__device__ inline int mirrored(int g, int half) { return g & half ? g ^ (half - 1) : g; }

KERNEL sum_tied(const double* r, const int* event_ptr, const int* event_row, int n_groups, int n_lanes,
                double* tied) {
  const int lane = own_lane();
  const Pointer g = own_item();
  if (lane >= n_lanes || g >= n_groups) return;
  double sum = 0.0;
  for (int k = event_ptr[g]; k < event_ptr[g + 1]; ++k) sum += r[at(event_row[k], lane, n_lanes)];
  tied[at(g, lane, n_lanes)] = sum;
}

// `starts`, `chunk_ptr` and the pieces are by place. Rows with an event in the group count from the
// next group on (Efron).
KERNEL add_level(const double* sums, const int* group_piece, const int* tied_piece, const Flag* starts,
                 const int* chunk_ptr, const double* carried, int n_chunks, int half, int n_groups,
                 int n_lanes, double* rest) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk >= n_chunks) return;
  double running = carried[at(chunk, lane, n_lanes)];
  for (int p = chunk_ptr[chunk]; p < chunk_ptr[chunk + 1]; ++p) {
    if (starts[p]) running = 0.0;
    double alive = 0.0, dead = 0.0;
    for (int k = group_piece[p]; k < tied_piece[p]; ++k) alive += sums[at(k, lane, n_lanes)];
    for (int k = tied_piece[p]; k < group_piece[p + 1]; ++k) dead += sums[at(k, lane, n_lanes)];
    const int g = mirrored(p, half);
    if (g < n_groups) rest[at(g, lane, n_lanes)] += running + alive;
    running += alive + dead;
  }
}

KERNEL sum_level(const double* hazard, const Flag* starts, const int* chunk_ptr, int n_chunks, int half,
                 int n_groups, int n_lanes, double* handed) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk >= n_chunks) return;
  double running = 0.0;
  for (int p = chunk_ptr[chunk + 1] - 1; p >= chunk_ptr[chunk]; --p) {
    const int g = mirrored(p, half);
    if (g < n_groups) running += hazard[at(g, lane, n_lanes)];
    if (starts[p]) running = 0.0;
  }
  handed[at(chunk, lane, n_lanes)] = running;
}

// From the group after g up to the middle, and from the middle up to g.
KERNEL seen_level(const double* hazard, const Flag* starts, const int* chunk_ptr, const double* carried,
                  int n_chunks, int half, int n_groups, int n_lanes, double* seen) {
  const int lane = own_lane();
  const Pointer chunk = own_item();
  if (lane >= n_lanes || chunk >= n_chunks) return;
  double running = carried[at(chunk, lane, n_lanes)];
  for (int p = chunk_ptr[chunk + 1] - 1; p >= chunk_ptr[chunk]; --p) {
    const int g = mirrored(p, half);
    if (g < n_groups) {
      const Pointer own = at(g, lane, n_lanes);
      if (p & half) {
        running += hazard[own];
        seen[own] = running;
      } else {
        seen[own] = running;
        running += hazard[own];
      }
    }
    if (starts[p]) running = 0.0;
  }
}

// The rows of one level. A row that is never at risk belongs to level 0.
KERNEL level_residuals(const int* row, const int* first, const int* end, const double* weight,
                       const Flag* is_event, const double* hazard, const double* hazard_tied,
                       const double* seen, int n_places, int half, int is_efron, int n_lanes,
                       double* residual) {
  const int lane = own_lane();
  const Pointer i = own_item();
  if (lane >= n_lanes || i >= n_places) return;
  const int j = row[i];
  const Pointer own = at(j, lane, n_lanes), to = at(first[i], lane, n_lanes);
  double sum = 0.0;
  if (first[i] < end[i]) sum = is_efron && is_event[j] ? hazard_tied[to] : hazard[to];
  if (half) sum += seen[to] + seen[at(end[i] - 1, lane, n_lanes)];
  residual[own] = (is_event[j] ? weight[own] : 0.0) - residual[own] * sum;
}
