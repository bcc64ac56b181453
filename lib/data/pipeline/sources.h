// SPDX-License-Identifier: Apache-2.0
//
// Where elements come from. Each function checks its arguments and returns a dataset; lib/data/source/ and
// lib/data/format/ hold one file per kind.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_DATA_PIPELINE_SOURCES_H_
#define TUTTI_DATA_PIPELINE_SOURCES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/object.h"
#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/element/element.h"
#include "data/file/file_system.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// Rows of a tensor from `begin` on.
struct RowRange {
  int64_t begin = 0;
  int64_t count = 0;
};
using RowRanges = std::vector<RowRange>;

/// A tensor and what it is called. The tensor may borrow the caller's memory (tensor/buffer.h: release callback); the
/// dataset and every element viewing it keep it alive.
struct NamedTensor {
  std::string name;
  tensor::Tensor tensor;
  Role role = Role::feature;
  /// Of slices: the rows that each element has; they may overlap and leave rows out. Null: one row, without its axis.
  std::shared_ptr<const RowRanges> ranges = nullptr;
};

/// What errors are to say about the file that slices came from.
struct SlicesOrigin {
  FileName file = nullptr;   ///< that of all of them
  bool names_files = false;  ///< each one's is what the first tensor says
};

/// One element per index of the first dimension, or per range of rows, a view without copy; there must be as many of
/// every tensor. The number of rows of a range is an unknown dimension.
base::Result<DatasetRef> from_slices(std::vector<NamedTensor> tensors, SlicesOrigin origin = {});

/// Exactly one element: the tensors themselves.
base::Result<DatasetRef> from_tensors(std::vector<NamedTensor> tensors);

/// The numbers start, start + step, ... below (for a negative step: above) stop, as i64 scalars.
base::Result<DatasetRef> from_range(int64_t start, int64_t stop, int64_t step = 1, const std::string &name = "value");

/// Fills the empty `element` with element `index` of pass `epoch` and returns true; false behind the last. Called
/// on the thread that walks, with growing numbers from 0 on, or from where a restored walk goes on. After an interrupt
/// it is asked for the same element again.
using GeneratorFunction = std::function<base::Result<bool>(int64_t epoch, int64_t index, Element &element)>;

/// What a function gives. An error consumes its element. Several walks may call it at once.
base::Result<DatasetRef> from_generator(ElementSpec spec, GeneratorFunction function);

/// An IDX file (the format of MNIST), plain or gzip.
struct IdxFile {
  std::string name;
  std::string path;
  Role role = Role::feature;
};

/// The slices of one or more IDX files. DATA_LOSS "corrupt IDX" names file, offset and what was expected there.
base::Result<DatasetRef> from_idx_files(const std::vector<IdxFile> &files, const FileSystems *systems = nullptr,
                                        const base::Ref<base::CancelToken> &cancel = {});

/// A feed: the host pushes elements, one walk takes them out. Bounded: push() waits while `capacity` elements are
/// waiting to be taken.
///
///   TUTTI_ASSIGN(base::Ref<Feed> feed, Feed::create(spec, 128));
///   Pipeline pipeline(feed->dataset());         // single pass; put `cache` before a `repeat`
///   producer thread: while (...) TUTTI_TRY(feed->push(...)); feed->end();
///
/// Elements are counted. After a restore the feed expects the element number resume_position() next: the host skips
/// what lies before it. A walk begins when the dataset's iterator is made or restored; restoring a walk whose feed
/// holds elements already is FAILED_PRECONDITION. Threads: all functions may be called from any thread.
class Feed : public base::Object {
 public:
  /// `spec` may contain unknown dimensions, and may be of batches: of 1 to batch_size rows each, as many as one likes.
  static base::Result<base::Ref<Feed>> create(ElementSpec spec, int64_t capacity);

  /// Elements of the feed.
  virtual DatasetRef dataset() = 0;
  /// Adds an element. INVALID_ARGUMENT when it does not fit the spec; FAILED_PRECONDITION after end(), after the walk
  /// is gone, and on the consuming thread when the feed is full; CANCELLED or DEADLINE_EXCEEDED while waiting for room.
  virtual base::Status push(Element element, const base::CancelToken *cancel, base::Deadline deadline) = 0;
  /// No more elements: the walk ends behind the last one.
  virtual base::Status end() = 0;
  /// The walk gets `status` behind the elements pushed so far, as the cause of its error.
  virtual base::Status fail(base::Status status) = 0;

  /// Number of the first element that the current walk needs: 0, or what a restored state says.
  virtual int64_t resume_position() const = 0;
  /// Waits until a walk has begun (made, and restored if it will be: its first next()); then resume_position() is
  /// final.
  virtual base::Status wait_started(const base::CancelToken *cancel, base::Deadline deadline) = 0;
  /// Elements pushed, counted from resume_position().
  virtual int64_t pushed() const = 0;
  /// Elements waiting to be taken.
  virtual int64_t waiting() const = 0;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_SOURCES_H_
