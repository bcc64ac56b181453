// SPDX-License-Identifier: Apache-2.0

package tutti

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestTextsInTensors(t *testing.T) {
	live(t)
	texts := []string{"one", "", "größe-数-🙂", string([]byte{0, 255})}
	vector := must[*Tensor](t)(NewTextTensor(texts))
	grid := must[*Tensor](t)(NewTextTensor(texts, 2, 2))
	number := must[*Tensor](t)(NewScalar(int64(3)))
	closed(t, vector, grid, number)
	if fmt.Sprint(must[[]string](t)(Texts(vector))) != fmt.Sprint(texts) || vector.DType() != ByteArray {
		t.Error(Texts(vector))
	}
	if fmt.Sprint(must[[]string](t)(Texts(grid)), grid.Dims()) != fmt.Sprint(texts, []int64{2, 2}) {
		t.Error(grid.Dims())
	}
	if _, err := Texts(number); err == nil {
		t.Error("texts of numbers")
	}
	if _, err := NewTextTensor(texts, 5); err == nil {
		t.Error("five of four")
	}
}

func TestLinesOfFiles(t *testing.T) {
	live(t)
	folder := t.TempDir()
	for name, text := range map[string]string{"1.txt": "head\na\r\nb", "2.txt": "head\nc\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	paths := []string{filepath.Join(folder, "*.txt")}
	lines := NewPipeline(nil).TextLines(paths, &TextLinesOptions{SkipLines: 1})
	dataset := must[*Dataset](t)(lines.Batch(5, nil).Build())
	closed(t, dataset)
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, iterator)
	element := must[[]*Tensor](t)(iterator.Next(context.Background()))
	closed(t, element[0])
	if got := must[[]string](t)(Texts(element[0])); fmt.Sprint(got) != "[a b c]" {
		t.Error(got)
	}
	if _, err := NewPipeline(nil).TextLines(nil, nil).Build(); err == nil {
		t.Error("no paths")
	}
}

func TestRecordsAndExamples(t *testing.T) {
	live(t)
	path := filepath.Join(t.TempDir(), "examples.gz")
	writer := must[*RecordWriter](t)(NewRecordWriter(nil, path, "gzip"))
	closed(t, writer)
	for i := int64(0); i < 3; i++ {
		label, words := must[*Tensor](t)(NewScalar(i)), must[*Tensor](t)(NewTextTensor(make([]string, i)))
		for name, tensor := range map[string]*Tensor{"label": label, "words": words} {
			if err := writer.AddFeature(name, tensor); err != nil {
				t.Error(err)
			}
			tensor.Close()
		}
		if err := writer.WriteExample(); err != nil {
			t.Error(err)
		}
	}
	if err := writer.Write([]byte{0xff}); err != nil {
		t.Error(err)
	}
	if err := writer.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := writer.Finish(); err == nil {
		t.Error("finished twice")
	}
	dataset := must[*Dataset](t)(NewPipeline(nil).TFRecord([]string{path}, nil).ParseExample(
		[]string{"label: i64", "words: bytes[?]"}, &ParseExampleOptions{Labels: []string{"label"}}).Build())
	closed(t, dataset)
	iterator := must[*Iterator](t)(dataset.Iterator(0))
	closed(t, iterator)
	for i := int64(0); i < 3; i++ {
		element := must[[]*Tensor](t)(iterator.Next(context.Background()))
		closed(t, element[0], element[1])
		if got := must[[]int64](t)(Values[int64](element[0])); got[0] != i || element[1].Len() != i {
			t.Error(got, element[1].Len())
		}
	}
	if _, err := iterator.Next(context.Background()); err == nil || dataset.Components()[0].Role != Label {
		t.Error("a byte is no example", err)
	}
}
