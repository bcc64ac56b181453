// SPDX-License-Identifier: Apache-2.0
//
// Running sums and products by doubling (Hillis and Steele, 1986): after the step of distance d each element has what
// 2 d elements make together.
#include "backend/pjrt/emit/op_emitters.h"
#include "backend/running_lines.h"

namespace tutti::impl::backend::pjrt {

using base::Status;

namespace {

/// Values [outer, length, inner], whose lines go from their first element to their last.
class Lines {
 public:
  Lines(ProgramText &text, const RunningLines &lines) : text_(text), lines_(lines) {}

  Value of(const Value &x) { return turned(text_.reshape(x, {lines_.outer, lines_.length, lines_.inner})); }
  Value result(const Value &y, const Dims &dims) { return text_.reshape(turned(y), dims); }
  Value reversed(const Value &x) { return text_.reverse(x, {1}); }

  /// One element further, with `neutral` where nothing comes from.
  Value moved(const Value &x, double neutral) {
    return text_.pad(text_.slice_axis(x, 1, 0, lines_.length - 1), neutral, {0, 1, 0}, {0, 0, 0});
  }

  Value running(Value x, bool is_product) {
    for (int64_t distance = 1; distance < lines_.length; distance *= 2) {
      const Value low = first(x, lines_.length - distance), high = last(x, distance);
      x = joined(first(x, distance), is_product ? text_.mul(low, high) : text_.add(low, high));
    }
    return x;
  }

  /// s of s = b + a · (the s before), whose first is b.
  Value recurrence(Value a, Value b) {
    for (int64_t distance = 1; distance < lines_.length; distance *= 2) {
      const int64_t rest = lines_.length - distance;
      const Value factor = last(a, distance);
      b = joined(first(b, distance), text_.add(last(b, distance), text_.mul(factor, first(b, rest))));
      a = joined(first(a, distance), text_.mul(factor, first(a, rest)));
    }
    return b;
  }

 private:
  Value turned(const Value &x) { return lines_.is_backward ? reversed(x) : x; }
  Value first(const Value &x, int64_t count) { return text_.slice_axis(x, 1, 0, count); }
  Value last(const Value &x, int64_t begin) { return text_.slice_axis(x, 1, begin, lines_.length); }
  Value joined(const Value &low, const Value &high) { return text_.concat_parts({low, high}, 1); }

  ProgramText &text_;
  const RunningLines lines_;
};

}  // namespace

Status emit_running(NodeEmitter &node) {
  TUTTI_ASSIGN(const RunningLines how, RunningLines::of(node.lowered(), node.node()));
  if (node.output(0).elements == 0) {
    node.set_output(0, node.input(0));
    return Status();
  }
  const bool is_product = node.node().op == "running_product";
  Lines lines(node.text(), how);
  Value y = lines.running(lines.of(node.wide_input(0)), is_product);
  if (how.is_exclusive) y = lines.moved(y, is_product ? 1 : 0);
  node.set_output(0, lines.result(y, node.output(0).dims));
  return Status();
}

// With p the product of the elements before one, and s = dy + (the next element) · (the next s): dx = p · s. Of the
// exclusive product dy is that of the next element.
Status emit_running_product_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const RunningLines how, RunningLines::of(node.lowered(), node.node()));
  if (node.output(0).elements == 0) {
    node.set_output(0, node.input(0));
    return Status();
  }
  Lines lines(node.text(), how);
  const Value x = lines.of(node.wide_input(1)), dy = lines.reversed(lines.of(node.wide_input(0)));
  const Value before = lines.moved(lines.running(x, true), 1);
  const Value next = lines.moved(lines.reversed(x), 0);
  const Value sums = lines.recurrence(next, how.is_exclusive ? lines.moved(dy, 0) : dy);
  const Value dx = node.text().mul(before, lines.reversed(sums));
  node.set_output(0, lines.result(dx, node.output(0).dims));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
