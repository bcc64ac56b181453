// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"unsafe"

	"tutti.org/tutti/internal/raw"
)

// AddFileSystem lets sources find files whose paths have a scheme in a file system of Go:
// "store://bucket/part-1.csv" is the file "bucket/part-1.csv" of `files` when the scheme is "store". Patterns are
// matched by fs.ReadDir.
//
// Its functions are called on goroutines of their own, several at once. A file is read by io.ReaderAt if it has
// that, so that reads go on side by side; else by io.Seeker, one at a time; it must be one of them. It may be a
// VersionedFile. An error or panic comes back from the call that wanted the data. Nothing ends a read but itself: one
// that may wait for ever needs a limit of its own. The file system is held until the context, and all that was made
// with it, is closed.
func (c *Context) AddFileSystem(scheme string, files fs.FS) error {
	if files == nil {
		return invalid("the file system is nil")
	}
	var use uses
	defer use.leave()
	number := use.of(c.ref())
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	queue := raw.Context_add_file_system(number, scheme, true, &failure)
	if queue == 0 {
		return fromC(raw.Error_get_code(failure), failure)
	}
	served := &servedFiles{files: files, prefix: scheme + "://", open: map[int64]*servedFile{}}
	go serveCalls(queue, served.serve)
	return nil
}

// VersionedFile is what the files of a file system may be. The version tells the contents of the file from others that
// were under its name: an entity tag, a generation, a hash; "" when it is not known. It is asked for once, when the
// file has been opened. Only with versions may Cache and Snapshot keep in a file what they read without a key: what is
// cached of another version is never used.
type VersionedFile interface {
	fs.File
	Version() (string, error)
}

// servedFiles is a file system with its open files, by number.
type servedFiles struct {
	files  fs.FS
	prefix string
	mutex  sync.Mutex
	open   map[int64]*servedFile
	last   int64
}

// servedFile is an open file. Where it has no ReadAt, the mutex guards its position.
type servedFile struct {
	file  fs.File
	mutex sync.Mutex
}

// serve answers one call, in every case.
func (s *servedFiles) serve(queue, call uintptr) {
	var file, number int64
	var version string
	var err error = &Error{Code: Aborted, Domain: "user", Message: "a function of the file system ended its goroutine"}
	defer func() {
		code, failure := answer(err)
		if errors.Is(err, fs.ErrNotExist) {
			raw.Error_unref(failure)
			code, failure = toC(&Error{Code: NotFound, Message: "there is no such file", Cause: err})
		}
		raw.File_call_finish(queue, call, file, number, version, code, failure)
	}()
	err = guarded(func() (err error) {
		switch raw.File_call_get_kind(call) {
		case raw.FILE_OPEN:
			file, number, version, err = s.openFile(s.nameOf(call))
		case raw.FILE_READ:
			address := raw.File_call_get_target(call)
			target := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), raw.File_call_get_size(call))
			number, err = s.get(raw.File_call_get_file(call)).read(target, raw.File_call_get_offset(call))
		case raw.FILE_CLOSE:
			err = s.take(raw.File_call_get_file(call)).file.Close()
		case raw.FILE_LIST:
			err = s.list(call)
		}
		return err
	})
}

// nameOf is a path as package fs has it.
func (s *servedFiles) nameOf(call uintptr) string {
	name := strings.TrimPrefix(raw.File_call_get_path(call), s.prefix)
	if name == "" {
		return "."
	}
	return name
}

func (s *servedFiles) openFile(name string) (number, size int64, version string, err error) {
	file, err := s.files.Open(name)
	if err != nil {
		return 0, 0, "", err
	}
	isKept := false
	defer func() {
		if !isKept {
			file.Close()
		}
	}()
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("is a directory")}
	}
	if versioned, ok := file.(VersionedFile); ok && err == nil {
		version, err = versioned.Version()
	}
	if err != nil {
		return 0, 0, "", err
	}
	isKept = true
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.last++
	s.open[s.last] = &servedFile{file: file}
	return s.last, info.Size(), version, nil
}

func (s *servedFiles) get(number int64) *servedFile {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.open[number]
}

func (s *servedFiles) take(number int64) *servedFile {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	file := s.open[number]
	delete(s.open, number)
	return file
}

func (f *servedFile) read(target []byte, offset int64) (count int64, err error) {
	n := 0
	if at, ok := f.file.(io.ReaderAt); ok {
		n, err = at.ReadAt(target, offset)
	} else if seeker, ok := f.file.(io.Seeker); ok {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if _, err = seeker.Seek(offset, io.SeekStart); err == nil {
			n, err = io.ReadFull(f.file, target)
		}
	} else {
		return 0, invalid("the file has neither io.ReaderAt nor io.Seeker")
	}
	if n > 0 {
		return int64(n), nil
	}
	return 0, err
}

func (s *servedFiles) list(call uintptr) error {
	entries, err := fs.ReadDir(s.files, s.nameOf(call))
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() {
			name += "/"
		}
		raw.File_call_add_name(call, name)
	}
	return err
}
