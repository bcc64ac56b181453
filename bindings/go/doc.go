// SPDX-License-Identifier: Apache-2.0

// Package tutti trains neural networks on every device there is, and predicts on all of them.
//
//	pipeline := tutti.NewPipeline(nil)
//	tutti.AddSlices(pipeline, "x", tutti.Feature, rows, 1000, 10)
//	tutti.AddSlices(pipeline, "y", tutti.Label, labels)
//	dataset, err := pipeline.Shuffle(1000, nil).Repeat(nil).Batch(64, nil).Build()
//	estimator, err := tutti.NewEstimator(model, nil)
//	result, err := estimator.Train(ctx, dataset, &tutti.TrainOptions{Steps: 100})
//
// # Options
//
// What can be left out is a field of a struct of options, which the last argument points to. It is nil where nothing is
// to be said, as in jpeg.Encode and slog.NewTextHandler: it cannot be given twice, as a list of options could, and each
// method has one form. The zero value of a field means its default; numbers whose default is not zero, but which may be
// zero, are pointers: &tutti.RepeatOptions{Count: tutti.I64(3)}. Hooks are no options but things to call, of which
// there may be any number.
//
// # Ownership
//
// Every object has Close, which may be called at any time, from any goroutine, more than once and in any order. It does
// not wait, and calls that are running go on to their end, which their context.Context may bring about; only a feed's
// Close ends its pushes. Later calls fail with ErrClosed. What was forgotten is closed by the garbage collector, at a
// time of its own choosing. Slices that View and Update lend are valid inside their function only; all other slices and
// texts are copies.
//
// # Errors
//
// Errors of the library are *Error, with a Code that errors.Is knows: errors.Is(err, tutti.NotFound). An error that a
// callback returned, or a panic in it (*PanicError), is found in what the call returns by errors.Is and errors.As. Do
// not end a goroutine inside a callback (runtime.Goexit, testing.T.FailNow): C frames are below it.
//
// # Cancellation
//
// When the context.Context of a call ends, the call ends within one step, with an error that wraps that of the context.
// Functions over elements get a context that ends with the call they are for, and are waited for: those that take long
// look at it. Training that shall end politely is told by TrainOptions.Stop or by ErrStop from a hook.
//
// # Threads
//
// Dataset, Strategy and Predictor serve any number of goroutines. Other objects serve one call at a time unless they
// say more; what is wrong in that is answered by an error.
package tutti
