// What all kernels share. One source serves NVRTC and, in the tests, a C++ compiler.
#pragma once

typedef long long Pointer;         // place in an array of entries, boundaries of groups
typedef unsigned char Flag;        // 0 or 1
typedef unsigned short ShortRow;   // row within a block of the design
typedef unsigned long long Word;   // 64 bits

#ifdef __CUDACC__
#define SHARED(T, name, n) __shared__ T name[n]
template <class T>
using SharedPointer = T*;

__device__ inline int load_acquire(const int* flag) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
__device__ inline void store_release(int* flag, int value) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
#endif

#define THREADS 256  // of every block
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS, 4)
#define WHOLE_WARP 0xffffffffu
#define NEVER (1.0 / 0.0)

// ---------------------------------------------------------------------------------- who does what
// A launch over (n, R): x is the lane, y the item. Items come first in the grid, which may have 2^31
// blocks in that direction; neighbouring threads read neighbouring lanes.

__device__ inline int own_lane() { return blockIdx.y * blockDim.x + threadIdx.x; }
__device__ inline Pointer own_item() { return (Pointer)blockIdx.x * blockDim.y + threadIdx.y; }
__device__ inline Pointer at(Pointer item, int lane, int n_lanes) { return item * n_lanes + lane; }

// ------------------------------------------------------------- sums of all threads of a block
// In a fixed order: by halves within a warp, then one warp after the other.

__device__ inline double warp_sum(double x) {
  for (int half = 16; half; half >>= 1) x += __shfl_xor_sync(WHOLE_WARP, x, half);
  return x;
}

__device__ inline double warp_max(double x) {
  for (int half = 16; half; half >>= 1) x = fmax(x, __shfl_xor_sync(WHOLE_WARP, x, half));
  return x;
}

// `scratch` has THREADS / 32 elements; barriers inside, so all threads take part.
__device__ inline double block_sum(double x, SharedPointer<double> scratch) {
  x = warp_sum(x);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  double sum = 0.0;
  for (int w = 0; w < THREADS / 32; ++w) sum += scratch[w];
  __syncthreads();
  return sum;
}

__device__ inline double block_max(double x, SharedPointer<double> scratch) {
  x = warp_max(x);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  double most = scratch[0];
  for (int w = 1; w < THREADS / 32; ++w) most = fmax(most, scratch[w]);
  __syncthreads();
  return most;
}
