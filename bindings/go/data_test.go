// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"
)

func backAndForth[T Element](t *testing.T, values ...T) {
	t.Helper()
	tensor := must[*Tensor](t)(NewTensor(values))
	defer tensor.Close()
	if got := must[[]T](t)(Values[T](tensor)); fmt.Sprint(got) != fmt.Sprint(values) {
		t.Errorf("%v became %v", values, got)
	}
	if tensor.DType() != DTypeOf[T]() || tensor.DType().String() != fmt.Sprintf("%T", values[0]) {
		t.Errorf("%T became %v", values[0], tensor.DType())
	}
}

func TestTensorsOfEveryType(t *testing.T) {
	live(t)
	backAndForth(t, float32(1.5), float32(math.Inf(-1)))
	backAndForth(t, 1.0/3, math.MaxFloat64)
	backAndForth(t, int32(-1), int32(math.MaxInt32))
	backAndForth(t, int64(1)<<40+1, int64(math.MinInt64))
	backAndForth(t, uint8(0), uint8(255))
	backAndForth(t, true, false, true)
	backAndForth(t, int8(-128), int8(127))
	backAndForth(t, int16(-32768), int16(32767))
	backAndForth(t, uint16(65535))
	backAndForth(t, uint32(math.MaxUint32))
	backAndForth(t, uint64(math.MaxUint64))
}

func TestTensorsOfEveryShape(t *testing.T) {
	live(t)
	scalar, empty := must[*Tensor](t)(NewScalar(3.5)), must[*Tensor](t)(NewTensor([]float32{}, 0, 7))
	grid := must[*Tensor](t)(Zeros(Int64, 2, 3))
	half := must[*Tensor](t)(NewTensorFromBytes(BFloat16, []byte{0x80, 0x3f}, 1))
	closed(t, scalar, empty, grid, half)
	if scalar.Dims() != nil || scalar.Len() != 1 || empty.Len() != 0 || fmt.Sprint(empty.Dims()) != "[0 7]" {
		t.Error(scalar.Dims(), empty.Dims())
	}
	if values := must[[]float32](t)(Values[float32](empty)); len(values) != 0 {
		t.Error(values)
	}
	if err := Update(grid, func(data []int64) error {
		for i := range data {
			data[i] = int64(i) << 33
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	wanted := fmt.Sprint([]int64{0, 1 << 33, 2 << 33, 3 << 33, 4 << 33, 5 << 33})
	if values := must[[]int64](t)(Values[int64](grid)); fmt.Sprint(values) != wanted {
		t.Error(values)
	}
	address := must[uintptr](t)(grid.DLPack())
	shared := must[*Tensor](t)(TensorFromDLPack(address))
	grid.Close()
	if values := must[[]int64](t)(Values[int64](shared)); values[5] != 5<<33 {
		t.Error(values)
	}
	shared.Close()
	if err := half.ViewBytes(func(data []byte) error { return fmt.Errorf("%x", data) }); err.Error() != "803f" {
		t.Error(err)
	}
}

func rows(t *testing.T, dataset *Dataset) [][]int64 {
	t.Helper()
	return walk[int64](t, dataset)
}

// walk gives the first component of each element.
func walk[T Element](t *testing.T, dataset *Dataset) (values [][]T) {
	t.Helper()
	iterator := must[*Iterator](t)(dataset.Iterator(1))
	defer iterator.Close()
	for {
		element, err := iterator.Next(background)
		if errors.Is(err, io.EOF) {
			return values
		}
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, must[[]T](t)(Values[T](element[0])))
		for _, tensor := range element {
			tensor.Close()
		}
	}
}

func count(n int64) []int64 {
	values := make([]int64, n)
	for i := range values {
		values[i] = int64(i)
	}
	return values
}

func TestPipelines(t *testing.T) {
	live(t)
	ten := func() *Pipeline { return upTo(10) }
	other := must[*Dataset](t)(ten().Take(2).Build())
	closed(t, other)
	three := must[*Tensor](t)(NewTensor(count(3)))
	defer three.Close()
	cases := []struct {
		pipeline *Pipeline
		wanted   string
	}{
		{ten().Batch(4, nil), "[[0 1 2 3] [4 5 6 7] [8 9]]"},
		{ten().Batch(4, &BatchOptions{DropRemainder: true}), "[[0 1 2 3] [4 5 6 7]]"},
		{ten().Skip(1).Take(2).Repeat(&RepeatOptions{Count: I64(2)}), "[[1] [2] [1] [2]]"},
		{ten().Take(2).Repeat(&RepeatOptions{Count: I64(0)}), "[]"},
		{ten().Take(1).Concatenate(other).Prefetch(nil), "[[0] [0] [1]]"},
		{ten().Shard(5, 2).Cache(nil), "[[2] [7]]"},
		{ten().Batch(5, nil).Unbatch().Take(3), "[[0] [1] [2]]"},
		{NewPipeline(nil).AddTensor("n", Feature, three).Repeat(&RepeatOptions{Count: I64(2)}), "[[0 1 2] [0 1 2]]"},
		{NewPipeline(nil).AddDataset(other).MapGraph(1, func(g *Graph) error {
			g.SetOutput("n", g.Mul(g.Feature("n"), g.Constant(Int64, 1<<33)))
			return nil
		}), fmt.Sprint([][]int64{{0}, {1 << 33}})},
		{NewPipeline(nil).AddTensor("n", Feature, three).MapGraph(1, func(g *Graph) error {
			largest, at := g.TopK(g.Feature("n"), 2)
			g.SetOutput("n", g.Mul(largest, at))
			return nil
		}), "[[4 1]]"},
		{ten().FilterGraph(func(g *Graph) error {
			g.SetOutput("keep", g.Less(g.Feature("n"), g.Constant(Int64, 3)))
			return nil
		}), "[[0] [1] [2]]"},
	}
	for _, c := range cases {
		dataset := must[*Dataset](t)(c.pipeline.Build())
		if got := fmt.Sprint(rows(t, dataset)); got != c.wanted {
			t.Errorf("%s, not %s", got, c.wanted)
		}
		dataset.Close()
	}
}

func TestDatasetsTellAndSplit(t *testing.T) {
	live(t)
	dataset := must[*Dataset](t)(AddSlices(NewPipeline(nil), "n", Label, count(5)).Build())
	head, rest, err := dataset.Split(2)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, dataset, head, rest)
	if fmt.Sprint(rows(t, head), rows(t, rest)) != "[[0] [1]] [[2] [3] [4]]" || rest.Cardinality() != 3 {
		t.Error(rows(t, head), rows(t, rest), rest.Cardinality())
	}
	if got := dataset.Components(); len(got) != 1 || got[0] != (Component{"n", Label}) {
		t.Error(got)
	}
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, iterator)
	must[[]*Tensor](t)(iterator.Next(background))
	place := must[string](t)(iterator.Save())
	again := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, again)
	if err := again.Restore(place); err != nil {
		t.Fatal(err)
	}
	if values := must[[]int64](t)(Values[int64](must[[]*Tensor](t)(again.Next(background))[0])); values[0] != 1 {
		t.Error(values)
	}
	if err := again.Restore("{"); err == nil {
		t.Error("a bad position is taken")
	}
}

