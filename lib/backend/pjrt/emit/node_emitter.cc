// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/emit/node_emitter.h"

#include <numeric>

#include "base/text.h"

namespace tutti::impl::backend::pjrt {

using base::Result;
using base::Status;
using tensor::DType;

Dims all_axes(size_t rank) {
  Dims axes(rank);
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes;
}

Value no_fault(ProgramText &text) { return text.splat(DType::i64, {3}, 0); }

Value NodeEmitter::run_scalar(int32_t index) {
  const Value one = text().slice(run_.scalars, {index}, {index + 1});
  return text().reshape(one, {});
}

Value NodeEmitter::check_bounds(size_t input, int64_t limit, std::string_view noun) {
  ProgramText &to = text();
  const Value x = this->input(input);
  const Value wide = to.convert(x, DType::i64);  // u64 beyond i64 becomes negative, as everywhere
  const Value limits = to.broadcast(to.integer(DType::i64, limit), wide.dims, {});
  const Value is_good = to.binary("and", to.compare("GE", wide, 0), to.compare("LT", wide, limits));
  const int64_t count = run_.lowered.value(node_.inputs[input]).elements;
  if (count == 0) return is_good;
  run_.checks.push_back(BoundedIntegers::of(run_.lowered, node_, input, limit, noun));

  // The first bad one: its position, then its value.
  const Value positions = to.iota(DType::i64, {count}, 0);
  const Value none = to.broadcast(to.integer(DType::i64, count), {count}, {});
  const Value bad = to.select(to.reshape(is_good, {count}), none, positions);
  const Value first = to.reduce(Reduction::min, bad, {0});
  const Value value = to.dynamic_slice(to.reshape(wide, {count}), std::vector{first}, {1});
  const Value number = to.splat(DType::i64, {1}, static_cast<double>(run_.checks.size()));
  const Value found = to.concat_parts({number, to.reshape(first, {1}), value}, 0);
  const Value is_bad = to.compare("LT", first, to.integer(DType::i64, count));
  const Value own = to.select(to.broadcast(is_bad, {3}, {}), found, no_fault(to));
  if (run_.fault.is_absent()) {
    run_.fault = own;
  } else {
    const Value had = to.compare("NE", to.reshape(to.slice(run_.fault, {0}, {1}), {}), 0);
    run_.fault = to.select(to.broadcast(had, {3}, {}), run_.fault, own);
  }
  return is_good;
}

Status emit_node(EmittedRun &run, const graph::Node &node) {
  const OpEmitter emit = find_op_emitter(node.op);
  if (emit == nullptr)
    return base::unimplemented(describe(node), ": devices behind PJRT have no program for op '", node.op, "'");
  for (const graph::ValueId id : node.inputs) {
    if (id != graph::kNoValue && run.lowered.value(id).dtype == DType::bytes)
      return base::unimplemented(describe(node), ": devices behind PJRT have no values of dtype bytes");
  }
  NodeEmitter emitter(run, node);
  const Status status = emit(emitter);
  return status.ok() ? status : status.wrap(base::concat(describe(node), ": cannot be compiled"));
}

Result<std::vector<Value>> emit_region(EmittedRun &run, const graph::Region &region,
                                       const std::vector<Value> &parameters) {
  for (size_t i = 0; i < parameters.size(); ++i)
    run.values[static_cast<size_t>(region.parameters[i])] = parameters[i];
  for (const graph::NodeId id : region.nodes)
    TUTTI_TRY(emit_node(run, run.lowered.graph().node(id)));
  std::vector<Value> results;
  for (const graph::ValueId id : region.results)
    results.push_back(run.values[static_cast<size_t>(id)]);
  return results;
}

}  // namespace tutti::impl::backend::pjrt
