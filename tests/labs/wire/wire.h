// Wire: what a rank of lab 17 sends and receives numbers by. The learner's code knows nothing else of the other ranks.
#pragma once
#include <cstdint>

namespace rush::labs {

/// One rank's end of the connections between ranks 0 to size() - 1. Both functions block, as MPI_Ssend and MPI_Recv do.
class Wire {
 public:
  Wire(int rank, int size) : rank_(rank), size_(size) {}
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Sends `count` numbers to rank `to`, which receives as many. It returns when they are there, and not before.
  virtual void send(const float* data, int64_t count, int to) = 0;
  /// Receives `count` numbers from rank `from`, which sends as many.
  virtual void recv(float* data, int64_t count, int from) = 0;

 private:
  const int rank_, size_;
};

}  // namespace rush::labs
