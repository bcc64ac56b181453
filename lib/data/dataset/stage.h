// SPDX-License-Identifier: Apache-2.0
//
// Stage: the working part of an iterator, one per transform and source, each drawing from its inputs. And RandomAccess:
// the elements of one pass by position, which lets a shuffle move positions instead of rows and a batch be one gather.
//
//   slices ── shuffle ── batch
//   RandomAccess(slices) ← positions permuted ← IndexedStage::next_rows(targets, 64): 64 rows copied into the batch
//   buffer
//
// Rows: where shapes are static (ElementSpec::is_static), an element is one row of fixed size per component, and
// next_rows() and gather() write rows straight to where they are wanted.
//
// Errors: an element that fails is consumed, and the next call goes on behind it, so what comes later does not depend
// on how elements are grouped.
//
// Interrupts (base::is_interrupt): when the token ends a wait, or is found to have ended as another element is asked
// for (interrupt_check.h; Dataset::walk() sees to that for all inputs of a stage), nothing is consumed. What a stage
// has gathered by then stays in it, and the next call goes on there: a walk with interrupts gives the same elements as
// one without. save() shows the state after the last element given out all the same, so a stage that gathers keeps the
// state of its input from before.
//
// Threads: a Stage or RandomAccess belongs to one thread at a time, with all its inputs.
#ifndef TUTTI_DATA_DATASET_STAGE_H_
#define TUTTI_DATA_DATASET_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "base/thread.h"
#include "data/dataset/dataset.h"
#include "data/dataset/interrupt_check.h"
#include "data/dataset/state.h"
#include "data/element/element.h"

namespace tutti::impl::data {

class BytesRows;

/// Where the rows of one component go: row r to data + r * row_bytes.
struct RowTarget {
  std::byte *data = nullptr;
  int64_t row_bytes = 0;

  RowTarget from_row(int64_t row) const { return {data + row * row_bytes, row_bytes}; }
};

/// Bytes of one row of each component; the spec must be static.
std::vector<int64_t> row_bytes(const ElementSpec &spec);
/// All targets moved down by some rows; `moved` is where the result lives.
std::span<const RowTarget> from_row(std::span<const RowTarget> targets, int64_t row, std::vector<RowTarget> &moved);
/// Copies an element with static shapes to row `row` of the targets.
base::Status copy_to_row(const Element &element, std::span<const RowTarget> targets, int64_t row);
/// Nothing more comes of this call: an interrupt, or an error that every further call would give too.
bool is_final(const base::Status &status);
/// The first error of several, but an interrupt goes before all others: then the whole is to be done again.
void keep_worst(base::Status &worst, base::Status status);

class Stage {
 public:
  virtual ~Stage() = default;

  /// As Iterator::next(). `element` may hold anything before; components that fit may be reused.
  virtual base::Result<bool> next(Element &element) = 0;
  /// Writes up to `count` elements as rows; `done` becomes the number of elements consumed. Ok: fewer than `count` only
  /// at the end. An error: some of the consumed ones failed, the rows of all of them are undefined; what is behind them
  /// is for the next call. An interrupt: the `done` rows are good, and the next call is one for the rest. Static specs
  /// only. The default goes through next().
  virtual base::Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done);
  /// Where the last row came from that next_rows() gave, for errors; its file only where it is still known.
  virtual Lineage last_row() const { return scratch_.lineage; }
  /// Gives the next `count` elements (fewer at the end, at least one) as one batch of views if they already lie
  /// together in memory, aligned, without errors; false means that nothing happened.
  virtual bool next_view(int64_t count, Element &batch);

  /// Whether next_texts() is better than next(): for elements of one text each, which can be written side by side.
  virtual bool gives_texts() const { return false; }
  /// As next_rows(), for elements of one text (a scalar of dtype bytes), which are added to `rows`. A failing one adds
  /// none. Only where gives_texts() says so.
  virtual base::Status next_texts(BytesRows &rows, int64_t count, int64_t &done);

  /// Appends one object that describes the state after the elements given out so far.
  virtual void save(State &state) const = 0;
  /// Continues from such an object; called before the first next().
  virtual base::Status restore(const base::JsonReader &state) = 0;

 private:
  Element scratch_;  // of the default next_rows()
};

class RandomAccess {
 public:
  virtual ~RandomAccess() = default;

