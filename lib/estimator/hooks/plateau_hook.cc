// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/plateau_hook.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/name_suggestions.h"
#include "graph/rate_factor.h"

namespace tutti::impl::estimator::hooks {

using base::invalid_argument;
using base::Json;
using base::JsonReader;
using base::Ref;
using base::Result;
using base::Status;

namespace {

class Plateau {
 public:
  Plateau(PlateauOptions options, Ref<base::Logger> logger)
      : options_(std::move(options)),
        logger_(std::move(logger)),
        best_(options_.higher_is_better ? -HUGE_VAL : HUGE_VAL) {}

  Result<Answer> handle(const Event &event) {
    if (event.kind == EventKind::begin) TUTTI_TRY(event.control->set_host_scalar(graph::kRateFactor, factor_));
    if (event.kind != (options_.every_steps > 0 ? EventKind::step : EventKind::evaluated)) return Answer::go_on;
    const double *value = event.find(options_.value);
    if (value == nullptr) return missing(event);
    if (is_to_reduce(*value)) TUTTI_TRY(reduce(event));
    return Answer::go_on;
  }

  Json save() const {
    return base::JsonObject{{"best", best_}, {"bad", bad_}, {"cooldown", cooldown_}, {"factor", factor_}};
  }

  Status restore(const Json &state) {
    const JsonReader reader(state, "plateau");
    TUTTI_ASSIGN(best_, reader.get_double("best"));
    TUTTI_ASSIGN(bad_, reader.get_integer("bad"));
    TUTTI_ASSIGN(cooldown_, reader.get_integer("cooldown"));
    TUTTI_ASSIGN(factor_, reader.get_double("factor"));
    return Status();
  }

 private:
  /// Counts a check.
  bool is_to_reduce(double value) {
    const bool better =
        options_.higher_is_better ? value > best_ * (1 + options_.threshold) : value < best_ * (1 - options_.threshold);
    if (better) best_ = value;
    bad_ = better ? 0 : bad_ + 1;
    if (cooldown_ > 0) {
      --cooldown_;
      bad_ = 0;
    }
    return bad_ > options_.patience;
  }

  Status reduce(const Event &event) {
    bad_ = 0;
    cooldown_ = options_.cooldown;
    const double reduced = std::max(factor_ * options_.reduction, options_.minimum_factor);
    if (reduced >= factor_) return Status();
    factor_ = reduced;
    if (logger_) {
      logger_->info("step ", event.step, ": '", options_.value, "' is no better than ", best_,
                    ", the learning rate is reduced to ", factor_, " times that of the model");
    }
    return event.control->set_host_scalar(graph::kRateFactor, factor_);
  }

  Status missing(const Event &event) const {
    std::vector<std::string> names;
    for (const NamedNumber &number : event.values) {
      if (number.is_number()) {
        names.push_back(number.name);
      } else if (number.name == options_.value) {
        return invalid_argument("'", options_.value, "' is a tensor of shape ", number.elements.shape(),
                                ", plateau_metric needs a number");
      }
    }
    return invalid_argument("there is no value '", options_.value, "'", base::but_there_are(options_.value, names));
  }

  const PlateauOptions options_;
  const Ref<base::Logger> logger_;
  double best_, factor_ = 1;
  int64_t bad_ = 0, cooldown_ = 0;
};

Status check_plateau(const PlateauOptions &options) {
  if (options.value.empty()) return invalid_argument("plateau_metric is empty, expected the name of a value");
  const std::pair<const char *, int64_t> counts[] = {{"plateau_every_steps", options.every_steps},
                                                     {"plateau_patience", options.patience},
                                                     {"plateau_cooldown", options.cooldown}};
  for (const auto &[name, count] : counts)
    if (count < 0) return invalid_argument(name, " is ", count, ", expected at least 0");
  const std::pair<const char *, double> parts[] = {{"plateau_factor", options.reduction},
                                                   {"plateau_threshold", options.threshold}};
  for (const auto &[name, part] : parts)
    if (!(part >= 0 && part < 1)) return invalid_argument(name, " is ", part, ", expected at least 0 and less than 1");
  if (options.minimum_factor >= 0 && options.minimum_factor <= 1) return Status();
  return invalid_argument("plateau_minimum_factor is ", options.minimum_factor, ", expected a number from 0 to 1");
}

}  // namespace

Result<Hook> plateau_hook(PlateauOptions options, Ref<base::Logger> logger) {
  TUTTI_TRY(check_plateau(options));
  Hook hook;
  hook.name = "plateau";
  hook.every_steps = options.every_steps;
  if (options.every_steps > 0) hook.values = {options.value};
  const auto plateau = std::make_shared<Plateau>(std::move(options), std::move(logger));
  hook.function = [plateau](const Event &event) { return plateau->handle(event); };
  hook.save = [plateau] { return plateau->save(); };
  hook.restore = [plateau](const Json &state) { return plateau->restore(state); };
  return hook;
}

}  // namespace tutti::impl::estimator::hooks
