// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** A session whose steps are batches of rows of the data, which come by a feed: tests/bindings/scenarios.txt says which
 * rows. */
final class ScenarioLoop implements AutoCloseable {
    private final float[] x;
    private final int[] y;
    private final int columns;
    private final Feed feed;
    private final Session session;
    private int first = 0;

    ScenarioLoop(Context context, Estimator estimator, TrainOptions options, long most, float[] x, int[] y,
        Hook hook) {
        this.x = x;
        this.y = y;
        columns = x.length / y.length;
        feed = Feed.builder(2, new Feed.Component("x", Role.FEATURE, DType.FLOAT32, columns),
            new Feed.Component("y", Role.LABEL, DType.INT32)).context(context).ofBatches(most).build();
        try (Dataset dataset = new Pipeline(context).addFeed(feed).build()) {
            session = estimator.openSession(dataset, options, hook);
        } catch (RuntimeException failure) {
            feed.close();
            throw failure;
        }
    }

    /** One step, on the next rows. */
    Result step(int rows) {
        float[] features = new float[rows * columns];
        int[] labels = new int[rows];
        for (int i = 0; i < rows; i++) {
            int row = (first + i) % y.length;
            System.arraycopy(x, row * columns, features, i * columns, columns);
            labels[i] = y[row];
        }
        first += rows;
        try (Tensor a = Tensor.of(features, rows, columns); Tensor b = Tensor.of(labels, rows)) {
            feed.push(a, b);
        }
        return session.run(1);
    }

    /** Ends feed and session. */
    String end() {
        feed.finish();
        Result last = session.run(1);
        Result whole = session.finish();
        String reason = last.reason() == Reason.END_OF_INPUT ? "end of input" : "no end";
        return reason + ", examples " + last.examples() + " of " + whole.examples();
    }

    @Override
    public void close() {
        session.close();
        feed.close();
    }
}
