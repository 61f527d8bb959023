// Products with the blocked design: see matrix_ref.py.
//
// The storage is that of the CPU: sparse columns block by block of rows, two bytes for a row. For X'r a
// warp takes a column, 8 lanes and every fourth entry of a panel of blocks, whose rows of r stay in the
// cache while all columns read them; panels are added up in order. For X v the chosen columns are
// listed row by row first.
#include "prelude.cuh"

// ------------------------------------------------------------------------------------------ X'r
// A block of threads: x is the lane of a tile of 8, y one of 4 slices of the entries, z the column.

__device__ inline int own_column() { return blockIdx.x * blockDim.z + threadIdx.z; }

// The slices' sums, in a fixed order; the first slice writes.
__device__ inline void keep_partial(double sum, int column, int n_columns, int n_lanes,
                                    double* partial) {
  sum += __shfl_xor_sync(WHOLE_WARP, sum, 8);
  sum += __shfl_xor_sync(WHOLE_WARP, sum, 16);
  const int lane = own_lane();
  if (threadIdx.y == 0 && lane < n_lanes && column < n_columns)
    partial[at((Pointer)blockIdx.z * n_columns + column, lane, n_lanes)] = sum;
}

KERNEL cross_binary(const Pointer* block_ptr, const ShortRow* row, const int* slots, const double* r,
                    int n_slots, int n_columns, int shift, int n_blocks, int panel_blocks, int n_lanes,
                    double* partial) {
  const int column = own_column(), lane = own_lane();
  const int begin = blockIdx.z * panel_blocks, stop = min(begin + panel_blocks, n_blocks);
  double sum = 0.0;
  if (column < n_columns && lane < n_lanes)
    for (int b = begin; b < stop; ++b) {
      const Pointer* ptr = block_ptr + (Pointer)b * (n_slots + 1) + slots[column];
      const double* rows = r + at((Pointer)b << shift, lane, n_lanes);
      for (Pointer e = ptr[0] + threadIdx.y; e < ptr[1]; e += 4) sum += rows[at(row[e], 0, n_lanes)];
    }
  keep_partial(sum, column, n_columns, n_lanes, partial);
}

KERNEL cross_valued(const Pointer* block_ptr, const ShortRow* row, const double* value,
                    const int* slots, const double* r, int power, int n_slots, int n_columns, int shift,
                    int n_blocks, int panel_blocks, int n_lanes, double* partial) {
  const int column = own_column(), lane = own_lane();
  const int begin = blockIdx.z * panel_blocks, stop = min(begin + panel_blocks, n_blocks);
  double sum = 0.0;
  if (column < n_columns && lane < n_lanes)
    for (int b = begin; b < stop; ++b) {
      const Pointer* ptr = block_ptr + (Pointer)b * (n_slots + 1) + slots[column];
      const double* rows = r + at((Pointer)b << shift, lane, n_lanes);
      for (Pointer e = ptr[0] + threadIdx.y; e < ptr[1]; e += 4)
        sum += (power == 2 ? value[e] * value[e] : value[e]) * rows[at(row[e], 0, n_lanes)];
    }
  keep_partial(sum, column, n_columns, n_lanes, partial);
}

KERNEL cross_dense(const double* blocks, const int* slots, const double* r, int power, int n_slots,
                   int n_columns, int block_rows, int n_rows, int n_blocks, int panel_blocks,
                   int n_lanes, double* partial) {
  const int column = own_column(), lane = own_lane();
  const int begin = blockIdx.z * panel_blocks, stop = min(begin + panel_blocks, n_blocks);
  double sum = 0.0;
  if (column < n_columns && lane < n_lanes)
    for (int b = begin; b < stop; ++b) {
      const double* x = blocks + ((Pointer)b * n_slots + slots[column]) * block_rows;
      const Pointer first = (Pointer)b * block_rows;
      for (Pointer i = threadIdx.y; i < block_rows && first + i < n_rows; i += 4)
        sum += (power == 2 ? x[i] * x[i] : x[i]) * r[at(first + i, lane, n_lanes)];
    }
  keep_partial(sum, column, n_columns, n_lanes, partial);
}

// Column k goes to place to[k] of each lane's `width` columns.
KERNEL combine_panels(const double* partial, const int* to, int n_panels, int n_columns, int width,
                      int n_lanes, double* out) {
  const int lane = own_lane();
  const Pointer column = own_item();
  if (lane >= n_lanes || column >= n_columns) return;
  double sum = 0.0;
  for (int p = 0; p < n_panels; ++p) sum += partial[at((Pointer)p * n_columns + column, lane, n_lanes)];
  out[(Pointer)lane * width + to[column]] = sum;
}

