// Sums of squares of a sample of rows: see gram_ref.py. Slots of the sample are bits of words, so that
// counts of ones are whole numbers and exact in any order.
#include "prelude.cuh"

#define TILE 16

KERNEL fill_bits(const Pointer* block_ptr, const ShortRow* row, const int* slots, const Flag* is_drawn,
                 const int* start, const int* place, int n_slots, int n_columns, int shift,
                 int n_blocks, int n_words, Word* bits) {
  const int k = blockIdx.x, t = threadIdx.x;
  Word* own = bits + (Pointer)k * n_words;
  for (int w = t; w < n_words; w += THREADS) own[w] = 0;
  __syncthreads();
  for (int b = 0; b < n_blocks; ++b) {
    const Pointer* ptr = block_ptr + (Pointer)b * (n_slots + 1) + slots[k];
    for (Pointer e = ptr[0] + t; e < ptr[1]; e += THREADS) {
      const Pointer i = ((Pointer)b << shift) + row[e];
      if (!is_drawn[i]) continue;
      for (int c = start[i]; c < start[i + 1]; ++c)
        atomicOr(&own[place[c] / 64], (Word)1 << place[c] % 64);
    }
  }
}

// A block of threads counts for a tile of pairs of columns.
KERNEL binary_gram(const Word* bits, int n_columns, int n_words, double* out) {
  SHARED(Word, left, TILE * TILE);
  SHARED(Word, right, TILE * TILE);
  const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
  const int i = blockIdx.y * TILE + y, j = blockIdx.x * TILE + x;
  const int i_read = blockIdx.y * TILE + y, j_read = blockIdx.x * TILE + y;
  int count = 0;
  for (int first = 0; first < n_words; first += TILE) {
    const int w = first + x;
    left[y * TILE + x] = i_read < n_columns && w < n_words ? bits[(Pointer)i_read * n_words + w] : 0;
    right[y * TILE + x] = j_read < n_columns && w < n_words ? bits[(Pointer)j_read * n_words + w] : 0;
    __syncthreads();
    for (int k = 0; k < TILE; ++k) count += __popcll(left[y * TILE + k] & right[x * TILE + k]);
    __syncthreads();
  }
  if (i < n_columns && j < n_columns) out[(Pointer)i * n_columns + j] = count;
}

KERNEL bin_counts(const Word* bits, const int* bin_word, int n_columns, int n_words, int n_bins,
                  double* out) {
  const Pointer own = (Pointer)blockIdx.x * THREADS + threadIdx.x;
  if (own >= (Pointer)n_bins * n_columns) return;
  const Pointer column = own % n_columns, bin = own / n_columns;
  int count = 0;
  for (int w = bin_word[bin]; w < bin_word[bin + 1]; ++w) count += __popcll(bits[column * n_words + w]);
  out[own] = count;
}

// a'b of two tables with the same rows.
KERNEL dense_gram(const double* a, const double* b, int n_rows, int n_left, int n_right, double* out) {
  SHARED(double, left, TILE * TILE);
  SHARED(double, right, TILE * TILE);
  const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
  const int i = blockIdx.y * TILE + y, j = blockIdx.x * TILE + x, i_read = blockIdx.y * TILE + x;
  double sum = 0.0;
  for (int first = 0; first < n_rows; first += TILE) {
    const Pointer r = first + y;
    left[y * TILE + x] = r < n_rows && i_read < n_left ? a[r * n_left + i_read] : 0.0;
    right[y * TILE + x] = r < n_rows && j < n_right ? b[r * n_right + j] : 0.0;
    __syncthreads();
    for (int k = 0; k < TILE; ++k) sum += left[k * TILE + y] * right[k * TILE + x];
    __syncthreads();
  }
  if (i < n_left && j < n_right) out[(Pointer)i * n_right + j] = sum;
}

// Sums of z over the slots where a binary column has a one.
KERNEL mixed_gram(const Word* bits, const double* z, int n_columns, int n_words, int n_dense,
                  double* out) {
  const Pointer own = (Pointer)blockIdx.x * THREADS + threadIdx.x;
  if (own >= (Pointer)n_columns * n_dense) return;
  const Pointer column = own / n_dense, k = own % n_dense;
  double sum = 0.0;
  for (Pointer w = 0; w < n_words; ++w) {
    const Word word = bits[column * n_words + w];
    for (int s = 0; s < 64; ++s)
      if (word >> s & 1) sum += z[(w * 64 + s) * n_dense + k];
  }
  out[own] = sum;
}
