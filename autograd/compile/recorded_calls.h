// RecordedCalls: the calls of a program that a device takes as one.
#pragma once
#include <map>
#include <memory>
#include <unordered_set>
#include <vector>

#include "autograd/compile/graph.h"
#include "autograd/compile/program.h"
#include "core/device/stream.h"
#include "core/graphs/graph.h"

namespace rush::compiler {

// Note [Recorded calls]
// A program gives its calls to the device one by one, and between short ones a fast device waits for the host. Where
// an accelerator records graphs (Note [CUDA graphs]), calls that stand in a row and whose tensors all lie on it, such
// as a step's forward and backward pass up to the optimiser, are recorded after a few runs and from then on given to it
// in one call. The numbers are the same, random ones among them, since the same kernels run. What a graph of the device
// asks of a program is kept here, so that a caller sees no difference:
//   - It reads its inputs where they lay when it was recorded. One that lies elsewhere from run to run, as a batch may,
//     is copied to memory of the recording. In a run where others do (set_data of a parameter), the calls go one by
//     one; after two such runs in a row the program is recorded again, once they have lain still for a while.
//   - It writes its results where it wrote them the last time. So what the caller is given is copied from there. A
//     gradient that a leaf has, and what is kept for the backward pass, is not; if the program still holds one at the
//     next run, that run's calls go one by one, into other memory.
//   - Calls go one by one, too, where something watches them, as the profiler does, and within the capture of a graph
//     of the program's own, as GraphedStep's.
// Left as they are: programs of few kernels, and those of which more would have to be copied than the host's time is
// worth; collectives, which other processes take part in; and what the device refuses, as all that the host has to wait
// for. A recording has the memory of its calls for itself, so calls that make more than a quarter of the device's
// memory are not recorded, nor are more than `kMostPrograms` of one function.
class RecordedCalls {
 public:
  static constexpr size_t kMostPrograms = 8;

  // Segments of calls are recorded that have so many kernels on average; `places` is how many more programs of the
  // function may be.
  RecordedCalls(Program& program, const ProgramEnds& ends, size_t fewest_kernels, std::shared_ptr<size_t> places);
  ~RecordedCalls();

  // Does the program's calls, on what it has been given. Throws what they throw.
  void run();
  // The outputs, and copies of those that lie in the recording's memory and go to the caller.
  std::vector<Tensor> as_returned(std::vector<Tensor> outputs) const;
  // Whether runs are replayed now.
  bool is_recorded() const { return is_recorded_; }

 private:
  // What is read after the calls that make it. A view of an input lies where the input of the run does.
  struct Result {
    Graph::Id id;
    Tensor tensor;  // undefined for such a view
    Graph::Id view_of = Graph::kNone;
    Graph::TensorInfo view = {};  // its storage_offset counts in bytes, from the input's first
  };
  // Calls that stand in a row.
  struct Segment {
    size_t begin, end;
    std::unique_ptr<graphs::Graph> graph = {};
    std::vector<Result> made = {};
    std::vector<Graph::Id> let_go = {};   // read for the last time
    std::vector<Graph::Id> written = {};  // in place
  };
  // What segments read that none of them makes.
  struct Source {
    Graph::Id id;
    bool may_be_copied;
    const void* address = nullptr;  // in the last run
    Tensor last = {};               // what lay there is held until there is a recording: so another lies elsewhere
    bool is_copied = false;
    Tensor copy = {};
  };

  void find_segments();
  size_t end_of_row(size_t begin, const std::unordered_set<int32_t>& made_elsewhere) const;
  void find_sources();

  bool goes_one_by_one() const;
  std::vector<Source*> moved_sources();
  bool is_result_held() const;
  void follow(const Stream& now);
  void run_plainly();
  void run_beside();
  void replay();
  void record(const std::vector<Source*>& moved);
  bool make_copies();
  bool capture(Segment& segment);
  void refuse(const Error& error);
  bool fits_the_device() const;
  bool is_worth_it() const;
  Result result_of(Graph::Id id, const std::vector<Tensor>& before) const;
  void note_results();
  void copy_sources();
  void hand_over(const Segment& segment);
  void forget();
  template <class Run>
  void for_each_segment(const Run& run);

  Program& program_;
  const ProgramEnds ends_;
  const size_t fewest_kernels_;
  const std::shared_ptr<size_t> places_;
  Device device_;  // that records; the CPU where none does
  std::vector<Segment> segments_;
  std::vector<Source> sources_;
  graphs::MempoolId_t pool_ = 0;
  Stream last_;  // where the last replay went
  // What a replay writes and others read, and how many of the recording's own tensors lie in each.
  std::map<const StorageImpl*, uint32_t> results_;
  int runs_ = 0, waits_ = 0, misses_ = 0;
  // Runs in a row in which what cannot be copied lay where it did, and how many there have to be: the more recordings
  // have been of no use, the more.
  int stands_still_ = 0, patience_ = 1;
  bool is_recorded_ = false, is_given_up_ = false;
};

}  // namespace rush::compiler
