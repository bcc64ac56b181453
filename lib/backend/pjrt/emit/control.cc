// SPDX-License-Identifier: Apache-2.0
//
// Constants, run scalars, and the ops that own regions: call, fusion and custom_gradient are written where they stand,
// scan becomes a loop, cond a choice.
#include "backend/pjrt/emit/op_emitters.h"
#include "backend/pjrt/emit/random_words.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// A scan's loop: which of its values are states, sequences, captures and stacked results. The loop carries, in this
/// order: index, states, stacked results, sequences, captures, the run scalars, the fault, and the iteration of a scan
/// around it where there is one.
class ScanLoop {
 public:
  ScanLoop(NodeEmitter &node, const graph::ops::ScanAttributes &attributes)
      : node_(node),
        states_(static_cast<size_t>(attributes.states)),
        sequences_(static_cast<size_t>(attributes.sequences)),
        axis_(static_cast<size_t>(attributes.axis)),
        is_reverse_(attributes.reverse),
        stacked_(node.output_count() - states_) {
    length_ = node.input(states_).dims[axis_];
  }

  Status emit() {
    ProgramText &text = node_.text();
    EmittedRun &run = node_.run();
    if (length_ == 0) return emit_nothing();
    if (run.fault.is_absent()) run.fault = no_fault(text);
    std::vector<Value> carried = start();
    const std::string condition = text.region(carried, [&](std::span<const Value> of) -> std::vector<Value> {
      return {text.compare("LT", of[0], text.integer(DType::i64, length_))};
    });
    Status status;
    const std::string body = text.region(carried, [&](std::span<const Value> of) {
      Result<std::vector<Value>> next = iterate(of);
      status = next.status();
      return next.ok() ? std::move(next).value() : std::vector<Value>(of.begin(), of.end());
    });
    TUTTI_TRY(status);
    std::vector<Value> results = carried;
    text.op("while", carried, "", results, base::concat(condition, ", ", body));
    for (size_t i = 0; i < node_.output_count(); ++i)
      node_.set_output(i, results[1 + i]);
    run.fault = results[fault_at()];
    return Status();
  }

 private:
  size_t first_sequence() const { return 1 + states_ + stacked_; }
  size_t captures() const { return node_.input_count() - states_ - sequences_; }
  size_t scalars_at() const { return first_sequence() + sequences_ + captures(); }
  size_t fault_at() const { return scalars_at() + 1; }

  /// A loop over nothing, of whose sequences no element could be sliced.
  Status emit_nothing() {
    for (size_t i = 0; i < states_; ++i)
      node_.set_output(i, node_.input(i));
    for (size_t i = states_; i < node_.output_count(); ++i)
      node_.set_output(i, node_.text().splat(node_.output(i).dtype, node_.output(i).dims, 0));
    return Status();
  }

  std::vector<Value> start() {
    ProgramText &text = node_.text();
    std::vector<Value> carried = {text.integer(DType::i64, 0)};
    for (size_t i = 0; i < states_; ++i)
      carried.push_back(node_.input(i));
    for (size_t i = states_; i < node_.output_count(); ++i)
      carried.push_back(text.splat(node_.output(i).dtype, node_.output(i).dims, 0));
    for (size_t i = states_; i < node_.input_count(); ++i)
      carried.push_back(node_.input(i));
    carried.push_back(node_.run().scalars);
    carried.push_back(node_.run().fault);
    if (!node_.run().iteration.is_absent()) carried.push_back(node_.run().iteration);
    return carried;
  }

  /// Index `index` along the scanned axis, 0 along the others.
  std::vector<Value> place(size_t rank, const Value &index) {
    std::vector<Value> begin(rank, node_.text().integer(DType::i64, 0));
    begin[axis_] = index;
    return begin;
  }

