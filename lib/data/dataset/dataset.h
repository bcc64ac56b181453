// SPDX-License-Identifier: Apache-2.0
//
// Dataset: an immutable description of a sequence of elements, and Iterator: one walk over it.
//
//   Pipeline pipeline(from_slices({{"x", x}, {"y", y, Role::label}}));
//   pipeline.apply("shuffle", {{"buffer_size", int64_t{1000}}}).apply("batch", {{"batch_size", int64_t{64}}});
//   TUTTI_ASSIGN(DatasetRef dataset, pipeline.build());
//   IteratorContext context;                  // seed, epoch, cancel token, who runs graphs
//   TUTTI_ASSIGN(std::unique_ptr<Iterator> iterator, dataset->make_iterator(context));
//   for (Element element;;) {
//     TUTTI_ASSIGN(bool more, iterator->next(element));
//     if (!more) break;
//   }
//
// Order and bytes are a function of (dataset, seed, epoch) alone: not of threads, of prefetching or of the number of
// replicas. save() after n elements describes the state after exactly these n, however far background threads have run
// ahead; an iterator restored from it continues with element n + 1, byte for byte.
//
// Errors: next() may fail for one element (a failing map); that element is then gone and the next call goes on behind
// it. An error that is final (a failed source) comes back from every further call. While the token is cancelled or its
// deadline has passed, every call says so, and nothing is lost: once the deadline has moved, the walk goes on where it
// stood. Background threads of the walk follow the token's level alone.
//
// The error of an element has the details element and epoch, where it was numbered before the stage that failed (its
// Lineage), and file, what it was read from, where that is known: rows that were copied in bulk, batches of several
// files and what a cache in a file keeps have none. Where several elements were computed together and it cannot be told
// which one failed, element is the last of them and the detail elements their number.
// Every error has the detail stage, what the walk's report calls the stage that failed (WalkReport::name_of()).
//
// Threads: a Dataset may be shared by all threads. An Iterator belongs to one thread at a time.
#ifndef TUTTI_DATA_DATASET_DATASET_H_
#define TUTTI_DATA_DATASET_DATASET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "base/log.h"
#include "base/object.h"
#include "base/status.h"
#include "data/element/element.h"
#include "data/graph/graph_runner.h"

namespace tutti::impl::data {

class BufferBudget;
class CurrentDraw;
class Dataset;
class Fingerprint;
class Iterator;
class RandomAccess;
class Stage;
class State;
class WalkReport;
class WorkerProcesses;
class WorkerThreads;
struct GraphPlan;
struct Recipe;
struct WorkerPart;
using DatasetRef = base::Ref<Dataset>;

/// What a walk depends on from outside. Copied; the objects behind it are shared.
struct IteratorContext {
  /// Null = never cancelled; make_iterator() replaces it by a child. Honoured in every wait and before every element of
  /// every stage (interrupt_check.h); its deadline, which may move, on the caller's thread.
  base::Ref<base::CancelToken> cancel;
  /// Seed of everything random in the pipeline.
  int64_t seed = 0;
  /// Number of the pass. A `repeat` inside the pipeline counts passes itself, starting from this one.
  int64_t epoch = 0;
  /// Threads that a transform with automatic parallelism may use; 0 = the cores of the process.
  int32_t threads = 0;
  /// If not, stages may give elements as they are ready, in another order than without threads; then what is given is
  /// no function of the seed any more.
  bool keeps_order = true;
  /// The option `deterministic` cannot turn keeps_order off: others count the same elements.
  bool requires_order = false;
  /// Who runs graphs; null makes maps and filters by graph an error.
  std::shared_ptr<GraphRunner> graphs;
  /// Who is told of elements that are left out; null: nobody.
  base::Ref<base::Logger> logger;
  /// A map that the consumer runs itself, trailing_device_map() (device_graph.h): elements are what goes into it, with
  /// the states that they have behind it. Null: none.
  const Dataset *left_map = nullptr;
  // Set by make_iterator():
  std::shared_ptr<CurrentDraw> draw;
  std::shared_ptr<WorkerThreads> workers;
  std::shared_ptr<WorkerProcesses> processes;
  std::shared_ptr<BufferBudget> buffers;
  std::shared_ptr<WalkReport> report;  // null: nobody counts
};

/// An immutable description. Made by the functions of sources.h and by Pipeline.
class Dataset : public base::Object {
 public:
  /// What the transform or source is called: "slices", "shuffle".
  const std::string &kind() const { return kind_; }
  const ElementSpec &spec() const { return spec_; }
  /// Elements of one pass.
  Cardinality cardinality() const { return cardinality_; }
  /// The datasets this one draws from.
  const std::vector<DatasetRef> &inputs() const { return inputs_; }
  /// Shuffles between here and the sources; tells the random streams of several shuffles apart.
  int32_t shuffle_depth() const { return shuffle_depth_; }
  /// What a pipeline made it of (fingerprint.h); null when it was made otherwise.
  const std::shared_ptr<const Recipe> &recipe() const { return recipe_; }
  /// For Pipeline, before anybody else knows the dataset.
  void set_recipe(std::shared_ptr<const Recipe> recipe) { recipe_ = std::move(recipe); }
  /// Of which dataset it is a worker's part (division.h); null when nobody divided it.
  const std::shared_ptr<const WorkerPart> &part() const { return part_; }
  /// For who divides, before anybody else knows the dataset.
  void set_part(std::shared_ptr<const WorkerPart> part) { part_ = std::move(part); }

