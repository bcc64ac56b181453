// SPDX-License-Identifier: Apache-2.0

// Package tutti trains neural networks on every device there is, and predicts on all of them.
//
//	pipeline := tutti.NewPipeline(nil)
//	tutti.AddSlices(pipeline, "x", tutti.Feature, rows, 1000, 10)
//	tutti.AddSlices(pipeline, "y", tutti.Label, labels)
//	dataset, err := pipeline.Shuffle(1000).Repeat().Batch(64).Build()
//	estimator, err := tutti.NewEstimator(model, tutti.EstimatorOptions{})
//	result, err := estimator.Train(ctx, dataset, tutti.TrainOptions{Steps: 100})
//
// # Ownership
//
// Every object has Close. It may be called at any time, from any goroutine, more than once and in any order: calls that
// are running finish first, later ones fail with ErrClosed. What was forgotten is closed by the garbage collector, at a
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
// Training that shall end politely is told by TrainOptions.Stop or by ErrStop from a hook.
//
// # Threads
//
// Dataset, Strategy and Predictor serve any number of goroutines. Other objects serve one call at a time unless they
// say more; what is wrong in that is answered by an error.
package tutti
