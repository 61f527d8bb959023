// Shared memory that watches its readers and writers.
#pragma once
#include <cstring>

#include "schedule.hpp"

namespace emulator {

// When a thread touched a cell, in barriers of its block and of its warp.
struct Touch {
  int thread = -1;
  long block_epoch = -1, warp_epoch = -1;

  static Touch now() {
    const Thread& me = *machine.now;
    return {me.number, me.block->barrier.epoch, me.warp_epoch()};
  }

  // Whether nothing orders this touch and a later one.
  bool races(const Touch& later) const {
    if (thread < 0 || thread == later.thread || block_epoch != later.block_epoch) return false;
    return thread / 32 != later.thread / 32 || warp_epoch == later.warp_epoch;
  }
};

struct Watch {
  Touch written, read, read_by_another;  // the last of each; two readers of different threads
};

struct SharedCells {
  std::vector<Watch> watches;
  std::vector<char> bytes;
};

// The element `cells[i]`: reading and assigning are looked at.
template <class T>
class Cell {
 public:
  Cell(T* value, Watch* watch, const char* name) : value_(value), watch_(watch), name_(name) {}

  operator T() const {
    const Touch now = Touch::now();
    if (watch_->written.thread < 0) complain("is read before it is written");
    if (watch_->written.races(now)) complain("is read and written without a barrier between");
    if (watch_->read.thread != now.thread) watch_->read_by_another = watch_->read;
    watch_->read = now;
    return *value_;
  }

  T operator=(T value) {
    const Touch now = Touch::now();
    if (watch_->written.races(now)) complain("is written twice without a barrier between");
    if (watch_->read.races(now) || watch_->read_by_another.races(now))
      complain("is read and written without a barrier between");
    watch_->written = now;
    return *value_ = value;
  }

  T operator=(const Cell& other) { return *this = (T)other; }
  T operator+=(T value) { return *this = (T)*this + value; }

 private:
  void complain(const char* what) const {
    fail(std::string("race: shared memory `") + name_ + "` " + what + " (" + machine.now->name() + ")");
  }

  T* value_;
  Watch* watch_;
  const char* name_;
};

// What stands for a pointer to shared memory.
template <class T>
class Cells {
 public:
  Cells(SharedCells& cells, const char* name, long first = 0)
      : cells_(&cells), name_(name), first_(first) {}

  Cell<T> operator[](long k) const {
    const long at = first_ + k;
    if (at < 0 || at >= (long)cells_->watches.size())
      fail(std::string("shared memory `") + name_ + "` has no element " + std::to_string(at));
    return {(T*)cells_->bytes.data() + at, &cells_->watches[at], name_};
  }

  Cells operator+(long k) const { return {*cells_, name_, first_ + k}; }

 private:
  SharedCells* cells_;
  const char* name_;
  long first_;
};

template <class T>
Cells<T> shared_array(const void* key, const char* name, long size) {
  auto& found = machine.now->block->shared[key];
  if (!found) {
    found = std::make_unique<SharedCells>();
    found->watches.resize(size);
    found->bytes.assign(size * sizeof(T), (char)0xCB);
  }
  return {*found, name};
}

}  // namespace emulator
