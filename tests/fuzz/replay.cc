// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: over the files of a corpus, then over inputs of a seeded generator, half of
// them random bytes and half of them files of the corpus with a few bytes changed, cut or doubled.
//
//   replay [--random COUNT] [--length BYTES] [--seed SEED] [FILE|FOLDER]...
//
// With TUTTI_FUZZ_KEEP=PATH each generated input is written there before it runs: what is left after an abort is the
// input that did it.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;

struct Settings {
  size_t count = 0, length = 400, seed = 1;
  std::vector<std::filesystem::path> paths;
};

Settings read_arguments(int argc, char **argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    size_t *const number = argument == "--random"   ? &settings.count
                           : argument == "--length" ? &settings.length
                           : argument == "--seed"   ? &settings.seed
                                                    : nullptr;
    if (number == nullptr || i + 1 == argc) {
      settings.paths.emplace_back(argument);
    } else {
      *number = std::strtoul(argv[++i], nullptr, 10);
    }
  }
  return settings;
}

/// Files in an order that does not depend on the file system; nothing when one cannot be read.
std::vector<Bytes> read_corpus(const std::vector<std::filesystem::path> &paths) {
  std::vector<std::filesystem::path> files;
  for (const auto &path : paths) {
    if (!std::filesystem::is_directory(path)) files.push_back(path);
    if (std::filesystem::is_directory(path))
      for (const auto &entry : std::filesystem::recursive_directory_iterator(path))
        if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Bytes> corpus;
  for (const auto &path : files) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      std::exit(2);
    }
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

Bytes random_bytes(std::mt19937_64 &random, size_t length) {
  Bytes bytes(random() % length);
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>(random());
  return bytes;
}

Bytes changed(std::mt19937_64 &random, Bytes bytes) {
  for (size_t changes = 1 + random() % 4; changes > 0 && !bytes.empty(); --changes) {
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size());
    const size_t how = random() % 8;
    if (how == 0) bytes.erase(at, bytes.begin() + std::min<std::ptrdiff_t>(at - bytes.begin() + 8, std::ssize(bytes)));
    if (how == 1) bytes.insert(at, 1 + random() % 4, *at);
    if (how == 2) bytes.resize(static_cast<size_t>(at - bytes.begin()));
    if (how == 3) *at = static_cast<uint8_t>(*at + 1);
    if (how > 3) *at = static_cast<uint8_t>(random());
  }
  return bytes;
}

}  // namespace

int main(int argc, char **argv) {
  const Settings settings = read_arguments(argc, argv);
  const std::vector<Bytes> corpus = read_corpus(settings.paths);
  for (const Bytes &bytes : corpus)
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  std::mt19937_64 random(settings.seed);
  const char *const keep = std::getenv("TUTTI_FUZZ_KEEP");
  for (size_t i = 0; i < settings.count; ++i) {
    const Bytes bytes = i % 2 == 0 || corpus.empty() ? random_bytes(random, settings.length)
                                                     : changed(random, corpus[random() % corpus.size()]);
    if (keep != nullptr)
      std::ofstream(keep, std::ios::binary)
          .write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu files, %zu generated inputs\n", corpus.size(), settings.count);
  return 0;
}
