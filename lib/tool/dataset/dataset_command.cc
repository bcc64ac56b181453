// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/dataset_command.h"

#include <memory>
#include <utility>

#include "tool/command/command_list.h"
#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

using Words = std::vector<std::string>;

constexpr char kSourceArgument[] = "SOURCE...";

/// Takes the source, and the target where the command has one, out of the words.
void take_dataset_paths(DatasetRequest &request, const Words &words, const char *command_with_target) {
  request.source.paths = words;
  if (command_with_target != nullptr && words.size() > 1) {
    request.target = request.source.paths.back();
    request.source.paths.pop_back();
  }
  if (request.source.paths.empty()) throw UsageError{"no source files given"};
  if (command_with_target != nullptr && request.target.empty())
    throw UsageError{std::string(command_with_target) + " needs a source and a target"};
}

/// Options of one of the commands were taken by all of them.
void add_ignored_options(Command &command) {
  for (const char *name : {"--sheet", "--compression", "--shards"}) {
    if (!command.has_option(name)) command.add_ignored(name, true);
  }
  if (!command.has_option("--json")) command.add_ignored("--json", false);
}

void add_dataset_options(Command &command, DatasetRequest &request) {
  add_preparation_options(command, request.preparation);
  add_source_options(command, request.source);
  add_ignored_options(command);
}

Command inspect_dataset_command() {
  const auto request = std::make_shared<DatasetRequest>();
  Command command("dataset inspect", "shows the type and the first elements of a dataset");
  command.add_argument({kSourceArgument, source_description()});
  command.add_option(request->first,
                     {"--first", "N", "elements to show, or images on the sheet", "3 elements, 64 images"});
  command.add_option(request->sheet, {"--sheet", "FILE.png", "write a contact sheet of the first images to this file"});
  command.add_flag(request->as_json, {"--json", "", "print JSON instead of a table"});
  add_dataset_options(command, *request);
  command.set_example("tutti dataset inspect photos/ --sheet photos.png");
  command.set_run([request](const Words &words) {
    take_dataset_paths(*request, words, nullptr);
    return inspect_dataset(*request);
  });
  return command;
}

Command statistics_command() {
  const auto request = std::make_shared<DatasetRequest>();
  Command command("dataset stats", "reports ranges, means, shapes and class counts");
  command.set_details("Elements that cannot be read are counted, and make the exit status 1.");
  command.add_argument({kSourceArgument, source_description()});
  command.add_option(request->first, {"--first", "N", "elements to read", "all"});
  command.add_flag(request->as_json, {"--json", "", "print JSON instead of tables"});
  add_dataset_options(command, *request);
  command.set_example("tutti dataset stats train.csv --set 'columns=age: f32'");
  command.set_run([request](const Words &words) {
    take_dataset_paths(*request, words, nullptr);
    return print_statistics(*request);
  });
  return command;
}

Command convert_command() {
  const auto request = std::make_shared<DatasetRequest>();
  Command command("dataset convert", "writes a dataset to TFRecord, CSV or element files");
  command.set_details(
      "Elements are written as they are, or preprocessed once by --map.\n\n"
      "In a tf.train.Example, numbers of a shape with fewer than 32 bits, such as pixels of type u8, become one text "
      "of the values as they lie in memory. The features that are printed at the end are those with which "
      "parse_example reads the file; in TensorFlow that is:\n\n"
      "  tf.reshape(tf.io.decode_raw(x, tf.uint8), shape)");
  command.add_argument({kSourceArgument, source_description()});
  command.add_argument(
      {"TARGET",
       "a name with .tfrecord (one tf.train.Example for each element), .csv (scalars only) or "
       ".elements (as in memory: types, shapes and roles are kept; the source element_files maps it)"});
  command.add_option(request->first, {"--first", "N", "elements to write", "all"});
  command.add_option(request->shards,
                     {"--shards", "N",
                      "TFRecord files to write, named NAME-00000-of-00004.tfrecord; element i goes to file i modulo N"},
                     1);
  command.add_option(
      request->compression,
      {"--compression", "KIND", "compression of TFRecord files", "gzip for .gz, else none", {"gzip", "zlib"}});
  add_dataset_options(command, *request);
  command.set_example(
      "tutti dataset convert photos/ photos.tfrecord \\\n"
      "    --map 'image = resize(decode_image(image), size=[224, 224])'");
  command.set_run([request](const Words &words) {
    take_dataset_paths(*request, words, "convert");
    return convert_dataset(*request);
  });
  return command;
}

Command vocabulary_command() {
  const auto request = std::make_shared<DatasetRequest>();
  Command command("dataset vocabulary", "writes the distinct texts of a component");
  command.set_details(
      "The file has one text per line, the most frequent first, as lookup(text, path=\"TARGET\") reads it. Words are "
      "split from lines by\n\n"
      "  --map 'text = bytes_tokenize(text)'");
  command.add_argument({kSourceArgument, source_description()});
  command.add_argument({"TARGET", "the file to write"});
  command.add_option(request->component,
                     {"--of", "COMPONENT", "the component; needed if several components are texts"});
  command.add_option(request->most, {"--most", "N", "maximum number of texts", "all"});
  command.add_option(request->least, {"--least", "N", "minimum number of occurrences of a text", "1"});
  command.add_option(
      request->memory_bytes,
      {"--memory-bytes", "N", "bound for all distinct texts in memory, each its length and 64 bytes", "1 GiB"});
  command.add_option(request->first, {"--first", "N", "elements to read", "all"});
  command.add_flag(request->as_json, {"--json", "", "print the counts as JSON"});
  add_dataset_options(command, *request);
  command.set_example(
      "tutti dataset vocabulary corpus.txt words.txt --most 20000 \\\n"
      "    --map 'text = bytes_tokenize(text)'");
  command.set_run([request](const Words &words) {
    take_dataset_paths(*request, words, "vocabulary");
    return write_vocabulary(*request);
  });
  return command;
}

}  // namespace

Dataset open_dataset(const DatasetRequest &request, const Context &context) {
  return prepare(open_source(request.source, context), request.preparation, context);
}

Command dataset_command() {
  Command command("dataset", "inspects and converts datasets");
  command.add(inspect_dataset_command());
  command.add(statistics_command());
  command.add(convert_command());
  command.add(vocabulary_command());
  return command;
}

}  // namespace tutti::tool