// words splits the lines of a corpus; with a vocabulary they become numbers, 0 for padding and 1 for what is not in it.
func words(t *testing.T, vocabulary *Tensor) *Pipeline {
	t.Helper()
	corpus := must[*Tensor](t)(NewTextTensor([]string{"The cat sat.", "A dog sat", "", "the cat, the dog!"}))
	defer corpus.Close()
	return NewPipeline(nil).AddSlices("text", Feature, corpus).MapGraph(0, func(g *Graph) error {
		text := g.BytesTokenize(g.Feature("text"), &BytesTokenizeOptions{Punctuation: PunctuationDrop})
		if vocabulary != nil {
			found := g.Lookup(text, &LookupOptions{Vocabulary: g.ConstantTensor(vocabulary)})
			text = g.Add(found, g.Constant(Int64, 2))
		}
		g.SetOutput("text", text)
		return nil
	})
}

func TestAVocabularyIsMadeFromACorpus(t *testing.T) {
	live(t)
	corpus := must[*Dataset](t)(words(t, nil).Build())
	closed(t, corpus)
	count := func(options *CountTextsOptions) (*Tensor, string, error) {
		texts, counts, err := corpus.CountTexts(background, "text", options)
		if err != nil {
			return nil, "", err
		}
		closed(t, texts)
		return texts, fmt.Sprint(must[[]string](t)(Texts(texts)), counts), nil
	}
	if _, got, err := count(nil); err != nil || got != "[the cat dog sat a] [3 2 2 2 1]" {
		t.Error(got, err)
	}
	if _, got, err := count(&CountTextsOptions{LeastCount: 2}); err != nil || got != "[the cat dog sat] [3 2 2 2]" {
		t.Error(got, err)
	}
	vocabulary, got, err := count(&CountTextsOptions{MostTexts: 3})
	if err != nil || got != "[the cat dog] [3 2 2]" {
		t.Fatal(got, err)
	}
	numbers := must[*Dataset](t)(words(t, vocabulary).PaddedBatch(2, nil).Build())
	closed(t, numbers)
	if got := fmt.Sprint(rows(t, numbers)); got != "[[2 3 1 1 4 1] [0 0 0 0 2 3 2 4]]" {
		t.Error(got)
	}
	_, _, err = count(&CountTextsOptions{MemoryBytes: 100})
	if !errors.Is(err, ResourceExhausted) || !strings.Contains(err.Error(), "need more than 100 bytes") {
		t.Error(err)
	}
	if _, _, err := corpus.CountTexts(background, "y", nil); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(background)
	cancel()
	if _, _, err := corpus.CountTexts(ended, "text", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestClassesAreCountedAndWeighed(t *testing.T) {
	live(t)
	dataset := must[*Dataset](t)(AddSlices(NewPipeline(nil), "y", Label, []int64{2, 0, 0, 1, 0, 0}).Build())
	endless := must[*Dataset](t)(NewPipeline(nil).AddDataset(dataset).Repeat(nil).Build())
	none := must[*Dataset](t)(NewPipeline(nil).AddDataset(dataset).Take(0).Build())
	closed(t, dataset, endless, none)
	if got := must[[]int64](t)(dataset.CountClasses(background, "y", 0)); fmt.Sprint(got) != "[4 1 1]" {
		t.Error(got)
	}
	counts := must[[]int64](t)(dataset.CountClasses(background, "y", 4))
	if fmt.Sprint(counts) != "[4 1 1 0]" {
		t.Error(counts)
	}
	if got := must[[]int64](t)(none.CountClasses(background, "y", 0)); len(got) != 0 {
		t.Error(got)
	}
	_, err := dataset.CountClasses(background, "y", 2)
	if !errors.Is(err, OutOfRange) || !strings.Contains(err.Error(), "is of class 2; expected a class from 0 to 1") {
		t.Error(err)
	}
	if _, err := dataset.CountClasses(background, "y", -1); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if _, err := endless.CountClasses(background, "y", 0); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(background)
	cancel()
	if _, err := dataset.CountClasses(ended, "y", 3); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	weights := NewPipeline(nil).AddDataset(dataset).ClassWeights("y", counts, nil)
	weighed := must[*Dataset](t)(weights.Batch(6, nil).Build())
	closed(t, weighed)
	it := must[*Iterator](t)(weighed.Iterator(0))
	closed(t, it)
	batch := must[[]*Tensor](t)(it.Next(background))
	defer closeAll(batch)
	if got := must[[]float32](t)(Values[float32](batch[1])); fmt.Sprint(got) != "[2 0.5 0.5 2 0.5 0.5]" {
		t.Error(got)
	}
}

func TestIDXFiles(t *testing.T) {
	live(t)
	path := filepath.Join(t.TempDir(), "größe.gz")
	file := must[*os.File](t)(os.Create(path))
	packed := gzip.NewWriter(file)
	packed.Write([]byte{0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9})
	packed.Close()
	file.Close()
	pipeline := NewPipeline(nil).AddIDX("n", Feature, path).Batch(3, nil)
	dataset := must[*Dataset](t)(pipeline.MapGraphOnDevice(func(g *Graph) error {
		g.SetOutput("n", g.Cast(g.Feature("n"), Int64))
		return nil
	}).Build())
	closed(t, dataset)
	if got := fmt.Sprint(rows(t, dataset)); got != "[[7 8 9]]" {
		t.Error(got)
	}
}

func TestArrowStreamsGoOutAndIn(t *testing.T) {
	live(t)
	memory := must[*Tensor](t)(Zeros(Int64, 5)) // an ArrowArrayStream, outside of Go
	var address uintptr
	if err := Update(memory, func(data []int64) error {
		address = uintptr(unsafe.Pointer(&data[0]))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	dataset := must[*Dataset](t)(AddSlices(NewPipeline(nil), "n", Feature, count(5)).Build())
	if err := dataset.ToArrow(0, 2, address); err != nil {
		t.Fatal(err)
	}
	again := must[*Dataset](t)(NewPipeline(nil).SetArrowStream(address).Arrow(nil).Build())
	closed(t, memory, dataset, again)
	if got := fmt.Sprint(rows(t, again)); got != "[[0] [1] [2] [3] [4]]" {
		t.Error(got)
	}
	if err := dataset.ToArrow(0, 0, address); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
}

// lines are those of a file, read through the file systems of a context.
func lines(t *testing.T, context *Context, path string) (read []string, err error) {
	t.Helper()
	dataset, err := NewPipeline(context).TextLines([]string{path}, nil).Build()
	if err != nil {
		return nil, err
	}
	defer dataset.Close()
	return linesOf(t, dataset)
}

func linesOf(t *testing.T, dataset *Dataset) (read []string, err error) {
	t.Helper()
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	defer iterator.Close()
	for {
		element, err := iterator.Next(background)
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return read, err
		}
		read = append(read, must[[]string](t)(Texts(element[0]))...)
		closeAll(element)
	}
}

func TestFileSystemsAreLoaded(t *testing.T) {
	live(t)
	context := must[*Context](t)(NewContext(nil))
	closed(t, context)
	if err := context.LoadFileSystem("nothing", ""); !errors.Is(err, NotFound) {
		t.Error(err)
	}
	letters := os.Getenv("TUTTI_LETTERS_MODULE")
	if letters == "" {
		t.Skip("TUTTI_LETTERS_MODULE is not set")
	}
	if _, err := lines(t, context, "letters://a"); err == nil {
		t.Error("there are letters before they are loaded")
	}
	if err := context.LoadFileSystem(letters, `{"upper": true}`); !errors.Is(err, InvalidArgument) {
		t.Error(err)
	}
	if err := context.LoadFileSystem(letters, ""); err != nil {
		t.Fatal(err)
	}
	if err := context.LoadFileSystem(letters, ""); !errors.Is(err, AlreadyExists) {
		t.Error(err)
	}
	if got := must[[]string](t)(lines(t, context, "letters://a,größe,c")); fmt.Sprint(got) != "[a größe c]" {
		t.Error(got)
	}
	if _, err := lines(t, context, "letters://"); !errors.Is(err, NotFound) {
		t.Error(err)
	}
}

func TestFilesOverHTTP(t *testing.T) {
	live(t)
	module := os.Getenv("TUTTI_HTTP_MODULE")
	if module == "" {
		t.Skip("TUTTI_HTTP_MODULE is not set")
	}
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, asked *http.Request) {
		if asked.URL.Path != "/lines.txt" || asked.Header.Get("X-Key") != "open" {
			http.NotFound(answer, asked)
			return
		}
		http.ServeContent(answer, asked, "lines.txt", time.Time{}, strings.NewReader("one\ntwo\n"))
	}))
	defer server.Close()
	context := must[*Context](t)(NewContext(nil))
	closed(t, context)
	if err := context.LoadFileSystem(module, `{"headers": ["X-Key: open"]}`); err != nil {
		t.Fatal(err)
	}
	if got := must[[]string](t)(lines(t, context, server.URL+"/lines.txt")); fmt.Sprint(got) != "[one two]" {
		t.Error(got)
	}
	if _, err := lines(t, context, server.URL+"/none.txt"); !errors.Is(err, NotFound) {
		t.Error(err)
	}
}

