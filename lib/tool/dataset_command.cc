// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset_command.h"

#include <utility>

namespace tutti::tool {

namespace {

bool take_vocabulary_option(DatasetRequest &request, const std::string &word, Arguments &arguments) {
  if (word == "--of") {
    request.component = arguments.value_after(word);
  } else if (word == "--most") {
    request.most = arguments.number_after(word);
  } else if (word == "--least") {
    request.least = arguments.number_after(word);
  } else if (word == "--memory-bytes") {
    request.memory_bytes = arguments.number_after(word);
  } else {
    return false;
  }
  return true;
}

/// `what`: the command.
DatasetRequest parse(Arguments &arguments, const std::string &what) {
  const bool is_vocabulary = what == "vocabulary", has_target = is_vocabulary || what == "convert";
  DatasetRequest request;
  while (!arguments.done()) {
    const std::string word = arguments.take();
    if (request.source.take(word, arguments) || request.preparation.take(word, arguments)) continue;
    if (is_vocabulary && take_vocabulary_option(request, word, arguments)) continue;
    if (word == "--first") {
      request.first = arguments.number_after(word);
    } else if (word == "--json") {
      request.as_json = true;
    } else if (word == "--sheet") {
      request.sheet = arguments.value_after(word);
    } else if (word == "--compression") {
      request.compression = arguments.value_after(word);
    } else if (word == "--shards") {
      request.shards = arguments.number_after(word);
      if (request.shards == 0) throw UsageError{"--shards takes a number above 0"};
    } else if (is_option(word)) {
      throw UsageError{"unknown argument '" + word + "'"};
    } else {
      request.source.paths.push_back(word);
    }
  }
  if (has_target && request.source.paths.size() > 1) {
    request.target = std::move(request.source.paths.back());
    request.source.paths.pop_back();
  }
  if (request.source.paths.empty()) throw UsageError{"no source files given"};
  if (has_target && request.target.empty()) throw UsageError{what + " needs a source and a target"};
  return request;
}

}  // namespace

Dataset open_dataset(const DatasetRequest &request, const Context &context) {
  return prepare(open_source(request.source, context), request.preparation, context);
}

int dataset_command(const std::vector<std::string> &words) {
  Arguments arguments(words);
  const std::string what = arguments.done() ? "" : arguments.take();
  if (what == "inspect") return inspect_dataset(parse(arguments, what));
  if (what == "stats") return print_statistics(parse(arguments, what));
  if (what == "convert") return convert_dataset(parse(arguments, what));
  if (what == "vocabulary") return write_vocabulary(parse(arguments, what));
  throw UsageError{"dataset takes inspect, stats, convert or vocabulary, got '" + what + "'"};
}

std::string dataset_usage() {
  return std::string(
             "  tutti dataset inspect SOURCE... [--first N] [--sheet FILE.png] [--json]\n"
             "      --first       number of elements to show (3), and of images on the sheet (64)\n"
             "      --sheet       writes a contact sheet of the first images\n"
             "  tutti dataset stats SOURCE... [--first N] [--json]\n"
             "      --first       number of elements to read (all)\n"
             "  tutti dataset convert SOURCE... TARGET [--first N] [--shards N] [--compression gzip|zlib]\n"
             "                     writes the examples, unchanged or preprocessed by --map\n"
             "      TARGET        a file name with .tfrecord (one tf.train.Example for each element), .csv (scalars) "
             "or\n"
             "                    .elements (as in memory, with types, shapes and roles; the source element_files\n"
             "                    maps it)\n"
             "      --shards      number N of TFRecord files, NAME-00000-of-00004.tfrecord: element i goes to file i "
             "modulo N\n"
             "      In an Example, arrays of numbers with less than 32 bits (pixels: u8) are stored as one bytes "
             "value, as\n"
             "      they are in memory. The command prints the features for parse_example to read the file. In\n"
             "      TensorFlow: tf.reshape(tf.io.decode_raw(x, tf.uint8), shape).\n"
             "  tutti dataset vocabulary SOURCE... TARGET [--of COMPONENT] [--most N] [--least N] [--first N] "
             "[--json]\n"
             "                     writes the different texts of a component, one per line, the most frequent first,\n"
             "                     as lookup(text, path=\"TARGET\") reads them; split lines into words by\n"
             "                     --map 'text = bytes_tokenize(text)'\n"
             "      --of          the component; needed if several components are texts\n"
             "      --most        maximum number of texts\n"
             "      --least       minimum number of occurrences of a text\n"
             "      --memory-bytes  memory limit for all different texts, each its length and 64 bytes (1 GiB)\n") +
         kPreparationUsage + kSourceUsage;
}

}  // namespace tutti::tool
