// SPDX-License-Identifier: Apache-2.0
//
// The events of yaml-cpp as nodes. Its own nodes would forget which key came twice, and whether a scalar had quotes.
#include "tool/config/yaml_text.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>

#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

/// A few aliases of aliases could stand for more than fits into memory.
constexpr size_t kMostNodes = 1'000'000;

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string &origin, bool has_lines) : origin_(origin), has_lines_(has_lines) {}

  ConfigNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark &) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark &mark, YAML::anchor_t anchor) override { add(node_at(mark), anchor); }
  void OnAlias(const YAML::Mark &mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "an alias within what it stands for");
    ConfigNode copy = found->second;
    count(copy, mark);
    add(std::move(copy), 0);
  }
  void OnScalar(const YAML::Mark &mark, const std::string &tag, YAML::anchor_t anchor,
                const std::string &value) override {
    ConfigNode node = node_at(mark);
    node.kind = ConfigNode::Kind::scalar;
    node.text = value;
    // "?" is the tag of what has neither tag nor quotes.
    node.is_quoted = tag != "?" && !tag.empty();
    if (!node.is_quoted && (value == "~" || value == "null" || value == "Null" || value == "NULL"))
      node.kind = ConfigNode::Kind::null;
    add(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(mark, ConfigNode::Kind::list, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark &mark, const std::string &, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(mark, ConfigNode::Kind::map, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  /// A list or map that is not complete, and the key that waits for its value.
  struct Open {
    ConfigNode node;
    YAML::anchor_t anchor;
    bool has_key = false;
    std::string key;
    ConfigPlace key_at;
  };

  ConfigPlace place(const YAML::Mark &mark) const {
    return has_lines_ ? ConfigPlace{origin_, mark.line + 1, mark.column + 1} : ConfigPlace{origin_};
  }
  ConfigNode node_at(const YAML::Mark &mark) const {
    ConfigNode node;
    node.at = place(mark);
    return node;
  }
  [[noreturn]] void fail(const YAML::Mark &mark, const std::string &what) const {
    throw UsageError{place(mark).text() + ": " + what, false};
  }
  void count(const ConfigNode &node, const YAML::Mark &mark) {
    if (++count_ > kMostNodes) fail(mark, "too many values for a configuration");
    for (const ConfigNode &item : node.items)
      count(item, mark);
    for (const ConfigMember &member : node.members)
      count(member.value, mark);
  }

  void begin(const YAML::Mark &mark, ConfigNode::Kind kind, YAML::anchor_t anchor) {
    if (!open_.empty() && open_.back().node.is_map() && !open_.back().has_key)
      fail(mark, "expected a text as key, got a list or map");
    ConfigNode node = node_at(mark);
    node.kind = kind;
    open_.push_back({std::move(node), anchor, false, "", {}});
  }
  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor);
  }
  void add(ConfigNode node, YAML::anchor_t anchor) {
    if (++count_ > kMostNodes) throw UsageError{node.at.text() + ": too many values for a configuration", false};
    if (anchor != 0) anchors_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.is_list()) {
      open_.back().node.items.push_back(std::move(node));
    } else {
      add_to_map(open_.back(), std::move(node));
    }
  }
  void add_to_map(Open &map, ConfigNode node) const {
    if (map.has_key) {
      map.has_key = false;
      map.node.members.push_back({map.key, map.key_at, std::move(node)});
      return;
    }
    if (!node.is_scalar()) throw UsageError{node.at.text() + ": expected a text as key, got " + described(node), false};
    for (const ConfigMember &member : map.node.members) {
      if (member.key != node.text) continue;
      throw UsageError{
          node.at.text() + ": the key '" + node.text + "' is there twice; the first is at " + member.at.text(), false};
    }
    map.has_key = true;
    map.key = node.text;
    map.key_at = node.at;
  }

  const std::string origin_;
  const bool has_lines_;
  ConfigNode root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, ConfigNode> anchors_;
  size_t count_ = 0;
};

}  // namespace

ConfigNode parse_yaml(const std::string &text, const std::string &origin, bool has_lines) {
  std::istringstream stream(text);
  TreeBuilder builder(origin, has_lines);
  ConfigPlace at{origin, has_lines ? 1 : 0, 1};
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    TreeBuilder second(origin, has_lines);
    if (parser.HandleNextDocument(second))
      throw UsageError{origin + ": holds a second document; a configuration is one", false};
  } catch (const YAML::Exception &error) {
    if (has_lines && error.mark.line >= 0) at = {origin, error.mark.line + 1, error.mark.column + 1};
    throw UsageError{at.text() + ": is no YAML: " + error.msg, false};
  }
  ConfigNode root = builder.take();
  if (root.at.origin.empty()) root.at = at;
  set_paths(root, "");
  return root;
}

}  // namespace tutti::tool