func TestZeroBytesDoNotCutText(t *testing.T) {
	live(t)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte{0, 0, 8, 1, 0, 0, 0, 1, 7}, 0o600); err != nil {
		t.Fatal(err)
	}
	must[*Dataset](t)(NewPipeline(nil).AddIDX("n", Feature, path).Build()).Close()
	if _, err := NewPipeline(nil).AddIDX("n", Feature, path+"\x00more").Build(); !errors.Is(err, NotFound) {
		t.Error(err)
	}
	if _, err := Mirrored(nil, "cpu:0\x00"); !errors.Is(err, NotFound) {
		t.Error(err)
	}
	if HasFeature("backend:reference\x00") {
		t.Error("a feature's name is cut")
	}
}

func fed(t *testing.T, capacity int64) (*Feed, *Dataset) {
	feed := must[*Feed](t)(NewFeed(nil, capacity, FeedComponent{"n", Feature, Int64, nil}))
	dataset := must[*Dataset](t)(NewPipeline(nil).AddFeed(feed).Batch(3, nil).Build())
	closed(t, feed, dataset)
	return feed, dataset
}

func TestFeedFromAChannel(t *testing.T) {
	live(t)
	feed, dataset := fed(t, 2)
	elements := make(chan []*Tensor)
	go func() {
		defer close(elements)
		for i := int64(0); i < 7; i++ {
			tensor, _ := NewScalar(i)
			elements <- []*Tensor{tensor}
		}
	}()
	pushed := make(chan error)
	go func() { pushed <- feed.PushChannel(background, elements) }()
	if got := fmt.Sprint(rows(t, dataset)); got != "[[0 1 2] [3 4 5] [6]]" {
		t.Error(got)
	}
	if err := <-pushed; err != nil {
		t.Error(err)
	}
}

