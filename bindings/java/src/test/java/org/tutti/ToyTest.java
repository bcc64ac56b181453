// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeNotNull;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.junit.Rule;
import org.junit.Test;

public class ToyTest {
    @Rule public Leaks leaks = new Leaks();

    @Test
    public void figuresAreThoseOfC() throws Exception {
        String program = System.getenv("TUTTI_TOY_FIGURES");
        assumeNotNull(program);
        List<Double> figures = new ArrayList<>();
        RunOptions run = new RunOptions().seed(3).determinism(Determinism.INVARIANT);
        try (Strategy strategy = Strategy.mirrored(); Dataset train = Toy.dataset(); Dataset test = Toy.testset();
             Estimator estimator = Estimator.builder(Toy::model).strategy(strategy).options(run).build()) {
            estimator.train(train, new TrainOptions().steps(20), Hook.onStep(1, event -> figures.add(event.loss())));
            Result evaluated = estimator.evaluate(test);
            figures.add(evaluated.loss());
            figures.add(evaluated.metrics().get("accuracy"));
            try (Predictor predictor = estimator.predictor(); Batch batch = predictor.runAll(test)) {
                for (long value : batch.longs("class")) {
                    figures.add((double) value);
                }
            }
        }
        Process process = new ProcessBuilder(program).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        String[] wanted = text.trim().split("\n");
        assertEquals(0, process.waitFor());
        assertEquals(20 + 2 + Toy.ROWS, wanted.length);
        assertEquals(wanted.length, figures.size());
        for (int i = 0; i < wanted.length; i++) {
            assertEquals("figure " + i, Double.parseDouble(wanted[i]), figures.get(i), 0); // %.17g gives every bit
        }
    }

    @Test
    public void trainingLearns() {
        try (Estimator estimator = Estimator.builder(Toy::model).options(new RunOptions().seed(1)).build();
             Dataset train = Toy.dataset(); Dataset test = Toy.testset()) {
            Result result = estimator.trainAndEvaluate(train, test, 50, new TrainOptions().steps(200));
            assertTrue(result.toString(), result.metrics().get("accuracy") >= 0.8);
            assertEquals(200, result.step());
            assertEquals(200, estimator.globalStep());
        }
    }

    private List<Double> losses(BiConsumer<Estimator, Hook> train) {
        List<Double> losses = new ArrayList<>();
        RunOptions run = new RunOptions().seed(5).determinism(Determinism.REPEATABLE);
        try (Estimator estimator = Estimator.builder(Toy::model).options(run).build()) {
            train.accept(estimator, Hook.onStep(1, event -> losses.add(event.loss())));
        }
        return losses;
    }

    /** A learning rate that stays the same is best at the first step. */
    @Test
    public void aValueThatGetsNoBetterStops() {
        TrainOptions early = new TrainOptions().earlyStopping("learning_rate").earlyStoppingPatienceSteps(4)
            .earlyStoppingEverySteps(1);
        try (Dataset dataset = Toy.dataset(); Estimator estimator = new Estimator(Toy::model)) {
            Result result = estimator.train(dataset, early);
            assertEquals(5, result.step());
            assertEquals(Reason.STOPPED, result.reason());
        }
    }

    @Test
    public void aSessionIsTheSameTraining() {
        try (Dataset dataset = Toy.dataset()) {
            TrainOptions nine = new TrainOptions().steps(9);
            List<Double> whole = losses((estimator, hook) -> estimator.train(dataset, nine, hook));
            List<Double> pieces = losses((estimator, hook) -> {
                try (Session session = estimator.openSession(dataset, nine, hook)) {
                    while (session.run(4).reason() == Reason.UNFINISHED) {
                        assertTrue(estimator.globalStep() < 9);
                    }
                    Result result = session.finish();
                    assertEquals(9, result.step());
                    assertEquals(Reason.MAX_STEPS, result.reason());
                }
            });
            assertEquals(9, whole.size());
            assertEquals(whole, pieces);
        }
    }

    private static VariableOptions ones() {
        return new VariableOptions().initializer("ones");
    }

    private static float[] read(Estimator estimator, String name) {
        try (Tensor tensor = estimator.readVariable(name)) {
            return tensor.toFloats();
        }
    }

