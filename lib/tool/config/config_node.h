// SPDX-License-Identifier: Apache-2.0
//
// A configuration as a tree: what was written, where, and under which path, so that whoever finds a value wrong can say
// so. Files are read by yaml_text.h; scalars are texts until somebody asks for a number.
//
//   ConfigNode config = parse_yaml(text, "train.yaml");
//   check_keys(config, {"data", "model"});
//   const int64_t units = integer_of(*config.find("units"));     // train.yaml:7:14: model[2].dense.units: expected ...
//
// What is wrong is a UsageError with place and path.
#ifndef TUTTI_TOOL_CONFIG_CONFIG_NODE_H_
#define TUTTI_TOOL_CONFIG_CONFIG_NODE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::tool {

struct ConfigPlace {
  std::string origin;        // a file's name, or the option of the command line
  int line = 0, column = 0;  // from 1; 0 = the origin has no lines

  /// "train.yaml:7:3".
  std::string text() const;
};

struct ConfigMember;

struct ConfigNode {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  std::string text;         // of a scalar
  bool is_quoted = false;   // a text, whatever it looks like
  bool is_default = false;  // nobody wrote it
  ConfigPlace at;
  std::string path;                   // "model[2].dense"; "" at the top
  std::vector<ConfigNode> items;      // of a list
  std::vector<ConfigMember> members;  // of a map, in the order of the file; no key twice

  bool is_null() const { return kind == Kind::null; }
  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_list() const { return kind == Kind::list; }
  bool is_map() const { return kind == Kind::map; }

  /// Null when there is no such key.
  const ConfigNode *find(const std::string &key) const;
  ConfigNode *find(const std::string &key);
  /// Replaces a member, or appends one. A null node becomes a map.
  ConfigNode &set(const std::string &key, ConfigNode value);
  void erase(const std::string &key);
  std::vector<std::string> keys() const;
};

struct ConfigMember {
  std::string key;
  ConfigPlace at;
  ConfigNode value;
};

ConfigNode text_node(std::string text);
ConfigNode number_node(double number);
ConfigNode number_node(int64_t number);
ConfigNode list_node(std::vector<ConfigNode> items);
ConfigNode map_node(const std::string &key, ConfigNode value);
/// The node and all below it with their paths, which begin with `path`.
void set_paths(ConfigNode &node, const std::string &path);
/// All of them as defaults that stand at this place.
void set_default(ConfigNode &node, const ConfigPlace &at);

/// Throws a UsageError with place and path of the node.
[[noreturn]] void refuse(const ConfigNode &node, const std::string &what);
/// The same of one of a map's keys.
[[noreturn]] void refuse_key(const ConfigNode &map, const ConfigMember &member, const std::string &what);

/// Refuses what is no map, and keys that are not among `known`, with the nearest of them.
void check_keys(const ConfigNode &map, const std::vector<std::string> &known);

/// "'many'", "a list", "a map", "nothing".
std::string described(const ConfigNode &node);
bool is_integer(const ConfigNode &node);
bool is_number(const ConfigNode &node);
bool is_truth(const ConfigNode &node);

/// Each refuses what is of another type.
int64_t integer_of(const ConfigNode &node);
double number_of(const ConfigNode &node);
bool truth_of(const ConfigNode &node);
const std::string &text_of(const ConfigNode &node);
std::vector<int64_t> integers_of(const ConfigNode &node);
std::vector<double> numbers_of(const ConfigNode &node);
/// Of a list, or of one text.
std::vector<std::string> texts_of(const ConfigNode &node);

/// A member's value, or what stands in for it.
int64_t integer_in(const ConfigNode &map, const std::string &key, int64_t otherwise);
bool truth_in(const ConfigNode &map, const std::string &key, bool otherwise);
std::string text_in(const ConfigNode &map, const std::string &key, const std::string &otherwise = "");
std::vector<std::string> texts_in(const ConfigNode &map, const std::string &key);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_CONFIG_CONFIG_NODE_H_