func TestAnIteratorServesOneGoroutine(t *testing.T) {
	live(t)
	feed, dataset := fed(t, 1)
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, iterator)
	first := make(chan error)
	go func() {
		_, err := iterator.Next(background)
		first <- err
	}()
	var err error
	for i := 0; i < 1000 && !errors.Is(err, FailedPrecondition); i++ {
		time.Sleep(time.Millisecond)
		_, err = iterator.Save()
	}
	if !errors.Is(err, FailedPrecondition) {
		t.Error(err)
	}
	if err := feed.Finish(); err != nil {
		t.Error(err)
	}
	if err := <-first; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestClosingAFeedEndsItsPush(t *testing.T) {
	live(t)
	withCancel, cancel := context.WithCancel(background)
	defer cancel()
	for _, ctx := range []context.Context{background, withCancel} {
		feed, _ := fed(t, 1)
		pushed := make(chan error)
		go func() {
			pushed <- feed.PushAll(ctx, func(context.Context) ([]*Tensor, error) {
				tensor, err := NewScalar(int64(1))
				return []*Tensor{tensor}, err
			})
		}()
		time.Sleep(20 * time.Millisecond)
		feed.Close()
		if err := <-pushed; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}

// residentBytes is the memory that the process holds.
func residentBytes(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	var size, resident int64
	fmt.Sscan(string(text), &size, &resident)
	return resident * int64(os.Getpagesize())
}

func TestForgottenTensorsDoNotPileUp(t *testing.T) {
	live(t)
	most := int64(0)
	for i := 0; i < 400; i++ {
		must[*Tensor](t)(Zeros(Float32, 1<<20)) // 4 MB each, never closed: 1.6 GB in all
		if now := LiveObjects("tensor"); now > most {
			most = now
		}
	}
	if most > 200 { // a collection may come late on a busy machine
		t.Errorf("%d tensors of 4 MB at a time", most)
	}
	runtime.GC()
}

func TestManyObjectsLeaveNothing(t *testing.T) {
	live(t)
	objects := LiveObjects("")
	run := func(rounds int) {
		for i := 0; i < rounds; i++ {
			tensor := must[*Tensor](t)(NewTensor([]int64{1, 2, 3}))
			if i%2 == 0 {
				tensor.Close()
			}
			NewPipeline(nil)
		}
		// On a busy machine finalizers may be far behind; what waits for them is no leak.
		becomes(t, "the end of what was forgotten", func() bool { runtime.GC(); return LiveObjects("") <= objects })
	}
	run(20000)
	before := residentBytes(t)
	for i := 0; i < 5; i++ {
		run(20000)
	}
	if grown := residentBytes(t) - before; memoryIsMeasurable && grown > 64<<20 {
		t.Errorf("%d bytes more", grown)
	}
}

// Steps with temporaries that nobody closes: 10^4, or as many as TUTTI_TEST_ROUNDS says.
func TestStepsWithTemporaries(t *testing.T) {
	live(t)
	steps := int64(10000)
	if text := os.Getenv("TUTTI_TEST_ROUNDS"); text != "" {
		steps = must[int64](t)(strconv.ParseInt(text, 10, 64))
	}
	dataset, estimator := toyDataset(t), toyEstimator(t, RunOptions{})
	closed(t, dataset, estimator)
	before := int64(0)
	must[*Result](t)(estimator.Train(background, dataset, &TrainOptions{Steps: steps}, OnStep(1, func(e *Event) error {
		if e.Step == steps/5 {
			before = residentBytes(t)
		}
		_, err := estimator.ReadVariable("dense_1/bias")
		return err
	})))
	if grown := residentBytes(t) - before; memoryIsMeasurable && grown > 64<<20 {
		t.Errorf("%d bytes more", grown)
	}
	runtime.GC()
}

// 2^31 bytes and more, when there is memory for it: TUTTI_TEST_LARGE=yes needs 3 GB.
func TestLargeTensors(t *testing.T) {
	if os.Getenv("TUTTI_TEST_LARGE") == "" {
		t.Skip("TUTTI_TEST_LARGE is not set")
	}
	live(t)
	const count = 1<<31 + 10
	tensor := must[*Tensor](t)(Zeros(Uint8, count))
	closed(t, tensor)
	fill := func(data []uint8) error { data[count-2], data[count-1] = 7, 9; return nil }
	if err := Update(tensor, fill); err != nil {
		t.Fatal(err)
	}
	err := View(tensor, func(data []uint8) error {
		if len(data) != count || data[count-3] != 0 || data[count-2] != 7 || data[count-1] != 9 {
			t.Errorf("%d elements, the last ones %v", len(data), data[count-3:])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