    @Test
    public void hostScalarsAndVariables() {
        ModelFunction model = (g, mode) -> {
            g.scope("size", () -> {
                Value w = g.variable("w", DType.FLOAT32, new long[] {Toy.COLUMNS}, ones());
                g.loss(g.reduceMean(g.mul(g.feature("x"), w)));
            });
            g.optimizerSgd(g.hostScalar("rate", 0));
        };
        float[] ones = {1, 1, 1, 1, 1};
        try (Dataset dataset = Toy.dataset();
             Estimator estimator = Estimator.builder(model).options(new RunOptions().keepGradients(true)).build();
             Session session = estimator.openSession(dataset)) {
            MemoryEstimate estimate = estimator.estimateMemory(dataset, 7);
            assertEquals(7, estimate.batchSize());
            assertTrue(estimate.fits());
            assertEquals(4 * Toy.COLUMNS, estimate.devices().get(0).weights(), 256);
            assertEquals(50, estimator.findBatchSize(dataset, 50));
            session.run(1);
            assertArrayEquals(ones, read(estimator, "size/w"), 0);
            session.setScalar("rate", 0.5);
            session.run(1);
            try (Tensor gradient = estimator.readGradient("size/w")) {
                float[] slopes = gradient.toFloats();
                float[] values = read(estimator, "size/w");
                for (int i = 0; i < slopes.length; i++) {
                    assertEquals(1 - 0.5 * slopes[i], values[i], 1e-6);
                }
            }
            try (Tensor zeros = Tensor.zeros(DType.FLOAT32, Toy.COLUMNS)) {
                estimator.writeVariable("size/w", zeros);
            }
            assertArrayEquals(new float[5], read(estimator, "size/w"), 0);
            assertEquals("size/w", estimator.variableNames().get(0));
        }
    }

    @Test
    public void gradientsMadeByTheModel() {
        ModelFunction model = (g, mode) -> {
            Value w = g.variable("w", DType.FLOAT32, new long[] {Toy.COLUMNS}, ones());
            Value loss = g.reduceMean(g.mul(g.feature("x"), w));
            List<Value> gradients = g.gradients(loss, List.of(w));
            g.loss(loss);
            g.applyGradients(List.of(w), List.of(g.neg(gradients.get(0))));
            g.optimizerSgd(g.scheduleConstant(1));
            assertEquals(DType.FLOAT32, g.dtype(w));
            assertArrayEquals(new long[] {Toy.COLUMNS}, g.dims(w));
        };
        try (Dataset dataset = Toy.dataset(); Estimator estimator = new Estimator(model)) {
            estimator.train(dataset, new TrainOptions().steps(1));
            for (float value : read(estimator, "w")) {
                assertTrue("it climbs", value > 1);
            }
        }
    }

    @Test
    public void frozenVariablesStay() {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            assertEquals(List.of(), estimator.trainableNames());
            estimator.setTrainable("dense/*", false);
            try (Session session = estimator.openSession(dataset)) {
                String name = estimator.variableNames().get(0);
                assertEquals("dense/kernel", name);
                float[] before = read(estimator, name);
                session.run(3);
                assertArrayEquals(before, read(estimator, name), 0);
                assertEquals(List.of("dense_1/kernel", "dense_1/bias"), estimator.trainableNames());
            }
        }
    }

    /** What comes behind two sessions that were ended like this, and a training. */
    private static List<String> story(Dataset train, Dataset test, Consumer<Session> end) {
        List<String> story = new ArrayList<>();
        RunOptions run = new RunOptions().seed(4).determinism(Determinism.REPEATABLE);
        try (Estimator estimator = Estimator.builder(Toy::model).options(run).build()) {
            for (int piece = 1; piece <= 2; piece++) {
                Session session = estimator.openSession(train);
                session.run(5);
                end.accept(session);
                assertEquals(5 * piece, estimator.globalStep());
                Result result = estimator.evaluate(test);
                story.add(result.step() + " " + result.loss() + " " + Arrays.toString(read(estimator, "dense_1/bias")));
            }
            Result result = estimator.train(train, new TrainOptions().steps(3));
            story.add(result.step() + " " + result.loss());
        }
        return story;
    }

    /** A session that is closed without finish leaves its steps, as one that finished. */
    @Test
    public void aClosedSessionLeavesItsSteps() {
        try (Dataset train = Toy.dataset(); Dataset test = Toy.testset()) {
            List<String> closed = story(train, test, Session::close);
            assertEquals(story(train, test, Session::finish), closed);
            assertEquals(3, closed.size());
            assertNotEquals(closed.get(0), closed.get(1));
        }
    }
}
