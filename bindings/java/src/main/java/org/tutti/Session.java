// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/**
 * A training, one piece at a time. It serves one thread at a time. What can cancel it are the cancellations in force
 * when it was opened, an interrupt of the thread that runs it, and closing it; the session is over then. Closing it
 * without {@link #finish} writes nothing more; its steps stay in the estimator.
 */
public final class Session extends NativeObject {
    private final Call call;

    private Session(Handle handle, Call call, Dataset dataset) {
        super(handle, dataset);
        this.call = call;
        handle.add(call);
    }

    static Session open(Estimator estimator, Dataset dataset, TrainOptions options, Hook... hooks) {
        Call call = new Call();
        try (Use use = new Use(); Options.Native o = new Options.Native(options);
             Hook.Native h = new Hook.Native(hooks)) {
            long[] out = new long[1];
            long[] failure = new long[1];
            call.arm();
            try {
                call.check(Raw.session_open(use.of(estimator), use.of(dataset), o.number, h.number, call.token(), out,
                    failure), failure);
            } finally {
                call.disarm();
            }
            Handle handle = new Handle("Session", out[0], number -> {
                Raw.session_unref(number);
                call.drop();
            });
            return new Session(handle, call, dataset);
        } catch (Throwable failure) {
            call.drop();
            throw failure;
        }
    }

    /** Trains some steps.
     *
     * @param steps how many at most
     * @return what it gave; the reason is {@link Reason#UNFINISHED} while there is more to do, loss and metrics are of
     *     the last step, the examples of all of them
     */
    public Result run(long steps) {
        try (Use use = new Use()) {
            long number = use.of(this);
            long[] out = new long[1];
            long[] failure = new long[1];
            call.arm();
            try {
                call.check(Raw.session_run(number, steps, out, failure), failure);
            } finally {
                call.disarm();
            }
            return Result.take(out[0]);
        }
    }

    /** Runs one step of a step function on a batch, which the replicas share. With several workers all of them make
     * this call at the same point. After a failure the variables are those of the last complete step, and the session
     * goes on.
     *
     * @param name which one
     * @param batch a tensor for each component of its input, with any number of rows
     * @return what it gave, to be closed
     */
    public ReplicaValues runStepFunction(String name, Tensor... batch) {
        try (Use use = new Use()) {
            long number = use.of(this);
            long[] tensors = use.of((NativeObject[]) batch);
            long[] result = new long[1];
            long[] values = new long[1];
            long[] failure = new long[1];
            call.arm();
            try {
                call.check(Raw.session_run_step_function(number, name, tensors, result, values, failure), failure);
            } finally {
                call.disarm();
            }
            return new ReplicaValues(values[0], Result.take(result[0]));
        }
    }

    /** Sets a host scalar of the model; it holds from the next step on.
     *
     * @param name which one
     * @param value its value
     */
    public void setScalar(String name, double value) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.session_set_scalar(use.of(this), name, value, failure), failure);
        }
    }

    /** Ends the session: writes the last checkpoint. A session that is closed without it writes nothing more; its
     * steps stay in the estimator. Finishing closes the session, unless it fails.
     *
     * @return what the whole session gave
     */
    public Result finish() {
        Result result;
        try (Use use = new Use()) {
            long[] out = new long[1];
            long[] failure = new long[1];
            call.check(Raw.session_close(use.of(this), out, failure), failure);
            result = Result.take(out[0]);
        }
        close();
        return result;
    }
}
