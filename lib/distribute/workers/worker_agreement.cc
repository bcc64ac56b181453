// SPDX-License-Identifier: Apache-2.0
#include "distribute/workers/worker_agreement.h"

#include <algorithm>
#include <vector>

#include "base/hash/checksum.h"
#include "base/json.h"
#include "distribute/workers/worker_exchange.h"
#include "graph/op_registry.h"
#include "graph/serialize.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

namespace {

// Of each worker; halves, so that none is negative and the maximum with what others leave 0 is it.
enum Word : size_t {
  word_step_high = 0,
  word_step_low,
  word_weights_high,
  word_weights_low,
  word_facts,
  word_devices,
  word_count
};

constexpr int64_t high_half(uint64_t value) { return static_cast<int64_t>(value >> 32); }
constexpr int64_t low_half(uint64_t value) { return static_cast<int64_t>(value & 0xffffffffu); }
int64_t joined_word(int64_t high, int64_t low) { return high << 32 | low; }

/// So many words of each worker, of which those of the first and of one other count; all take part.
class Comparison {
 public:
  Comparison(const Meeting &meeting, int32_t other) : meeting_(meeting), other_(other) {}

  /// The words of worker 0 and of the other, one behind the other.
  Result<std::vector<int64_t>> tell(std::span<const int64_t> own) const {
    std::vector<int64_t> words(2 * own.size());
    if (meeting_.workers.index == 0) std::copy(own.begin(), own.end(), words.begin());
    if (meeting_.workers.index == other_)
      std::copy(own.begin(), own.end(), words.begin() + static_cast<int64_t>(own.size()));
    TUTTI_TRY(exchange(meeting_, words));
    return words;
  }

 private:
  const Meeting &meeting_;
  const int32_t other_;
};

constexpr size_t kMostText = 240;

/// A text in words that are not negative, of one length for all.
std::vector<int64_t> words_of(std::string_view text) {
  std::vector<int64_t> words(kMostText / 4 + 1);
  const std::string_view part = text.substr(0, kMostText);
  words[0] = static_cast<int64_t>(part.size());
  for (size_t i = 0; i < part.size(); ++i)
    words[1 + i / 4] |= static_cast<int64_t>(static_cast<uint8_t>(part[i])) << (8 * (i % 4));
  return words;
}

std::string text_of(std::span<const int64_t> words) {
  std::string text;
  for (size_t i = 0; i < static_cast<size_t>(words[0]); ++i)
    text += static_cast<char>(words[1 + i / 4] >> (8 * (i % 4)) & 0xff);
  return text;
}

/// hashes[i] is that of the first i facts.
std::vector<uint64_t> prefix_hashes(const std::vector<Fact> &facts) {
  std::vector<uint64_t> hashes = {base::kFnvStart};
  for (const Fact &fact : facts)
    hashes.push_back(base::fnv1a64(std::to_string(fact.hash), hashes.back()));
  return hashes;
}

struct Difference {
  std::string first, other;  ///< what worker 0 has and what the other one has; "" = nothing at that place
};

/// By bisection: all workers call it, when the facts of worker 0 and of `other` are not the same.
Result<Difference> find_difference(const Meeting &meeting, int32_t other, const std::vector<Fact> &facts) {
  const Comparison comparison(meeting, other);
  const std::vector<uint64_t> hashes = prefix_hashes(facts);
  const int64_t own_count[] = {static_cast<int64_t>(facts.size())};
  TUTTI_ASSIGN(const std::vector<int64_t> counts, comparison.tell(own_count));
  // The first `equal` facts are the same on both, the first `most` are not, or one of them has no more.
  int64_t equal = 0, most = std::min(counts[0], counts[1]) + 1;
  while (most - equal > 1) {
    const int64_t middle = equal + (most - equal) / 2;
    const uint64_t hash = hashes[std::min(static_cast<size_t>(middle), facts.size())];
    const int64_t own[] = {high_half(hash), low_half(hash)};
    TUTTI_ASSIGN(const std::vector<int64_t> both, comparison.tell(own));
    (both[0] == both[2] && both[1] == both[3] ? equal : most) = middle;
  }
  const auto at = static_cast<size_t>(equal);
  TUTTI_ASSIGN(const std::vector<int64_t> texts, comparison.tell(words_of(at < facts.size() ? facts[at].text : "")));
  const std::span<const int64_t> all(texts);
  return Difference{text_of(all.first(texts.size() / 2)), text_of(all.last(texts.size() / 2))};
}

Status differs_in_facts(std::string_view act, int32_t worker, const Difference &difference) {
  const auto or_nothing = [](const std::string &text) { return text.empty() ? "nothing more" : text; };
  return base::failed_precondition(
             "worker ", worker, " ", act, " with a different model or different run settings than worker 0: the first ",
             "difference is ", or_nothing(difference.other), "; on worker 0: ", or_nothing(difference.first))
      .with_detail("worker", std::to_string(worker));
}

Status differs(std::string_view act, int32_t worker, const int64_t *first, const int64_t *other) {
  if (other[word_devices] != first[word_devices]) {
    return base::failed_precondition(
               "worker ", worker, " ", act,
               " on devices that round differently from those of worker 0: training needs devices ",
               "of one backend on all workers, level invariant those of one kind")
        .with_detail("worker", std::to_string(worker));
  }
  const int64_t step = joined_word(first[word_step_high], first[word_step_low]);
  const int64_t other_step = joined_word(other[word_step_high], other[word_step_low]);
  std::string what = "different weights or optimizer slots";
  if (other_step != step) what = base::concat("step ", other_step);
  return base::failed_precondition("worker ", worker, " ", act, " with ", what, ", but worker 0 is at step ", step,
                                   ": all workers need the same checkpoint, in storage that all can read, or the same ",
                                   "seed")
      .with_detail("worker", std::to_string(worker));
}

/// Nodes without the attributes that have their defaults: a program may set these or leave them out.
graph::Model without_defaults(graph::Model model) {
  for (size_t i = 0; i < model.graph.nodes().size(); ++i) {
    graph::Node &node = model.graph.mutable_node(static_cast<graph::NodeId>(i));
    const graph::OpDefinition *const definition = graph::find_op(node.op, node.revision);
    for (const graph::AttributeDefinition &attribute : definition->attributes) {
      const auto set = node.attributes.find(attribute.name);
      if (set != node.attributes.end() && !attribute.required && graph::equal(set->second, attribute.default_value))
        node.attributes.erase(attribute.name);
    }
  }
  return model;
}

/// A node for people: what it is, with its attributes.
std::string text_of(const graph::Node &node) {
  std::string text = base::concat("node '", node.scope_name.empty() ? node.op : node.scope_name, "' (", node.op, ")");
  for (const auto &[name, value] : node.attributes) {
    const auto *const tensor = std::get_if<tensor::Tensor>(&value);
    text += base::concat(" ", name, "=", tensor == nullptr ? graph::to_string(value) : tensor->to_string(4));
  }
  return text;
}

/// What the words of all workers say: whether they are alike.
Status compare(const Meeting &meeting, const WorkerState &own, const std::vector<int64_t> &words) {
  for (int32_t w = 1; w < meeting.workers.count; ++w) {
    const int64_t *const other = words.data() + static_cast<size_t>(w) * word_count;
    if (std::equal(other, other + word_count, words.data())) continue;
    if (other[word_devices] == words[word_devices] && other[word_facts] != words[word_facts]) {
      TUTTI_ASSIGN(const Difference difference, find_difference(meeting, w, own.facts));
      return differs_in_facts(own.act, w, difference);
    }
    return differs(own.act, w, words.data(), other);
  }
  return Status();
}

}  // namespace

