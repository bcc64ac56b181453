// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;

/** The toy: 200 rows of 5 numbers in 3 classes, and a network with one hidden layer, as bindings/figures/toy.c. */
final class Toy {
    static final int ROWS = 200;
    static final int COLUMNS = 5;
    static final int BATCH = 32;

    private Toy() {}

    static float[] features() {
        float[] x = new float[ROWS * COLUMNS];
        int state = 7;
        for (int i = 0; i < x.length; i++) {
            state = state * 1664525 + 1013904223;
            x[i] = (float) (state >>> 8) / (1 << 24);
            if (i % COLUMNS == i / COLUMNS % 3) {
                x[i] += 0.5f;
            }
        }
        return x;
    }

    static int[] labels() {
        int[] y = new int[ROWS];
        for (int i = 0; i < ROWS; i++) {
            y[i] = i % 3;
        }
        return y;
    }

    static Pipeline pipeline() {
        return filled(new Pipeline());
    }

    static Pipeline pipeline(Context context) {
        return filled(new Pipeline(context));
    }

    private static Pipeline filled(Pipeline pipeline) {
        return pipeline.addSlices("x", Role.FEATURE, features(), ROWS, COLUMNS)
            .addSlices("y", Role.LABEL, labels());
    }

    /** Endless and shuffled. */
    static Dataset dataset() {
        return pipeline().shuffle(ROWS).repeat().batch(BATCH).build();
    }

    static Dataset testset() {
        return pipeline().batch(BATCH).build();
    }

    static void model(Graph g, Mode mode) {
        Value hidden = g.layerDense(g.feature("x"), 8, new LayerDenseOptions().activation(Activation.RELU));
        Value logits = g.layerDense(hidden, 3);
        g.output("class", g.argmax(logits));
        if (mode != Mode.PREDICT) {
            Value y = g.label("y");
            g.metricAccuracy("accuracy", logits, y);
            g.loss(g.lossSparseSoftmaxCrossEntropy(logits, y));
            g.optimizerAdam(g.scheduleConstant(0.01));
        }
    }

    static Estimator estimator() {
        return new Estimator(Toy::model);
    }

    /** What an exception and its causes say. */
    static String story(Throwable thrown) {
        StringBuilder story = new StringBuilder();
        for (Throwable at = thrown; at != null; at = at.getCause()) {
            story.append(at.getMessage()).append('\n');
        }
        return story.toString();
    }

    /** What a call throws; fails when it throws nothing. */
    static TuttiException failure(Callable<?> call) {
        try {
            call.call();
        } catch (TuttiException exception) {
            return exception;
        } catch (Exception other) {
            throw new AssertionError("another exception", other);
        }
        throw new AssertionError("no exception");
    }

    static boolean isCausedBy(Throwable exception, Throwable cause) {
        for (Throwable at = exception; at != null; at = at.getCause()) {
            if (at == cause) {
                return true;
            }
        }
        return false;
    }

    /** All rows of a dataset's first component, of type INT64. */
    static List<List<Long>> rows(Dataset dataset) {
        List<List<Long>> rows = new ArrayList<>();
        try (DatasetIterator iterator = dataset.iterator(1)) {
            for (Tensor[] element = iterator.read(); element != null; element = iterator.read()) {
                List<Long> row = new ArrayList<>();
                for (long value : element[0].toLongs()) {
                    row.add(value);
                }
                rows.add(row);
                Tensor.closeAll(element);
            }
        }
        return rows;
    }

    static long[] count(int n) {
        long[] values = new long[n];
        for (int i = 0; i < n; i++) {
            values[i] = i;
        }
        return values;
    }
}
