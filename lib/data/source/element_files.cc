// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "data/dataset/stage.h"
#include "data/dataset/walk_report.h"
#include "data/file/file_system.h"
#include "data/keep/element_file.h"
#include "data/source_parameters.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

namespace {

// One after the other.
struct Files {
  std::vector<std::shared_ptr<const ElementFile>> files;
  std::vector<int64_t> ends;  // of each, in elements of all

  int64_t size() const { return ends.empty() ? 0 : ends.back(); }
  size_t file_of(int64_t position) const {
    return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), position) - ends.begin());
  }
  int64_t begin_of(size_t file) const { return file == 0 ? 0 : ends[file - 1]; }
};

class ElementFilesAccess : public RandomAccess {
 public:
  explicit ElementFilesAccess(const Files &files) : files_(files) {}

  int64_t size() const override { return files_.size(); }
  int64_t lineage(int64_t position) const override { return position; }
  FileName file(int64_t position) const override {
    const std::shared_ptr<const ElementFile> &file = files_.files[files_.file_of(position)];
    return {file, &file->path()};
  }
  Status element(int64_t position, Element &element) override {
    const size_t file = files_.file_of(position);
    return files_.files[file]->element(position - files_.begin_of(file), element);
  }
  // Neighbours of one file together.
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    Status worst;
    for (size_t first = 0; first < positions.size();) {
      const size_t file = files_.file_of(positions[first]);
      const int64_t begin = files_.begin_of(file);
      size_t last = first;
      while (last < positions.size() && positions[last] >= begin && positions[last] < files_.ends[file])
        positions[last++] -= begin;
      keep_worst(worst, files_.files[file]->gather(positions.subspan(first, last - first),
                                                   from_row(targets, static_cast<int64_t>(first), moved_)));
      first = last;
    }
    return worst;
  }
  bool view(int64_t first, int64_t count, Element &batch) override {
    const size_t file = files_.file_of(first);
    const int64_t begin = files_.begin_of(file);
    return first + count <= files_.ends[file] && files_.files[file]->view(first - begin, count, batch);
  }

 private:
  const Files &files_;  // the dataset's
  std::vector<RowTarget> moved_;
};

class ElementFilesDataset : public Dataset {
 public:
  ElementFilesDataset(ElementSpec spec, Files files)
      : Dataset("element_files", std::move(spec), Cardinality::exactly(files.size()), {}), files_(std::move(files)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return open_indexed(*this, context);
  }
  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access) const override {
    return named(context, *this, std::make_unique<ElementFilesAccess>(files_));
  }

 private:
  const Files files_;
};

}  // namespace

Result<DatasetRef> make_element_files(const ElementFilesParameters &parameters) {
  TUTTI_ASSIGN(const std::vector<std::string> paths, expand_paths(parameters.paths));
  if (paths.empty()) return base::invalid_argument("parameter 'paths': expected at least one file");
  Files files;
  for (const std::string &path : paths) {
    TUTTI_ASSIGN(std::shared_ptr<const ElementFile> file, ElementFile::open(path));
    if (!files.files.empty() && file->spec() != files.files[0]->spec()) {
      return base::invalid_argument("file ", base::quoted(path, 400), " has the components ", file->spec().to_string(),
                                    ", expected ", files.files[0]->spec().to_string(), " as in ",
                                    base::quoted(paths[0], 400));
    }
    files.ends.push_back(files.size() + file->size());
    files.files.push_back(std::move(file));
  }
  ElementSpec spec = files.files[0]->spec();
  return DatasetRef(base::make_ref<ElementFilesDataset>(std::move(spec), std::move(files)));
}

}  // namespace tutti::impl::data