Result<uint64_t> checksum_of(const checkpoint::WeightVersion &version, const graph::Model &model, bool with_slots) {
  uint64_t sum = 0;
  for (size_t i = 0; i < version.entries().size(); ++i) {
    const checkpoint::StateEntry &entry = version.entries()[i];
    if (!with_slots && entry.role != checkpoint::StateRole::weight) continue;
    const graph::VariableSpec *const variable = model.find_variable(entry.name);
    if (variable != nullptr && variable->aggregation == graph::Aggregation::per_replica) continue;
    const uint64_t what = base::fnv1a64(base::concat(entry.name, " ", tensor::name(entry.dtype), " ", entry.shape));
    TUTTI_ASSIGN(const tensor::Tensor value, version.read(i));
    sum += base::fnv1a64(base::crc32c(value.data(), static_cast<size_t>(value.size_bytes())), what);
  }
  return sum;
}

Fact Fact::of(std::string text) {
  const uint64_t hash = base::fnv1a64(text);
  return {std::move(text), hash};
}

std::vector<Fact> facts_of(const graph::Model &written) {
  const graph::Model model = without_defaults(written);
  std::vector<Fact> facts;
  const base::Json json = graph::to_json(model);
  const base::JsonArray &nodes = json.find("graph")->find("nodes")->array();
  for (size_t i = 0; i < nodes.size(); ++i)
    facts.push_back({text_of(model.graph.nodes()[i]), base::fnv1a64(nodes[i].dump())});
  for (const auto &[key, value] : json.object()) {
    if (key == "graph") {
      facts.push_back({"the order of the nodes", base::fnv1a64(value.find("body")->dump())});
    } else if (value.is_array()) {
      for (const base::Json &one : value.array())
        facts.push_back(Fact::of(base::concat(key, ": ", one.dump())));
    } else {
      facts.push_back(Fact::of(base::concat(key, ": ", value.dump())));
    }
  }
  return facts;
}

std::vector<Fact> facts_of_call(const Strategy &strategy, backend::Level level, backend::Precision precision) {
  const std::string_view determinism = level == backend::Level::invariant    ? "invariant"
                                       : level == backend::Level::repeatable ? "repeatable"
                                                                             : "fast";
  return {Fact::of(base::concat("worker_input: ", name(strategy.worker_input()))),
          Fact::of(base::concat("determinism: ", determinism)),
          Fact::of(base::concat("precision: ", backend::name(precision)))};
}

Status check_same_state(std::span<collective::Group *const> groups, const Workers &workers, int32_t parts,
                        const WorkerState &own, const base::CancelToken *cancel) {
  const Meeting meeting{groups, parts, workers};
  std::vector<int64_t> words(static_cast<size_t>(workers.count) * word_count);
  int64_t *const mine = words.data() + static_cast<size_t>(workers.index) * word_count;
  mine[word_step_high] = high_half(static_cast<uint64_t>(own.step));
  mine[word_step_low] = low_half(static_cast<uint64_t>(own.step));
  mine[word_weights_high] = high_half(own.weights);
  mine[word_weights_low] = low_half(own.weights);
  mine[word_facts] = low_half(prefix_hashes(own.facts).back());
  mine[word_devices] = own.devices.empty() ? 0 : low_half(base::fnv1a64(own.devices));
  for (collective::Group *group : groups)
    group->set_cancel(cancel);
  const Status exchanged = exchange(meeting, words);
  const Status compared = exchanged.ok() ? compare(meeting, own, words) : exchanged;
  for (collective::Group *group : groups)
    group->set_cancel(nullptr);
  return compared;
}

}  // namespace tutti::impl::distribute