  Value element(const Value &sequence, const Value &index) {
    Dims block = sequence.dims, dims = sequence.dims;
    block[axis_] = 1;
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis_));
    ProgramText &text = node_.text();
    return text.reshape(text.dynamic_slice(sequence, place(block.size(), index), block), dims);
  }

  Value with_element(const Value &stacked, const Value &one, const Value &index) {
    Dims block = stacked.dims;
    block[axis_] = 1;
    ProgramText &text = node_.text();
    return text.dynamic_update_slice(stacked, text.reshape(one, block), place(block.size(), index));
  }

  Result<std::vector<Value>> iterate(std::span<const Value> of) {
    ProgramText &text = node_.text();
    EmittedRun &run = node_.run();
    const Value outer_scalars = run.scalars, outer_fault = run.fault, outer_iteration = run.iteration;
    run.scalars = of[scalars_at()];
    run.fault = of[fault_at()];
    const Value last = text.integer(DType::i64, length_ - 1);
    const Value index = is_reverse_ ? text.sub(last, of[0]) : of[0];
    run.iteration = scan_iteration_value(text, outer_iteration.is_absent() ? Value() : of.back(), index);
    std::vector<Value> parameters(of.begin() + 1, of.begin() + 1 + static_cast<std::ptrdiff_t>(states_));
    for (size_t i = 0; i < sequences_; ++i)
      parameters.push_back(element(of[first_sequence() + i], index));
    for (size_t i = 0; i < captures(); ++i)
      parameters.push_back(of[first_sequence() + sequences_ + i]);
    Result<std::vector<Value>> results = emit_region(run, node_.node().regions[0], parameters);
    std::vector<Value> next(of.begin(), of.end());
    next[0] = text.add(of[0], 1);
    next[fault_at()] = run.fault;
    run.scalars = outer_scalars;  // what is of the loop alone ends here
    run.fault = outer_fault;
    run.iteration = outer_iteration;
    TUTTI_TRY(results.status());
    for (size_t i = 0; i < states_; ++i)
      next[1 + i] = (*results)[i];
    for (size_t i = 0; i < stacked_; ++i)
      next[1 + states_ + i] = with_element(of[1 + states_ + i], (*results)[states_ + i], index);
    return next;
  }

  NodeEmitter &node_;
  const size_t states_, sequences_, axis_;
  const bool is_reverse_;
  const size_t stacked_;
  int64_t length_ = 0;
};

std::vector<Value> inputs_from(NodeEmitter &node, size_t first) {
  std::vector<Value> inputs;
  for (size_t i = first; i < node.input_count(); ++i)
    inputs.push_back(node.input(i));
  return inputs;
}

}  // namespace

Status emit_constant(NodeEmitter &node) {
  node.set_output(0, node.text().constant(std::get<tensor::Tensor>(node.node().attributes.at("value"))));
  return Status();
}

Status emit_run_scalar(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::RunScalarAttributes::from(node.node()));
  ProgramText &text = node.text();
  if (attributes.kind != graph::ops::RunScalarAttributes::Kind::data_faults) {
    // The kinds stand in the order of the TUTTI_RUN_ indices.
    node.set_output(0, node.run_scalar(static_cast<int32_t>(attributes.kind)));
    return Status();
  }
  const Value given = node.run_scalar(TUTTI_RUN_DATA_FAULTS), fault = node.run().fault;
  if (fault.is_absent()) {
    node.set_output(0, given);
  } else {
    const Value number = text.reshape(text.slice(fault, {0}, {1}), {});
    node.set_output(0, text.select(text.compare("NE", number, 0), text.like(given, 1), given));
  }
  return Status();
}

Status emit_call(NodeEmitter &node) {
  const std::vector<Value> parameters = inputs_from(node, 0);
  TUTTI_ASSIGN(const std::vector<Value> results, emit_region(node.run(), node.node().regions[0], parameters));
  for (size_t i = 0; i < results.size(); ++i)
    node.set_output(i, results[i]);
  return Status();
}

Status emit_scan(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::ScanAttributes::from(node.node()));
  return ScanLoop(node, attributes).emit();
}

Status emit_cond(NodeEmitter &node) {
  ProgramText &text = node.text();
  EmittedRun &run = node.run();
  if (run.fault.is_absent()) run.fault = no_fault(text);
  const Value before = run.fault;
  const std::vector<Value> parameters = inputs_from(node, 1);
  Status status;
  const auto branch = [&](size_t which) {
    return text.region({}, [&](std::span<const Value>) {
      run.fault = before;
      Result<std::vector<Value>> results = emit_region(run, node.node().regions[which], parameters);
      if (!results.ok()) {
        status = results.status();
        return std::vector<Value>();
      }
      results->push_back(run.fault);
      return std::move(results).value();
    });
  };
  const std::string yes = branch(0), no = branch(1);
  TUTTI_TRY(status);
  std::vector<Value> results;
  for (size_t i = 0; i < node.output_count(); ++i)
    results.push_back({"", node.output(i).dtype, node.output(i).dims});
  results.push_back(before);
  text.op("if", {node.input(0)}, "", results, base::concat(yes, ", ", no));
  for (size_t i = 0; i < node.output_count(); ++i)
    node.set_output(i, results[i]);
  run.fault = results.back();
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
