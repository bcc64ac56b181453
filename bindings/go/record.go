// SPDX-License-Identifier: Apache-2.0

package tutti

import "tutti.org/tutti/internal/raw"

// RecordWriter writes a TFRecord file, byte by byte what TensorFlow writes; Pipeline.TFRecord reads it. The file is
// there, complete, once Finish has succeeded; without Finish, or after an error, there is none. It serves one
// goroutine at a time.
type RecordWriter struct{ object }

func (w *RecordWriter) ref() *handle {
	if w == nil {
		return nil
	}
	return w.handle
}

// NewRecordWriter begins a file; compression is "none", "gzip" or "zlib", and "" means none. A context of nil is the
// default one.
func NewRecordWriter(context *Context, path, compression string) (*RecordWriter, error) {
	var use uses
	defer use.leave()
	number := use.of(context.ref())
	if use.err != nil {
		return nil, use.err
	}
	var out, failure uintptr
	if code := raw.Record_writer_create(number, path, compression, &out, &failure); code != 0 {
		return nil, fromC(code, failure)
	}
	return &RecordWriter{object{newHandle("RecordWriter", out, raw.Record_writer_unref)}}, nil
}

// call calls a function with the writer's handle, and with that of a tensor where there is one.
func (w *RecordWriter) call(t *Tensor, function func(number, tensor uintptr, failure *uintptr) int32) error {
	var use uses
	defer use.leave()
	number := use.of(w.ref())
	tensor := use.of(t.ref())
	if use.err != nil {
		return use.err
	}
	var failure uintptr
	return fromC(function(number, tensor, &failure), failure)
}

// Write writes a record of any bytes.
func (w *RecordWriter) Write(record []byte) error {
	return w.call(nil, func(number, _ uintptr, failure *uintptr) int32 {
		return raw.Record_writer_write(number, record, failure)
	})
}

// AddFeature adds a feature to the tf.train.Example that is written next: texts become a bytes list, floats a float
// list, integers and truth values an int64 list. The tensor may be closed.
func (w *RecordWriter) AddFeature(name string, tensor *Tensor) error {
	return w.call(tensor, func(number, tensor uintptr, failure *uintptr) int32 {
		return raw.Record_writer_add_feature(number, name, tensor, failure)
	})
}

// WriteExample writes the features added since the last example as one record.
func (w *RecordWriter) WriteExample() error {
	return w.call(nil, func(number, _ uintptr, failure *uintptr) int32 {
		return raw.Record_writer_write_example(number, failure)
	})
}

// AddFeatureList adds a feature list to the tf.train.SequenceExample that is written next: each row of the tensor is a
// step. Where the steps have different numbers of values, lengths (else nil) are integers that say how many rows of its
// own each step has. The tensors may be closed.
func (w *RecordWriter) AddFeatureList(name string, tensor, lengths *Tensor) error {
	var use uses
	defer use.leave()
	counts := use.of(lengths.ref())
	if use.err != nil {
		return use.err
	}
	return w.call(tensor, func(number, tensor uintptr, failure *uintptr) int32 {
		return raw.Record_writer_add_feature_list(number, name, tensor, counts, failure)
	})
}

// WriteSequenceExample writes one record of the feature lists added since the last one, with the features as its
// context.
func (w *RecordWriter) WriteSequenceExample() error {
	return w.call(nil, func(number, _ uintptr, failure *uintptr) int32 {
		return raw.Record_writer_write_sequence_example(number, failure)
	})
}

// Finish writes what is left and puts the file into place. Once; the writer takes no records afterwards.
func (w *RecordWriter) Finish() error {
	return w.call(nil, func(number, _ uintptr, failure *uintptr) int32 {
		return raw.Record_writer_close(number, failure)
	})
}
