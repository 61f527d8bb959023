// Fibers, blocks, and who goes on next.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace emulator {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
  long size() const { return (long)x * y * z; }
};

// What a launch is asked for, as Python passes it.
struct Launch {
  unsigned grid[3], block[3];
  int resident;   // blocks that are under way at once
  unsigned seed;  // 0: threads and blocks in order
};

struct Block;

enum class State { ready, waiting, finished };

// One CUDA thread.
struct Thread {
  Block* block = nullptr;
  Dim index;
  int number = 0;
  State state = State::ready;
  int held = 0;  // rounds that it is left behind
  long warp_epoch() const;
  std::string name() const;
};

// Threads that wait for each other: all of a block, or all of a warp.
struct Meeting {
  int expected = 0, arrived = 0;
  const char* site = nullptr;  // the barrier in the source
  long epoch = 0;              // meetings held
};

struct Warp {
  Meeting meeting;
  uint64_t value[2][32] = {};  // shuffles write to one and read from it while the next uses the other
};

struct SharedCells;

struct Block {
  Dim index;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Meeting barrier;
  std::map<const void*, std::unique_ptr<SharedCells>> shared;
  int n_finished = 0;
};

inline long Thread::warp_epoch() const { return block->warps[number / 32].meeting.epoch; }

inline std::string Thread::name() const {
  auto text = [](Dim d) {
    return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
  };
  return "thread " + text(index) + " of block " + text(block->index);
}

// A stack on which one thread after another is run.
struct Fiber {
  static constexpr size_t stack_size = 64 << 10;
  std::unique_ptr<char[]> stack{new char[stack_size]};
  ucontext_t start;
  jmp_buf place;
  bool is_started = false;
  Thread* thread = nullptr;
};

struct Machine {
  Dim grid, block;
  void (*kernel)(void**) = nullptr;  // with the arguments of the launch
  void** arguments = nullptr;
  Thread* now = nullptr;      // the thread that runs
  Fiber* fiber = nullptr;     // and its stack
  long n_moves = 0;           // barriers passed, flags set, threads ended
  std::string failure;
  std::mt19937* random = nullptr;  // unless threads go on in order
  jmp_buf place;              // of the scheduler
};

inline Machine machine;

// --------------------------------------------------------------------- from one stack to another

// Jumps, because switching contexts by the C library takes a system call each time.
inline void leave() {
  if (_setjmp(machine.fiber->place) == 0) _longjmp(machine.place, 1);
}

inline void finish();

inline void fiber_main() {
  for (;;) {
    machine.kernel(machine.arguments);
    finish();
    leave();
  }
}

inline void enter(Fiber& fiber) {
  machine.fiber = &fiber;
  machine.now = fiber.thread;
  if (_setjmp(machine.place) != 0) return;
  if (fiber.is_started) _longjmp(fiber.place, 1);
  fiber.is_started = true;
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = fiber.stack.get();
  fiber.start.uc_stack.ss_size = Fiber::stack_size;
  makecontext(&fiber.start, fiber_main, 0);
  setcontext(&fiber.start);
}

// ------------------------------------------------------------------------ what a thread can do

// Stop the launch. The thread never goes on.
[[noreturn]] inline void fail(const std::string& what) {
  if (machine.failure.empty()) machine.failure = what;
  for (;;) leave();
}

// Wait for the threads [first, last) of the block.
inline void wait_for_others(Meeting& meeting, const char* site, int first, int last) {
  Thread& me = *machine.now;
  if (meeting.arrived && meeting.site != site)
    fail("divergence: " + me.name() + " is at " + site + " while others wait at " + meeting.site);
  meeting.site = site;
  if (++meeting.arrived < meeting.expected) {
    me.state = State::waiting;
    leave();
    return;
  }
  meeting.arrived = 0;
  ++meeting.epoch;
  ++machine.n_moves;
  for (int t = first; t < last; ++t) {
    Thread& other = me.block->threads[t];
    if (other.state == State::waiting) other.state = State::ready;
  }
  leave();  // whoever comes last is not always the first to go on
}

inline void block_barrier(const char* site) {
  Block& block = *machine.now->block;
  if (block.n_finished) fail(std::string("divergence: a thread has ended, others wait at ") + site);
  wait_for_others(block.barrier, site, 0, (int)block.threads.size());
}

inline void warp_barrier(const char* site) {
  const int warp = machine.now->number / 32;
  Meeting& meeting = machine.now->block->warps[warp].meeting;
  if (meeting.expected < 32) fail(std::string("incomplete warp at ") + site);
  wait_for_others(meeting, site, 32 * warp, 32 * warp + 32);
}

// Let others run: where a thread looks at what another may have changed.
inline void pause() { leave(); }

// Let others run, sometimes for very long: where a thread told them to.
inline void rest() {
  if (machine.random) {
    std::mt19937& random = *machine.random;
    machine.now->held = random() % (1u << random() % 10);
  }
  leave();
}

