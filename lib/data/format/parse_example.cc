// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "data/format/example.h"
#include "data/stage.h"
#include "data/transform_parameters.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

// The input's component `record` becomes the features, which stand at its end; the others stay in front.
class ParseExampleStage : public Stage {
 public:
  ParseExampleStage(std::unique_ptr<Stage> input, const ExampleParser &parser, size_t record)
      : input_(std::move(input)), parser_(parser), record_(record) {}

  Result<bool> next(Element &element) override {
    Result<bool> more = input_->next(element);
    if (!more.ok() || !*more) return more;
    const Tensor record = std::move(element.components[record_]);
    element.components.erase(element.components.begin() + static_cast<ptrdiff_t>(record_));
    const size_t others = element.components.size();
    element.components.resize(others + parser_.fields().size());
    TUTTI_TRY(
        in_element(element, parser_.parse(tensor::bytes_at(record, 0), std::span(element.components).subspan(others))));
    return true;
  }

  // Numbers go straight to the rows when there is nothing beside the features.
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    if (targets.size() != parser_.fields().size()) return Stage::next_rows(targets, count, done);
    Status status;
    for (done = 0; done < count && status.ok();) {
      const Result<bool> more = input_->next(scratch_);
      if (more.ok() && !*more) break;
      status = more.ok()
                   ? in_element(scratch_, parser_.parse_row(tensor::bytes_at(scratch_.components[0], 0), targets, done))
                   : more.status();
      if (!base::is_interrupt(status)) ++done;
    }
    return status;
  }

  void save(State &state) const override {
    state.open("parse_example");
    state.key("input");
    input_->save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "parse_example"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  static Status in_element(const Element &element, Status status) {
    return status.ok() ? status : status.with_detail("element", base::concat(element.lineage.index));
  }

  const std::unique_ptr<Stage> input_;
  const ExampleParser &parser_;  // the dataset's
  const size_t record_;
  Element scratch_;
};

class ParseExampleDataset : public Dataset {
 public:
  ParseExampleDataset(const DatasetRef &input, ElementSpec spec, ExampleParser parser, size_t record)
      : Dataset("parse_example", std::move(spec), input->cardinality(), {input}),
        parser_(std::move(parser)),
        record_(record) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<ParseExampleStage>(std::move(input), parser_, record_));
  }

 private:
  const ExampleParser parser_;
  const size_t record_;
};

// Which component holds the examples.
Result<size_t> find_record(const ElementSpec &spec, const std::string &name) {
  if (spec.is_batched()) return base::invalid_argument("it must stand before batch");
  int32_t found = -1;
  for (size_t i = 0; i < spec.components.size(); ++i) {
    const ComponentSpec &component = spec.components[i];
    const bool fits = component.dtype == tensor::DType::bytes && component.dims.empty();
    if (!name.empty() ? component.name != name : !fits) continue;
    if (!fits) return base::invalid_argument("expected a scalar of dtype bytes, got ", component.to_string());
    if (found >= 0) return base::invalid_argument("'input' must say which component holds the examples of ", spec);
    found = static_cast<int32_t>(i);
  }
  if (found < 0)
    return base::invalid_argument("there is no component ", name.empty() ? "of dtype bytes" : name, " in ", spec);
  return static_cast<size_t>(found);
}

}  // namespace

Result<DatasetRef> apply_parse_example(const DatasetRef &input, const ParseExampleParameters &parameters,
                                       TransformArguments &) {
  TUTTI_ASSIGN(const size_t record, find_record(input->spec(), parameters.input));
  TUTTI_ASSIGN(ExampleParser parser, ExampleParser::create(parameters.features));
  ElementSpec spec = input->spec();
  spec.components.erase(spec.components.begin() + static_cast<ptrdiff_t>(record));
  for (const Field &field : parser.fields())
    spec.components.push_back(field.component);
  TUTTI_TRY(check(spec));
  TUTTI_TRY(set_roles(spec, parameters.labels, parameters.weights));
  return DatasetRef(base::make_ref<ParseExampleDataset>(input, std::move(spec), std::move(parser), record));
}

}  // namespace tutti::impl::data
