// SPDX-License-Identifier: Apache-2.0
//
// A directory with one directory of files for each class. Classes are numbered, and files ordered, by name.
#include <algorithm>
#include <cstring>
#include <utility>

#include "data/file_system.h"
#include "data/source_parameters.h"
#include "data/stage.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

struct ClassFile {
  std::string path;
  int32_t label;
};

struct ImageFolder {
  std::vector<ClassFile> files;
  std::vector<std::string> classes;
  bool gives_contents = true, gives_class = false;
};

Result<Tensor> read_contents(const std::string &path) {
  TUTTI_ASSIGN(const Ref<const ReadableFile> file, open_file(path));
  const int64_t size = file->size_bytes();
  TUTTI_ASSIGN(Ref<tensor::Buffer> buffer, tensor::Buffer::allocate(16 + size));
  auto *const offsets = static_cast<int64_t *>(buffer->data());
  TUTTI_ASSIGN(const size_t got,
               file->read_at(0, {static_cast<char *>(buffer->data()) + 16, static_cast<size_t>(size)}));
  offsets[0] = 16;
  offsets[1] = 16 + static_cast<int64_t>(got);
  return Tensor::from_buffer(tensor::DType::bytes, {}, std::move(buffer));
}

class ImageFolderAccess : public RandomAccess {
 public:
  explicit ImageFolderAccess(const ImageFolder &folder) : folder_(folder) {}

  int64_t size() const override { return static_cast<int64_t>(folder_.files.size()); }
  int64_t lineage(int64_t position) const override { return position; }
  Status gather(std::span<int64_t>, std::span<const RowTarget>) override {
    return base::internal_error("rows of files of any size");
  }
  Status element(int64_t position, Element &element) override {
    const ClassFile &file = folder_.files[static_cast<size_t>(position)];
    element.components.resize(folder_.gives_class ? 3 : 2);
    if (folder_.gives_contents) {
      TUTTI_ASSIGN(element.components[0], read_contents(file.path));
    } else {
      TUTTI_ASSIGN(element.components[0], tensor::make_bytes_tensor({}, {file.path}));
    }
    TUTTI_ASSIGN(element.components[1], Tensor::scalar(file.label));
    if (!folder_.gives_class) return Status();
    TUTTI_ASSIGN(element.components[2],
                 tensor::make_bytes_tensor({}, {folder_.classes[static_cast<size_t>(file.label)]}));
    return Status();
  }

 private:
  const ImageFolder &folder_;  // the dataset's
};

class ImageFolderDataset : public Dataset {
 public:
  ImageFolderDataset(ElementSpec spec, ImageFolder folder)
      : Dataset("image_folder", std::move(spec), Cardinality::exactly(static_cast<int64_t>(folder.files.size())), {}),
        folder_(std::move(folder)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return open_indexed(*this, context);
  }
  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &, Access) const override {
    return std::unique_ptr<RandomAccess>(std::make_unique<ImageFolderAccess>(folder_));
  }

 private:
  const ImageFolder folder_;
};

bool has_extension(std::string_view name, const std::vector<std::string> &extensions) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string extension(name.substr(dot + 1));
  for (char &c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

}  // namespace

Result<DatasetRef> make_image_folder(const ImageFolderParameters &parameters) {
  TUTTI_ASSIGN(const FileSystem *system, file_system_of(parameters.path));
  std::vector<std::string> extensions = parameters.extensions;
  if (extensions.empty()) extensions = {"jpg", "jpeg", "png", "bmp", "gif", "webp"};
  ImageFolder folder;
  folder.gives_contents = parameters.contents;
  folder.gives_class = !parameters.class_name.empty();
  TUTTI_ASSIGN(const std::vector<FileSystem::Entry> entries, system->list(parameters.path));
  for (const FileSystem::Entry &entry : entries) {
    if (!entry.is_directory || entry.name.starts_with('.')) continue;
    const std::string directory = base::concat(parameters.path, "/", entry.name);
    TUTTI_ASSIGN(const std::vector<FileSystem::Entry> files, system->list(directory));
    for (const FileSystem::Entry &file : files) {
      if (file.is_directory || file.name.starts_with('.') || !has_extension(file.name, extensions)) continue;
      folder.files.push_back({base::concat(directory, "/", file.name), static_cast<int32_t>(folder.classes.size())});
    }
    folder.classes.push_back(entry.name);
  }
  if (folder.files.empty()) {
    return base::not_found("no files of the kinds ", base::join(extensions, ", "), " in the directories of ",
                           base::quoted(parameters.path, 400));
  }
  ElementSpec spec{{{parameters.contents ? "image" : "path", Role::feature, tensor::DType::bytes, {}},
                    {"label", Role::label, tensor::DType::i32, {}}}};
  if (folder.gives_class) spec.components.push_back({parameters.class_name, Role::feature, tensor::DType::bytes, {}});
  TUTTI_TRY(check(spec));
  return DatasetRef(base::make_ref<ImageFolderDataset>(std::move(spec), std::move(folder)));
}

}  // namespace tutti::impl::data
