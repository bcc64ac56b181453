// SPDX-License-Identifier: Apache-2.0
#include "tool/documentation/documentation.h"

#include <filesystem>
#include <map>
#include <stdexcept>

#include "tool/console/text_file.h"
#include "tool/documentation/completion.h"
#include "tool/documentation/manual_page.h"

namespace tutti::tool {

namespace {

using Documents = std::map<std::string, std::string>;

void add_pages(const Command &command, const Command &all, Documents &documents) {
  if (command.text().is_hidden) return;
  documents[manual_name(command) + ".1"] = manual_page(command, all);
  for (const Command &one : command.commands())
    add_pages(one, all, documents);
}

}  // namespace

void write_documentation(const Command &all, const std::vector<std::string> &paths) {
  Documents documents = {
      {"tutti", bash_completion(all)}, {"_tutti", zsh_completion(all)}, {"tutti.fish", fish_completion(all)}};
  add_pages(all, all, documents);
  for (const std::string &path : paths) {
    const auto document = documents.find(std::filesystem::path(path).filename().string());
    if (document == documents.end()) throw std::runtime_error("nothing is written into '" + path + "'");
    TextFile file(path);
    file.write(document->second);
    file.close();
    documents.erase(document);
  }
  for (const auto &[name, text] : documents)
    throw std::runtime_error("'" + name + "' is not among the files");
}

}  // namespace tutti::tool
