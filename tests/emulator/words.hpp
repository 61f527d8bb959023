// The words of CUDA C++.
#pragma once
#include <cmath>
#include <cstdint>

#include "shared.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)

#define threadIdx (emulator::machine.now->index)
#define blockIdx (emulator::machine.now->block->index)
#define blockDim (emulator::machine.block)
#define gridDim (emulator::machine.grid)

// In CUDA these are an array and a pointer.
#define SHARED(T, name, n)      \
  static const char name##_key = 0; \
  const auto name = emulator::shared_array<T>(&name##_key, #name, n)
template <class T>
using SharedPointer = emulator::Cells<T>;

#define EMULATOR_TEXT(x) #x
#define EMULATOR_LINE(x) EMULATOR_TEXT(x)
#define EMULATOR_SITE __FILE__ ":" EMULATOR_LINE(__LINE__)

#define __syncthreads() emulator::block_barrier(EMULATOR_SITE)
#define __syncwarp() emulator::warp_barrier(EMULATOR_SITE)

// The value that another lane of the warp passed to the same shuffle.
template <class T>
T emulate_shuffle(const char* site, T value, int source) {
  static_assert(sizeof(T) <= 8, "one word at most");
  const emulator::Thread& me = *emulator::machine.now;
  emulator::Warp& warp = me.block->warps[me.number / 32];
  uint64_t* words = warp.value[warp.meeting.epoch % 2];
  uint64_t word = 0;
  memcpy(&word, &value, sizeof(T));
  words[me.number % 32] = word;
  emulator::warp_barrier(site);
  T other;
  memcpy(&other, &words[source & 31], sizeof(T));
  return other;
}

inline int emulate_lane() { return emulator::machine.now->number % 32; }

inline int emulate_in_warp(int lane) { return lane < 0 || lane > 31 ? emulate_lane() : lane; }

#define __shfl_sync(mask, v, source) emulate_shuffle(EMULATOR_SITE, v, source)
#define __shfl_xor_sync(mask, v, bits) emulate_shuffle(EMULATOR_SITE, v, emulate_lane() ^ (bits))
#define __shfl_up_sync(mask, v, by) emulate_shuffle(EMULATOR_SITE, v, emulate_in_warp(emulate_lane() - (by)))
#define __shfl_down_sync(mask, v, by) emulate_shuffle(EMULATOR_SITE, v, emulate_in_warp(emulate_lane() + (by)))

inline void __threadfence() {}

// Others may come before an atomic operation, and see what it did before this thread goes on.
template <class F>
auto emulate_atomic(F change) {
  emulator::pause();
  auto before = change();
  ++emulator::machine.n_moves;
  return before;
}

template <class T>
T atomicAdd(T* at, T value) {
  return emulate_atomic([=] { T old = *at; *at = old + value; return old; });
}
template <class T>
T atomicOr(T* at, T value) {
  return emulate_atomic([=] { T old = *at; *at = old | value; return old; });
}
template <class T>
T atomicExch(T* at, T value) {
  return emulate_atomic([=] { T old = *at; *at = value; return old; });
}
template <class T>
T atomicCAS(T* at, T compare, T value) {
  return emulate_atomic([=] { T old = *at; if (old == compare) *at = value; return old; });
}

// Flags between blocks: what was written before a flag is seen by whoever sees the flag.
inline int load_acquire(const int* flag) {
  emulator::pause();
  return *flag;
}
inline void store_release(int* flag, int value) {
  *flag = value;
  ++emulator::machine.n_moves;
  emulator::rest();
}

inline int __popcll(unsigned long long word) { return __builtin_popcountll(word); }
using std::copysign;
using std::exp;
using std::fabs;
using std::fmax;
using std::fmin;
using std::log;
using std::max;
using std::min;
using std::sqrt;
