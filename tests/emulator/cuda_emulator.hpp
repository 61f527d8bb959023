// Runs CUDA C++ kernels on the host, to test them.
//
// Every CUDA thread is a fiber. Barriers and shuffles are rendezvous; several blocks are resident at
// once; a seed decides which thread goes on next, so that what depends on an order of threads comes
// out differently from one seed to the next. Stopped with a message, and never waited for:
//   - threads of a block at different barriers, or gone while others wait at one;
//   - shared memory that two threads touch without a barrier between them, that is read before it is
//     written, or beyond its end;
//   - blocks that wait for each other forever.
//
//   schedule.hpp   fibers, blocks, and who goes on next
//   shared.hpp     shared memory that watches its readers and writers
//   words.hpp      the words of CUDA C++
#pragma once
#include "schedule.hpp"
#include "shared.hpp"
#include "words.hpp"