inline void finish() {
  Thread& me = *machine.now;
  Block& block = *me.block;
  me.state = State::finished;
  ++block.n_finished;
  ++machine.n_moves;
  if (block.barrier.arrived)
    fail("divergence: " + me.name() + " has ended, others wait at " + block.barrier.site);
  Meeting& warp = block.warps[me.number / 32].meeting;
  if (warp.arrived) fail("divergence: " + me.name() + " has ended, others wait at " + warp.site);
}

// ------------------------------------------------------------------------------ the scheduler

inline Dim place_of(long number, Dim in) {
  return {(unsigned)(number % in.x), (unsigned)(number / in.x % in.y),
          (unsigned)(number / ((long)in.x * in.y))};
}

// Fibers that no block uses: memory for stacks would take longer than most launches.
inline std::vector<std::unique_ptr<Fiber>> spare_fibers;

// A block on the fibers it was given.
struct Resident {
  Block block;
  std::vector<std::unique_ptr<Fiber>> fibers;

  explicit Resident(long n_threads) : fibers(n_threads) {
    block.threads.resize(n_threads);
    block.warps.resize((n_threads + 31) / 32);
    for (auto& fiber : fibers) {
      if (spare_fibers.empty()) spare_fibers.push_back(std::make_unique<Fiber>());
      fiber = std::move(spare_fibers.back());
      spare_fibers.pop_back();
    }
  }

  ~Resident() {
    for (auto& fiber : fibers) {
      // After a failure a thread is left where it was, and the next begins on a clean stack.
      if (!machine.failure.empty()) fiber->is_started = false;
      spare_fibers.push_back(std::move(fiber));
    }
  }

  void begin(long number) {
    const int n = (int)fibers.size();
    block.index = place_of(number, machine.grid);
    block.shared.clear();
    block.barrier = {n, 0, nullptr, 0};
    block.n_finished = 0;
    for (size_t w = 0; w < block.warps.size(); ++w)
      block.warps[w].meeting = {std::min(32, n - 32 * (int)w), 0, nullptr, 0};
    for (int t = 0; t < n; ++t) {
      block.threads[t] = {&block, place_of(t, machine.block), t};
      fibers[t]->thread = &block.threads[t];
    }
  }

  bool is_done() const { return block.n_finished == (int)fibers.size(); }
};

class Scheduler {
 public:
  explicit Scheduler(const Launch& launch) : launch_(launch), random_(launch.seed) {
    machine.random = launch.seed ? &random_ : nullptr;
  }

  void run() {
    const long n_blocks = machine.grid.size(), n_threads = machine.block.size();
    std::vector<long> order(n_blocks);
    for (long k = 0; k < n_blocks; ++k) order[k] = k;
    if (launch_.seed) std::shuffle(order.begin(), order.end(), random_);
    std::vector<std::unique_ptr<Resident>> residents;
    long next = 0;
    while (next < n_blocks && (int)residents.size() < launch_.resident) {
      residents.push_back(std::make_unique<Resident>(n_threads));
      residents.back()->begin(order[next++]);
    }
    int n_idle = 0;
    while (!residents.empty() && machine.failure.empty()) {
      const long before = machine.n_moves;
      const size_t favourite = random_() % residents.size();
      for (size_t k = 0; k < residents.size(); ++k)
        // Blocks go on at different speeds.
        if (!launch_.seed || k == favourite || random_() % 2) round(*residents[k]);
      n_idle = machine.n_moves == before ? n_idle + 1 : 0;
      if (n_idle > 10000 && machine.failure.empty()) machine.failure = "deadlock: nothing moves any more";
      for (size_t k = 0; k < residents.size();) {
        if (!residents[k]->is_done()) {
          ++k;
        } else if (next < n_blocks) {
          residents[k++]->begin(order[next++]);
        } else {
          residents.erase(residents.begin() + k);
        }
      }
    }
  }

 private:
  // Threads that can go on do, up to their next pause.
  void round(Resident& resident) {
    ready_.clear();
    for (auto& fiber : resident.fibers)
      if (fiber->thread->state == State::ready && fiber->thread->held-- <= 0) ready_.push_back(fiber.get());
    if (launch_.seed) {
      std::shuffle(ready_.begin(), ready_.end(), random_);
      // Some are left behind.
      if (random_() % 2 && !ready_.empty()) ready_.resize(1 + random_() % ready_.size());
    }
    for (Fiber* fiber : ready_) {
      enter(*fiber);
      if (!machine.failure.empty()) return;
    }
  }

  const Launch& launch_;
  std::mt19937 random_;
  std::vector<Fiber*> ready_;
};

// Returns whether all went well; if not, `machine.failure` says what did not.
inline bool run(const Launch& launch, void (*kernel)(void**), void** arguments) {
  machine.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  machine.block = {launch.block[0], launch.block[1], launch.block[2]};
  machine.kernel = kernel;
  machine.arguments = arguments;
  machine.failure.clear();
  Scheduler(launch).run();
  return machine.failure.empty();
}

}  // namespace emulator
