// SPDX-License-Identifier: Apache-2.0
/**
 * tutti trains neural networks on every device there is, and predicts on all of them.
 *
 * <pre>{@code
 * Dataset dataset = new Pipeline().addSlices("x", Role.FEATURE, rows, 1000, 10)
 *     .addSlices("y", Role.LABEL, labels).shuffle(1000).repeat().batch(64).build();
 * Estimator estimator = new Estimator(model);
 * Result result = estimator.train(dataset, new TrainOptions().steps(100));
 * }</pre>
 *
 * <p><b>Ownership.</b> Every object is closed by its user, or by the collector when that was forgotten:
 * {@link org.tutti.NativeObject} says how.
 *
 * <p><b>Errors.</b> Calls throw {@link org.tutti.TuttiException}, which is unchecked and has a code. What a callback
 * threw is found among its causes, as that same object.
 *
 * <p><b>Cancellation.</b> An interrupt of the thread, or {@link org.tutti.Cancellation}, ends a call within one step;
 * the futures of asynchronous calls cancel theirs. Training that shall end politely is told by {@link
 * org.tutti.Cancellation#stop} or {@link org.tutti.Event#stop}. Functions of the program see it by {@link
 * org.tutti.Cancellation#isRequested}.
 *
 * <p><b>Null.</b> Nothing is null, neither taken nor given, unless it is annotated {@link org.tutti.Nullable}.
 *
 * <p><b>Threads.</b> Dataset, strategy and predictor serve any number of threads. Other objects serve one call at a
 * time unless they say more; what is wrong in that is answered by an error.
 */
package org.tutti;
