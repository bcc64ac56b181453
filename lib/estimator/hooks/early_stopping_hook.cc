// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/early_stopping_hook.h"

#include <cmath>
#include <memory>
#include <utility>

#include "base/name_suggestions.h"

namespace tutti::impl::estimator::hooks {

using base::invalid_argument;
using base::Json;
using base::JsonReader;
using base::Result;
using base::Status;

namespace {

class Watch {
 public:
  explicit Watch(EarlyStoppingOptions options)
      : options_(std::move(options)), best_(options_.higher_is_better ? -HUGE_VAL : HUGE_VAL) {}

  Result<Answer> handle(const Event &event) {
    const bool training = event.kind == EventKind::step;
    if (event.kind != EventKind::evaluated && !training) return Answer::go_on;
    if (training != (options_.every_steps > 0)) return Answer::go_on;
    const double *value = event.find(options_.value);
    if (value == nullptr) return missing(event);
    // A value that is not a number is never better.
    const bool better = options_.higher_is_better ? *value > best_ : *value < best_;
    if (better) best_ = *value;
    if (better || best_step_ < 0) best_step_ = event.step;
    const bool waited = event.step - best_step_ >= options_.patience_steps;
    return waited && event.step >= options_.min_steps ? Answer::stop : Answer::go_on;
  }

  Json save() const { return base::JsonObject{{"best", best_}, {"best_step", best_step_}}; }

  Status restore(const Json &state) {
    const JsonReader reader(state, "early_stopping");
    TUTTI_ASSIGN(best_, reader.get_double("best"));
    TUTTI_ASSIGN(best_step_, reader.get_integer("best_step"));
    return Status();
  }

 private:
  Status missing(const Event &event) const {
    std::vector<std::string> names;
    for (const NamedNumber &number : event.values) {
      if (number.is_number()) {
        names.push_back(number.name);
      } else if (number.name == options_.value) {
        return invalid_argument("'", options_.value, "' is a tensor of shape ", number.elements.shape(),
                                ", early stopping needs a number");
      }
    }
    return invalid_argument("there is no value '", options_.value, "'", base::but_there_are(options_.value, names));
  }

  const EarlyStoppingOptions options_;
  double best_;
  int64_t best_step_ = -1;  // none yet
};

}  // namespace

Result<Hook> early_stopping_hook(EarlyStoppingOptions options) {
  if (options.value.empty()) return invalid_argument("early stopping needs the name of a value");
  if (options.patience_steps < 1) {
    return invalid_argument("early_stopping_patience_steps is ", options.patience_steps, ", expected at least 1");
  }
  if (options.min_steps < 0)
    return invalid_argument("early_stopping_min_steps is ", options.min_steps, ", expected at least 0");
  if (options.every_steps < 0)
    return invalid_argument("early_stopping_every_steps is ", options.every_steps, ", expected at least 0");
  Hook hook;
  hook.name = "early_stopping";
  hook.every_steps = options.every_steps;
  if (options.every_steps > 0) hook.values = {options.value};
  const auto watch = std::make_shared<Watch>(std::move(options));
  hook.function = [watch](const Event &event) { return watch->handle(event); };
  hook.save = [watch] { return watch->save(); };
  hook.restore = [watch](const Json &state) { return watch->restore(state); };
  return hook;
}

}  // namespace tutti::impl::estimator::hooks
