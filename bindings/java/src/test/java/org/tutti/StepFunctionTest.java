// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.Rule;
import org.junit.Test;

public class StepFunctionTest {
    @Rule public Leaks leaks = new Leaks();

    private static Tensor[] batch(int rows) {
        return new Tensor[] {
            Tensor.of(Arrays.copyOf(Toy.features(), rows * Toy.COLUMNS), rows, Toy.COLUMNS),
            Tensor.of(Arrays.copyOf(Toy.labels(), rows), rows)};
    }

    private static ReplicaValues run(Session session, String name, int rows) {
        Tensor[] batch = batch(rows);
        try {
            return session.runStepFunction(name, batch);
        } finally {
            Tensor.closeAll(batch);
        }
    }

    @Test
    public void aLoopOfSeveralFunctions() {
        try (Context context = new Context(new ContextOptions().logicalDevices(2).backend("reference"));
             Strategy both = Strategy.mirrored(context);
             Estimator estimator = Estimator.builder(Toy::model).context(context).strategy(both).build();
             Dataset dataset = Toy.pipeline(context).batch(Toy.BATCH).build()) {
            estimator.addStepFunction("again", Mode.TRAIN, Toy::model, null);
            estimator.addStepFunction("probe", Mode.PREDICT, Toy::model, dataset);
            try (Session session = estimator.openSession(dataset, new TrainOptions())) {
                session.run(1);
                try (ReplicaValues again = run(session, "again", 5)) {
                    assertEquals(2, again.result().step());
                    assertEquals(5, again.result().examples());
                    assertTrue(again.result().loss() > 0);
                }
                try (ReplicaValues probe = run(session, "probe", 7)) {
                    check(probe);
                }
                try (ReplicaValues even = run(session, "probe", 4); Tensor sum = even.sumAcrossReplicas("class");
                     Tensor mean = even.meanAcrossReplicas("class"); Tensor whole = even.gather("class", 0)) {
                    long[] all = whole.toLongs();
                    assertArrayEquals(new long[] {all[0] + all[2], all[1] + all[3]}, sum.toLongs());
                    assertEquals((all[0] + all[2]) / 2.0, mean.toDoubles()[0], 0);
                }
                assertEquals(Code.NOT_FOUND, Toy.failure(() -> run(session, "prob", 2)).code());
            }
            assertEquals(Code.INVALID_ARGUMENT,
                Toy.failure(() -> {
                    estimator.addStepFunction("none", Mode.EVAL, null, null);
                    return null;
                }).code());
        }
    }

    private static void check(ReplicaValues probe) {
        assertEquals(2, probe.replicaCount());
        assertEquals(List.of("class"), probe.names());
        assertTrue(Double.isNaN(probe.result().loss()));
        assertNull(probe.local("class", 2));
        try (Tensor whole = probe.gather("class", 0); Tensor sum = probe.sum("class", 0);
             Tensor mean = probe.mean("class", 0); Tensor first = probe.local("class", 0)) {
            long total = LongStream.of(whole.toLongs()).sum();
            assertEquals(7, whole.dims()[0]);
            assertEquals(4, first.dims()[0]);
            assertEquals(total, sum.toLongs()[0]);
            assertEquals(total / 7.0, mean.toDoubles()[0], 1e-12);
        }
        assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> probe.sumAcrossReplicas("class")).code());
    }
}
