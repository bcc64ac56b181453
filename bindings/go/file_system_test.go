// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// narrowed is a file system whose files have no more than the functions that `narrow` leaves.
type narrowed struct {
	files  fs.FS
	narrow func(fs.File) fs.File
}

func (n narrowed) Open(name string) (fs.File, error) {
	file, err := n.files.Open(name)
	if err != nil {
		return nil, err
	}
	if info, _ := file.Stat(); info.IsDir() {
		return file, nil
	}
	return n.narrow(file), nil
}

type onlySeeks struct {
	fs.File
	seek func(offset int64, whence int) (int64, error)
}

func (f onlySeeks) Seek(offset int64, whence int) (int64, error) { return f.seek(offset, whence) }

type onlyReads struct{ fs.File }

type failsToRead struct {
	fs.File
	fail func() error
}

func (f failsToRead) ReadAt([]byte, int64) (int, error) { return 0, f.fail() }

var letterFiles = fstest.MapFS{
	"alphabet/one.txt":   {Data: []byte("a\nb\n")},
	"alphabet/größe.txt": {Data: []byte("c\n")},
	"alphabet/more/x":    {Data: []byte("x\n")},
	"big.txt":            {Data: []byte(strings.Repeat("0123456789012345678901234567890\n", 1<<17))}, // 4 MiB
}

func contextWith(t *testing.T, scheme string, files fs.FS) *Context {
	t.Helper()
	context := must[*Context](t)(NewContext(nil))
	closed(t, context)
	if err := context.AddFileSystem(scheme, files); err != nil {
		t.Fatal(err)
	}
	return context
}

func TestFileSystemsInGo(t *testing.T) {
	live(t)
	seeks := narrowed{letterFiles, func(file fs.File) fs.File {
		return onlySeeks{file, file.(interface {
			Seek(int64, int) (int64, error)
		}).Seek}
	}}
	for name, files := range map[string]fs.FS{"read at": letterFiles, "seek": seeks} {
		context := contextWith(t, "go", files)
		for path, wanted := range map[string]string{
			"go://alphabet/one.txt": "[a b]", "go://alphabet/größe.txt": "[c]", "go://alphabet/*.txt": "[c a b]",
			"go://*/more/?": "[x]",
		} {
			if got := must[[]string](t)(lines(t, context, path)); fmt.Sprint(got) != wanted {
				t.Errorf("%s: %s has %v", name, path, got)
			}
		}
		if got := must[[]string](t)(lines(t, context, "go://big.txt")); len(got) != 1<<17 || got[1<<17-1] != got[0] {
			t.Errorf("%s: %d lines", name, len(got))
		}
	}
}

func TestFileSystemsInGoFail(t *testing.T) {
	live(t)
	context := contextWith(t, "go", letterFiles)
	if err := context.AddFileSystem("go", letterFiles); !errors.Is(err, AlreadyExists) {
		t.Error(err)
	}
	if err := context.AddFileSystem("Big Letters", letterFiles); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if err := context.AddFileSystem("other", nil); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if _, err := lines(t, context, "go://none.txt"); !errors.Is(err, NotFound) || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := lines(t, context, "go://alphabet"); err == nil {
		t.Error("a directory is read")
	}
	reads := contextWith(t, "go", narrowed{letterFiles, func(file fs.File) fs.File { return onlyReads{file} }})
	if _, err := lines(t, reads, "go://big.txt"); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	brokenBy(t, func(t *testing.T, fail func() error) error {
		broken := narrowed{letterFiles, func(file fs.File) fs.File { return failsToRead{file, fail} }}
		_, err := lines(t, contextWith(t, "go", broken), "go://big.txt")
		return err
	})
}

// versioned is a file that io.ReaderAt reads.
type versioned struct {
	fs.File
	io.ReaderAt
	version func() (string, error)
}

func (f versioned) Version() (string, error) { return f.version() }

// What is cached in a file is used as long as the version is the same, and never without one.
func TestCachesFollowVersionsOfFiles(t *testing.T) {
	live(t)
	cache := filepath.Join(t.TempDir(), "lines.cache")
	read := func(content string, version func() (string, error)) (string, error) {
		files := narrowed{fstest.MapFS{"n.txt": {Data: []byte(content)}}, func(file fs.File) fs.File {
			return versioned{file, file.(io.ReaderAt), version}
		}}
		pipeline := NewPipeline(contextWith(t, "go", files)).TextLines([]string{"go://n.txt"}, nil)
		dataset, err := pipeline.Cache(&CacheOptions{Path: cache}).Build()
		if err != nil {
			return "", err
		}
		defer dataset.Close()
		lines, err := linesOf(t, dataset)
		return strings.Join(lines, " "), err
	}
	for _, c := range []struct{ content, version, wanted string }{
		{"one\ntwo\n", "1", "one two"}, {"six\nten\n", "1", "one two"}, {"six\nten\n", "2", "six ten"},
	} {
		got, err := read(c.content, func() (string, error) { return c.version, nil })
		if err != nil || got != c.wanted {
			t.Errorf("version %s: %q, not %q; %v", c.version, got, c.wanted, err)
		}
	}
	_, err := read("one\n", func() (string, error) { return "", nil })
	if !errors.Is(err, InvalidArgument) || !strings.Contains(err.Error(), "'key'") {
		t.Error(err)
	}
	brokenBy(t, func(t *testing.T, fail func() error) error {
		_, err := read("one\n", func() (string, error) { return "", fail() })
		return err
	})
}

// What is opened takes as long as its context lives.
type slow struct {
	fs.FS
	begin func()
	ctx   context.Context
}

func (s slow) Open(name string) (fs.File, error) {
	s.begin()
	<-s.ctx.Done()
	return s.FS.Open(name)
}

func TestContextsEndTheOpeningOfFiles(t *testing.T) {
	live(t)
	ctx, cancel := context.WithCancel(context.Background())
	both := []string{"slow://alphabet/one.txt", "slow://alphabet/größe.txt"}
	system := contextWith(t, "slow", slow{letterFiles, cancel, ctx})
	for i := 0; i < 2; i++ { // while files are opened, and before
		_, err := NewPipeline(system).WithContext(ctx).TextLines(both, nil).Build()
		if !errors.Is(err, context.Canceled) || !errors.Is(err, Cancelled) {
			t.Error(err)
		}
	}
	later, end := context.WithCancel(context.Background())
	pipeline := NewPipeline(contextWith(t, "go", letterFiles)).WithContext(later).WithContext(later)
	dataset := must[*Dataset](t)(pipeline.TextLines([]string{"go://alphabet/one.txt"}, nil).Build())
	closed(t, dataset)
	end()
	if got := must[[]string](t)(linesOf(t, dataset)); len(got) != 2 {
		t.Error(got)
	}
	_ = NewPipeline(nil).WithContext(later).Close()
}
