// SPDX-License-Identifier: Apache-2.0
//
// The input of a stage that hands each element to a function of the user. The function sees the token of the walk; one
// that ends for it, because a deadline has passed, has not consumed its element: the next call hands it the same one.
//
//   TUTTI_ASSIGN(const bool more, input_.next());
//   if (!more) return false;
//   TUTTI_TRY(input_.call([&](Element &source) { return function_(source, element); }));
//
// save() shows the state before an element that was kept so.
//
// Threads: as Stage.
#ifndef TUTTI_DATA_CALL_FUNCTION_INPUT_H_
#define TUTTI_DATA_CALL_FUNCTION_INPUT_H_

#include <memory>
#include <utility>

#include "base/cancel.h"
#include "base/function_token.h"
#include "base/status.h"
#include "data/dataset/interrupt_check.h"
#include "data/dataset/stage.h"

namespace tutti::impl::data {

/// The token that the functions of a walk see.
class WalkFunctions {
 public:
  explicit WalkFunctions(const IteratorContext &context)
      : cancel_(context.cancel),
        draw_(context.draw),
        without_deadline_(context.draw == nullptr ? context.cancel : base::CancelToken::create_worker(context.cancel)) {
  }

  /// That of the walk; without its deadline for whoever wants what is ready, which a function may take its time for.
  const base::Ref<base::CancelToken> &token() const {
    return draw_ != nullptr && draw_->ignores_deadline() ? without_deadline_ : cancel_;
  }
  template <typename Function>
  auto call(Function &&function) const {
    const base::FunctionToken scope(token());
    return function();
  }

 private:
  const base::Ref<base::CancelToken> cancel_;
  const std::shared_ptr<const CurrentDraw> draw_;
  const base::Ref<base::CancelToken> without_deadline_;
};

class FunctionInput {
 public:
  FunctionInput(std::unique_ptr<Stage> input, const IteratorContext &context)
      : input_(std::move(input)), functions_(context) {}

  /// Is there an element? The one that an interrupt has left, else the next.
  base::Result<bool> next() {
    if (is_held_) return true;
    before_.clear();
    input_->save(before_);
    base::Result<bool> more = input_->next(element_);
    is_held_ = more.ok() && *more;
    return more;
  }
  const Element &element() const { return element_; }
  /// The result of function(element), a Status or Result. But for an interrupt the element is consumed.
  template <typename Function>
  auto call(Function &&function) {
    auto result = functions_.call([&] { return function(element_); });
    if (!is_interrupted(result)) is_held_ = false;
    return result;
  }
  /// The element that was consumed, for `element`.
  void give_out(Element &element) { std::swap(element, element_); }
  /// Lets go of what the element holds, which a pool may wait for.
  void clear() { element_.components.clear(); }

  void save(State &state) const {
    if (is_held_) {
      state.append(before_);
    } else {
      input_->save(state);
    }
  }
  base::Status restore(const base::JsonReader &state) { return input_->restore(state); }

 private:
  static bool is_interrupted(const base::Status &status) { return base::is_interrupt(status); }
  template <typename T>
  static bool is_interrupted(const base::Result<T> &result) {
    return base::is_interrupt(result.status());
  }

  const std::unique_ptr<Stage> input_;
  const WalkFunctions functions_;
  Element element_;
  bool is_held_ = false;
  State before_;  // of the input, before the element
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_CALL_FUNCTION_INPUT_H_