  /// A new walk from the first element.
  base::Result<std::unique_ptr<Iterator>> make_iterator(IteratorContext context) const;

  // For transforms (stage.h).

  /// The working part of an iterator; `context` as make_iterator() completed it.
  virtual base::Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const = 0;
  /// The same for the dataset behind it, counted in the context's report.
  base::Result<std::unique_ptr<Stage>> walk(const IteratorContext &context) const;
  /// What a caller means to do with a random access.
  enum class Access {
    in_order,  // read forward, perhaps not to the end: only what costs nothing before it is read
    anywhere,  // read everything in any order: filling a cache first is in order
  };
  /// The elements of one pass by position; null when the dataset has no such access.
  virtual base::Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context,
                                                                    Access access) const;
  /// What a map does that asks to be run on devices; null for all other datasets.
  virtual const GraphPlan *device_plan() const { return nullptr; }
  /// Of a source of files that are read one after the other: how many there are; 0 for all other datasets.
  virtual int64_t file_count() const { return 0; }
  /// The same source of some of its files, in this order. Only where file_count() is not 0.
  virtual base::Result<DatasetRef> with_files(const std::vector<int64_t> &files) const;
  /// Adds what decides its elements, beyond kind and spec, for a dataset that no pipeline made; false when it cannot
  /// tell. Sources of data in memory can.
  virtual bool describe(Fingerprint &) const { return false; }

 protected:
  Dataset(std::string kind, ElementSpec spec, Cardinality cardinality, std::vector<DatasetRef> inputs);

  int32_t shuffle_depth_;

 private:
  std::string kind_;
  ElementSpec spec_;
  Cardinality cardinality_;
  std::vector<DatasetRef> inputs_;
  std::shared_ptr<const Recipe> recipe_;
  std::shared_ptr<const WorkerPart> part_;
};

/// One walk over a dataset; owns all progress.
class Iterator {
 public:
  Iterator(DatasetRef dataset, IteratorContext context, std::unique_ptr<Stage> stage);
  ~Iterator();

  const ElementSpec &spec() const { return dataset_->spec(); }
  const Dataset &dataset() const { return *dataset_; }
  /// The map that is left to the consumer: then next() gives what goes into it, not what spec() says. Null: none.
  const Dataset *left_map() const { return context_.left_map; }
  /// Seed of everything random in the walk.
  int64_t seed() const { return context_.seed; }
  /// Fills `element` and returns true, or returns false at the end, again and again. An interrupt comes at the latest
  /// with the end of the element that some stage is at: one call of a user's function, or what is computed at once.
  base::Result<bool> next(Element &element);
  /// As next() where nothing need be waited for, nor computed for long; else an interrupt, if the deadline of the token
  /// has passed.
  base::Result<bool> next_if_ready(Element &element);
  /// The walk's own token, below that of its context. Its deadline belongs to whoever uses the iterator: moved to the
  /// past, it interrupts a next() on another thread.
  base::CancelToken &token() const { return *context_.cancel; }
  /// As next(), but the following next() (or peek()) gives the same element, and save() does not count it. `ahead`: the
  /// one behind so many. Behind the end or an error nothing is looked at, and that comes again.
  base::Result<bool> peek(Element &element, size_t ahead = 0);
  /// As peek() where nothing need be waited for; see next_if_ready().
  base::Result<bool> peek_if_ready(Element &element, size_t ahead = 0);
  /// So that later looks so many elements ahead need no more memory than that of the elements.
  void make_room_ahead(size_t elements);
  /// The element that was peeked at last will not be given out; it counts for save() with the one that follows it.
  void pass_over_peeked();

  /// What the walk has cost until now, stage by stage, and what limits it (walk_report.h). From any thread.
  base::Json report() const;

  /// The state after the elements given out so far, as JSON.
  base::Json save() const;
  /// Continues from a saved state of an equal dataset. Before the first next() only. INVALID_ARGUMENT names the place
  /// where the state does not fit the pipeline.
  base::Status restore(const base::Json &state);

 private:
  class Peeked;
  base::Result<bool> draw(Element &element);
  template <typename Draw>
  base::Result<bool> peek_by(Draw draw, Element &element, size_t ahead);

  DatasetRef dataset_;
  IteratorContext context_;
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<Peeked> peeked_;
  bool started_ = false;
};

/// The first elements, at most `count` of them, by a walk of its own. Not for a feed, which has only one walk.
base::Result<std::vector<Element>> peek(const Dataset &dataset, int64_t count, const IteratorContext &context);

/// Whether a walk runs nothing but the library's own code between waits that its token ends: no function of the user,
/// no file.
bool runs_own_code_only(const Dataset &dataset);

/// Warnings about well-known bad orders of transforms, each with what is better; tutti/dataset.h lists them. Empty when
/// there is nothing to say.
base::Result<std::vector<std::string>> lint(const Dataset &dataset);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_DATASET_DATASET_H_
