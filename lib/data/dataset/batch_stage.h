// SPDX-License-Identifier: Apache-2.0
//
// What transforms that make batches have in common: they take elements until there are enough of them and join them.
//
// What is gathered when an interrupt comes stays, and the next call goes on with it. A failing row takes its batch
// along; the next batch begins where it would have begun anyway.
//
// Threads: as for Stage.
#ifndef TUTTI_DATA_DATASET_BATCH_STAGE_H_
#define TUTTI_DATA_DATASET_BATCH_STAGE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "data/dataset/stage.h"
#include "data/dataset/state.h"
#include "data/element/bytes_rows.h"
#include "data/element/element.h"

namespace tutti::impl::data {

/// The spec of batches of such elements; exact_batches is left as it is. INVALID_ARGUMENT when a rank is too high.
base::Result<ElementSpec> batch_spec(const ElementSpec &rows, int64_t batch_size);
/// How many batches so many rows make.
Cardinality batches_of(Cardinality rows, int64_t batch_size, bool drop_remainder);

class BatchStage : public Stage {
 public:
  BatchStage(const char *kind, std::unique_ptr<Stage> input, int64_t batch_size, bool drop_remainder, int64_t epoch)
      : input_(std::move(input)),
        batch_size_(batch_size),
        kind_(kind),
        drop_remainder_(drop_remainder),
        epoch_(epoch) {}

  /// For batches that are parts of larger ones: each begins at row `first` of the next `step` rows. Without it, a batch
  /// begins where the one before has ended.
  void number_rows(int64_t first, int64_t step) {
    first_ = first;
    step_ = step;
  }

  base::Result<bool> next(Element &batch) final;
  void save(State &state) const override;
  base::Status restore(const base::JsonReader &state) override;

 protected:
  /// Gives the rows as they lie in memory, if they lie together.
  virtual bool view_rows(Element &) { return false; }
  /// Takes elements until there are batch_size of them or no more come; counts them in rows_, failing ones too. Errors
  /// go to error_; what comes back is an interrupt.
  virtual base::Status gather() = 0;
  /// Makes a batch of at least one row.
  virtual base::Status join(Element &batch) = 0;
  /// Lets go of what was gathered.
  virtual void forget() = 0;

  std::unique_ptr<Stage> input_;
  const int64_t batch_size_;
  int64_t rows_ = 0;  // of the batch in the making
  base::Status error_;

 private:
  bool is_wanted(int64_t rows) const { return rows == batch_size_ || (rows > 0 && !drop_remainder_); }
  bool view(Element &batch);
  void count_rows() { position_ += rows_ > 0 && step_ > 0 ? step_ : rows_; }

  const char *const kind_;
  const bool drop_remainder_;
  const int64_t epoch_;
  int64_t first_ = 0, step_ = 0;
  int64_t position_ = 0;  // rows given out, of all parts
  bool gathering_ = false;
  State before_;  // of the input, before the batch in the making
};

/// Makes one batch of at least one element.
using JoinElements = std::function<base::Status(std::span<const Element> elements, Element &batch)>;

/// Batches of elements whose shapes are known only when they are there.
class ElementBatchStage : public BatchStage {
 public:
  ElementBatchStage(const char *kind, std::unique_ptr<Stage> input, int64_t batch_size, bool drop_remainder,
                    int64_t epoch, JoinElements join)
      : BatchStage(kind, std::move(input), batch_size, drop_remainder, epoch), join_(std::move(join)) {}

 protected:
  base::Status gather() override;
  base::Status join(Element &batch) override {
    batch.lineage.file = file_of(elements_);
    return join_(elements_, batch);
  }
  void forget() override { elements_.clear(); }

 private:
  const JoinElements join_;
  std::vector<Element> elements_;
};

/// Batches of elements of one text each, which their source writes side by side.
class TextBatchStage : public BatchStage {
 public:
  TextBatchStage(const char *kind, std::unique_ptr<Stage> input, int64_t batch_size, bool drop_remainder, int64_t epoch)
      : BatchStage(kind, std::move(input), batch_size, drop_remainder, epoch) {}

 protected:
  base::Status gather() override;
  base::Status join(Element &batch) override;
  void forget() override { has_begun_ = false; }

 private:
  BytesRows texts_;
  bool has_begun_ = false;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_DATASET_BATCH_STAGE_H_