  virtual int64_t size() const = 0;
  /// Writes the elements at `positions` (each in 0 .. size-1) to rows 0, 1, ... of the targets; the first error, or an
  /// interrupt. Static specs only. Overwrites `positions`.
  virtual base::Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) = 0;
  virtual base::Status element(int64_t position, Element &element) = 0;
  /// Where the element at a position came from.
  virtual int64_t lineage(int64_t position) const = 0;
  /// The file it came from. Asked for elements one by one and for errors, not for rows.
  virtual FileName file(int64_t) const { return nullptr; }
  /// Both.
  Lineage lineage_in(int64_t epoch, int64_t position) const { return {epoch, lineage(position), file(position)}; }
  /// As Stage::next_view(), for elements first .. first+count-1.
  virtual bool view(int64_t first, int64_t count, Element &batch);
  /// Gives only these components from now on, in this order, perhaps one several times; false when it always gives all,
  /// and nothing has changed. Called before anything else.
  virtual bool choose(std::span<const size_t> components);
  /// More rows than these gather() computes in steps of so many, one after the other, so it might as well be asked for
  /// them step by step, with a look at the token between. What only copies rows has no steps.
  virtual int64_t rows_at_once() const { return INT64_MAX; }

  /// Does each row of each component lie in memory, as long as this access does? Then locate() tells where, and who
  /// reads a row once needs no copy of it. Static specs only.
  virtual bool lies_in_memory() const { return false; }
  /// rows[i * components + c] becomes the start of component c of the element at positions[i], and positions[i] where
  /// that came from, as lineage() says. Only where lies_in_memory() says so.
  virtual void locate(std::span<int64_t>, std::span<const std::byte *>) {}
  /// Work of locate() for positions up to `end` that can be done before: while other threads are busy with what it gave
  /// last.
  virtual void locate_soon(int64_t end) { (void)end; }
};

/// `status`, which gathering these elements gave, as the error of the first of them that fails by itself too.
base::Status name_failing(RandomAccess &access, int64_t epoch, std::span<const int64_t> positions,
                          const base::Status &status);

/// How a stage gathers rows of its access: in the steps of that, until an interrupt.
class GatherSteps {
 public:
  explicit GatherSteps(const IteratorContext &context) : check_(context), epoch_(context.epoch) {}

  /// As Stage::next_rows(), of `count` rows that there are. `fill` writes the positions of rows first, first + 1, ...;
  /// the same each time.
  base::Status run(RandomAccess &access, int64_t count, std::span<const RowTarget> targets,
                   base::FunctionRef<void(int64_t first, std::span<int64_t> positions)> fill, int64_t &done);

 private:
  const InterruptCheck check_;
  const int64_t epoch_;
  std::vector<int64_t> positions_;
  std::vector<RowTarget> moved_;
};

/// Another order or choice of the positions of an access.
class MappedAccess : public RandomAccess {
 public:
  MappedAccess(std::unique_ptr<RandomAccess> base, int64_t size) : base_(std::move(base)), size_(size) {}
  /// As many as the base has.
  explicit MappedAccess(std::unique_ptr<RandomAccess> base) : base_(std::move(base)), size_(base_->size()) {}

  int64_t size() const override { return size_; }
  base::Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override;
  base::Status element(int64_t position, Element &element) override;
  int64_t lineage(int64_t position) const override;
  FileName file(int64_t position) const override;
  bool lies_in_memory() const override { return base_->lies_in_memory(); }
  void locate(std::span<int64_t> positions, std::span<const std::byte *> rows) override;
  bool choose(std::span<const size_t> components) override { return base_->choose(components); }
  int64_t rows_at_once() const override { return base_->rows_at_once(); }

 protected:
  /// Replaces each position by the position in the base.
  virtual void map(std::span<int64_t> positions) const = 0;

  RandomAccess &base() { return *base_; }

 private:
  std::unique_ptr<RandomAccess> base_;
  int64_t size_;
};

/// Positions first, first + step, ... of an access: take, skip, shard and split.
class StridedAccess : public MappedAccess {
 public:
  StridedAccess(std::unique_ptr<RandomAccess> base, int64_t first, int64_t step, int64_t size)
      : MappedAccess(std::move(base), size), first_(first), step_(step) {}
  bool view(int64_t first, int64_t count, Element &batch) override;

 protected:
  void map(std::span<int64_t> positions) const override;

 private:
  int64_t first_;
  int64_t step_;
};

/// Walks over an access in order; its state is the position.
class IndexedStage : public Stage {
 public:
  IndexedStage(std::unique_ptr<RandomAccess> access, const IteratorContext &context)
      : access_(std::move(access)), epoch_(context.epoch), steps_(context) {}

  base::Result<bool> next(Element &element) override;
  base::Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override;
  Lineage last_row() const override { return position_ == 0 ? Lineage() : access_->lineage_in(epoch_, position_ - 1); }
  bool next_view(int64_t count, Element &batch) override;
  void save(State &state) const override;
  base::Status restore(const base::JsonReader &state) override;

  int64_t size() const { return access_->size(); }
  int64_t position() const { return position_; }
  /// To one in 0 .. size().
  void move_to(int64_t position) { position_ = position; }

 private:
  std::unique_ptr<RandomAccess> access_;
  int64_t epoch_;
  int64_t position_ = 0;
  GatherSteps steps_;
};

/// An IndexedStage if the dataset has access in order, else null.
base::Result<std::unique_ptr<Stage>> open_indexed(const Dataset &dataset, const IteratorContext &context);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_DATASET_STAGE_H_