// ------------------------------------------------------------------------------------------ X v

// A block of threads lists the rows of one block of the design; rows of a column differ, so that
// threads never meet in a row. `base` is the place of the block's first entry.
KERNEL list_rows(const Pointer* block_ptr, const ShortRow* row, const double* value, const int* slots,
                 const Pointer* base, int n_slots, int n_columns, int shift, int n_rows, int has_value,
                 int* count, Pointer* row_ptr, int* column, double* kept) {
  SHARED(int, part_sum, THREADS);
  const int b = blockIdx.x, t = threadIdx.x, size = ((1 << shift) + THREADS - 1) / THREADS;
  const Pointer first_row = (Pointer)b << shift;
  const Pointer* ptr = block_ptr + (Pointer)b * (n_slots + 1);
  const Pointer first = min(first_row + t * size, min(first_row + (1 << shift), (Pointer)n_rows));
  const Pointer last = min(first + size, min(first_row + (1 << shift), (Pointer)n_rows));
  for (Pointer i = first; i < last; ++i) count[i] = 0;
  __syncthreads();
  for (int k = 0; k < n_columns; ++k) {
    for (Pointer e = ptr[slots[k]] + t; e < ptr[slots[k] + 1]; e += THREADS) ++count[first_row + row[e]];
    __syncthreads();
  }
  int own = 0;
  for (Pointer i = first; i < last; ++i) own += count[i];
  part_sum[t] = own;
  __syncthreads();
  Pointer place = base[b];
  for (int p = 0; p < t; ++p) place += part_sum[p];
  for (Pointer i = first; i < last; ++i) {
    row_ptr[i] = place;
    place += count[i];
    count[i] = 0;
    if (i == n_rows - 1) row_ptr[n_rows] = place;
  }
  __syncthreads();
  for (int k = 0; k < n_columns; ++k) {
    for (Pointer e = ptr[slots[k]] + t; e < ptr[slots[k] + 1]; e += THREADS) {
      const Pointer i = first_row + row[e], to = row_ptr[i] + count[i]++;
      column[to] = k;
      if (has_value) kept[to] = value[e];
    }
    __syncthreads();
  }
}

KERNEL product_binary(const Pointer* row_ptr, const int* column, const double* v, int n_rows,
                      int n_lanes, double* out) {
  const int lane = own_lane();
  const Pointer i = own_item();
  if (lane >= n_lanes || i >= n_rows) return;
  double sum = 0.0;
  for (Pointer e = row_ptr[i]; e < row_ptr[i + 1]; ++e) sum += v[at(column[e], lane, n_lanes)];
  out[at(i, lane, n_lanes)] += sum;
}

KERNEL product_valued(const Pointer* row_ptr, const int* column, const double* value, const double* v,
                      int n_rows, int n_lanes, double* out) {
  const int lane = own_lane();
  const Pointer i = own_item();
  if (lane >= n_lanes || i >= n_rows) return;
  double sum = 0.0;
  for (Pointer e = row_ptr[i]; e < row_ptr[i + 1]; ++e)
    sum += value[e] * v[at(column[e], lane, n_lanes)];
  out[at(i, lane, n_lanes)] += sum;
}

KERNEL product_dense(const double* blocks, const int* slots, const double* v, int n_slots,
                     int n_columns, int block_rows, int n_rows, int n_lanes, double* out) {
  const int lane = own_lane();
  const Pointer i = own_item();
  if (lane >= n_lanes || i >= n_rows) return;
  const double* x = blocks + i / block_rows * n_slots * block_rows + i % block_rows;
  double sum = 0.0;
  for (int k = 0; k < n_columns; ++k)
    sum += x[(Pointer)slots[k] * block_rows] * v[at(k, lane, n_lanes)];
  out[at(i, lane, n_lanes)] += sum;
}

// Some columns of each lane, lane by lane -> column by column, as the products read them.
KERNEL pick_columns(const double* x, const int* chosen, int width, int n_columns, int n_lanes,
                    double* out) {
  const int lane = own_lane();
  const Pointer k = own_item();
  if (lane >= n_lanes || k >= n_columns) return;
  out[at(k, lane, n_lanes)] = x[(Pointer)lane * width + chosen[k]];
}
