// SPDX-License-Identifier: Apache-2.0
#include <type_traits>
#include <utility>

#include "data/dataset/stage.h"
#include "data/format/example.h"
#include "data/format/sequence_example.h"
#include "data/transform_parameters.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

// What the component that holds the examples is replaced by.
struct OfExample {
  static constexpr const char *kKind = "parse_example";
  ExampleParser parser;

  size_t components() const { return parser.fields().size(); }
};
struct OfSequenceExample {
  static constexpr const char *kKind = "parse_sequence_example";
  SequenceExampleParser parser;

  size_t components() const { return parser.components().size(); }
};

// The input's component `record` becomes the features, which stand at its end; the others stay in front.
template <typename Kind>
class ParseExampleStage : public Stage {
 public:
  ParseExampleStage(std::unique_ptr<Stage> input, const Kind &kind, size_t record)
      : input_(std::move(input)), kind_(kind), record_(record) {}

  Result<bool> next(Element &element) override {
    // The record keeps its place in the scratch element, so that its memory is used again.
    Result<bool> more = input_->next(scratch_);
    if (!more.ok() || !*more) return more;
    const size_t others = scratch_.components.size() - 1;
    element.lineage = scratch_.lineage;
    element.components.resize(others + kind_.components());
    for (size_t i = 0, at = 0; i <= others; ++i) {
      if (i != record_) element.components[at++] = std::move(scratch_.components[i]);
    }
    const Status status = kind_.parser.parse(record(), std::span(element.components).subspan(others));
    if (!status.ok()) return in_element(status, scratch_.lineage);
    return true;
  }

  // Numbers go straight to the rows when there is nothing beside the features.
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    if constexpr (!std::is_same_v<Kind, OfExample>) {
      return Stage::next_rows(targets, count, done);
    } else {
      if (targets.size() != kind_.components()) return Stage::next_rows(targets, count, done);
      Status status;
      for (done = 0; done < count && status.ok();) {
        const Result<bool> more = input_->next(scratch_);
        if (more.ok() && !*more) break;
        status = more.ok() ? parse_row(targets, done) : more.status();
        if (!base::is_interrupt(status)) ++done;
      }
      return status;
    }
  }

  Lineage last_row() const override { return scratch_.lineage; }
  void save(State &state) const override {
    state.open(Kind::kKind);
    state.key("input");
    input_->save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, Kind::kKind));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  Status parse_row(std::span<const RowTarget> targets, int64_t row) const {
    const Status status = kind_.parser.parse_row(record(), targets, row);
    return status.ok() ? status : in_element(status, scratch_.lineage);
  }
  std::string_view record() const { return tensor::bytes_at(scratch_.components[record_], 0); }

  const std::unique_ptr<Stage> input_;
  const Kind &kind_;  // the dataset's
  const size_t record_;
  Element scratch_;
};

template <typename Kind>
class ParseExampleDataset : public Dataset {
 public:
  ParseExampleDataset(const DatasetRef &input, ElementSpec spec, Kind kind, size_t record)
      : Dataset(Kind::kKind, std::move(spec), input->cardinality(), {input}), kind_(std::move(kind)), record_(record) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<ParseExampleStage<Kind>>(std::move(input), kind_, record_));
  }

 private:
  const Kind kind_;
  const size_t record_;
};

// Which component holds the examples.
Result<size_t> find_record(const ElementSpec &spec, const std::string &name) {
  if (spec.is_batched()) return base::invalid_argument("it must come before batch");
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

// The dataset whose component `record` is replaced by others.
template <typename Kind, typename Parameters>
Result<DatasetRef> replace_record(const DatasetRef &input, Kind kind, const std::vector<ComponentSpec> &components,
                                  const Parameters &parameters) {
  TUTTI_ASSIGN(const size_t record, find_record(input->spec(), parameters.input));
  ElementSpec spec = input->spec();
  spec.components.erase(spec.components.begin() + static_cast<ptrdiff_t>(record));
  spec.components.insert(spec.components.end(), components.begin(), components.end());
  TUTTI_TRY(check(spec));
  TUTTI_TRY(set_roles(spec, parameters.labels, parameters.weights));
  return DatasetRef(base::make_ref<ParseExampleDataset<Kind>>(input, std::move(spec), std::move(kind), record));
}

}  // namespace

Result<DatasetRef> apply_parse_example(const DatasetRef &input, const ParseExampleParameters &parameters,
                                       TransformArguments &) {
  TUTTI_ASSIGN(ExampleParser parser, ExampleParser::create(parameters.features));
  std::vector<ComponentSpec> components;
  for (const Field &field : parser.fields())
    components.push_back(field.component);
  return replace_record(input, OfExample{std::move(parser)}, components, parameters);
}

Result<DatasetRef> apply_parse_sequence_example(const DatasetRef &input,
                                                const ParseSequenceExampleParameters &parameters,
                                                TransformArguments &) {
  TUTTI_ASSIGN(SequenceExampleParser parser, SequenceExampleParser::create(parameters.context, parameters.sequences));
  const std::vector<ComponentSpec> components = parser.components();
  return replace_record(input, OfSequenceExample{std::move(parser)}, components, parameters);
}

}  // namespace tutti::impl::data
