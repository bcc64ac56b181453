// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.After;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

public class PredictorTest {
    @Rule public Leaks leaks = new Leaks();
    @Rule public TemporaryFolder folder = new TemporaryFolder();
    private Dataset train;
    private Dataset test;
    private Estimator estimator;
    private Predictor predictor;

    @Before
    public void train() {
        train = Toy.dataset();
        test = Toy.testset();
        estimator = Estimator.builder(Toy::model).options(new RunOptions().seed(2)).build();
        estimator.train(train, new TrainOptions().steps(30));
        predictor = estimator.predictor();
    }

    @After
    public void close() {
        for (NativeObject object : List.of(train, test, estimator, predictor)) {
            object.close();
        }
    }

    /** A saved model as a part of another one says what it did. */
    @Test
    public void savedModelIsAPart() {
        Path saved = folder.getRoot().toPath();
        estimator.save(saved.toString());
        try (Estimator second = Estimator.builder((Graph g, Mode mode) -> {
            Value x = g.feature("x");
            g.output("class", g.addSavedModel(saved));
            g.output("named", g.addSavedModel(saved, "class"));
            g.output("given", g.addSavedModel(saved, "class", x, "x"));
            if (mode != Mode.PREDICT) {
                g.loss(g.lossSparseSoftmaxCrossEntropy(g.layerDense(x, 3), g.label("y")));
                g.optimizerSgd(g.scheduleConstant(0.01));
            }
        }).build()) {
            second.initialize(train);
            second.readVariable("model_2/dense_1/kernel").close();
            try (Predictor other = second.predictor(); Batch expected = predictor.runAll(test);
                Batch batch = other.runAll(test)) {
                for (String output : List.of("class", "named", "given")) {
                    assertArrayEquals(expected.longs("class"), batch.longs(output));
                }
            }
        }
    }

    /** A model function and weights, without a training. */
    @Test
    public void weightsAreTakenUp() {
        estimator.save(folder.getRoot().getPath());
        try (Estimator second = Estimator.builder(Toy::model).options(new RunOptions().seed(3)).build()) {
            second.initialize(train, folder.getRoot().getPath());
            assertEquals(0, second.globalStep());
            try (Predictor other = second.predictor(); Batch expected = predictor.runAll(test);
                Batch batch = other.runAll(test)) {
                assertArrayEquals(expected.longs("class"), batch.longs("class"));
            }
            String none = folder.getRoot() + "/none";
            assertEquals(Code.NOT_FOUND, Toy.failure(() -> {
                second.initialize(train, none);
                return null;
            }).code());
        }
        try (Estimator third = Estimator.builder(Toy::model).options(new RunOptions().seed(3)).build()) {
            third.initialize(train);
            assertTrue(third.variableNames().size() > 0);
        }
    }

    @Test
    public void streamsAndBatchesAreEqual() {
        long[] whole;
        try (Batch batch = predictor.runAll(test)) {
            whole = batch.longs("class");
            assertEquals(Toy.ROWS, whole.length);
            assertEquals(Toy.ROWS, batch.rows());
            assertEquals(List.of("class"), batch.names());
            TuttiException missing = Toy.failure(() -> batch.output("klass"));
            assertEquals(Code.NOT_FOUND, missing.code());
            assertTrue(missing.getMessage().contains("the batch has no output 'klass'; known: class"));
        }
        try (PredictionStream stream = predictor.stream(test); Stream<Batch> batches = stream.batches()) {
            assertArrayEquals(whole, batches.flatMapToLong(batch -> {
                try (batch) {
                    return Arrays.stream(batch.longs("class"));
                }
            }).toArray());
            assertNull(stream.read());
        }
        try (PredictionStream stream = predictor.stream(test)) {
            long row = 0;
            while (stream.hasNext()) {
                try (Batch batch = stream.next()) {
                    assertEquals(row, batch.firstRow());
                    row += batch.rows();
                }
            }
            assertEquals(Toy.ROWS, row);
        }
    }

    @Test
    public void streamsAreLazyAndClose() {
        PredictionStream stream = predictor.stream(train); // which is endless
        try (Stream<Batch> batches = stream.batches()) {
            assertEquals(3, batches.limit(3).peek(Batch::close).count());
        }
        assertTrue(stream.isClosed());
        try (PredictionStream early = predictor.stream(train)) {
            early.read().close();
            assertTrue(early.hasNext());
            early.stop();
        }
        predictor.stream(train).read(); // forgotten
    }

    @Test
    public void anOutputOutlivesItsBatch() {
        Batch batch = predictor.runAll(test);
        try (Tensor output = batch.output("class")) {
            batch.close();
            assertEquals(Toy.ROWS, output.toLongs().length);
        }
    }

    @Test
    public void onePredictorServesManyThreads() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(8);
        float[] rows = Arrays.copyOf(Toy.features(), 10 * Toy.COLUMNS);
        List<Future<List<long[]>>> answers = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            answers.add(threads.submit(() -> {
                List<long[]> classes = new ArrayList<>();
                for (int round = 0; round < 20; round++) {
                    Tensor input = Tensor.of(rows, 10, Toy.COLUMNS);
                    Batch batch = predictor.run(Map.of("x", input));
                    classes.add(batch.longs("class"));
                    if (round % 2 == 0) { // the others are left to the collector
                        batch.close();
                        input.close();
                    }
                }
                return classes;
            }));
        }
        long[] wanted = CloseTest.within(answers.get(0)).get(0);
        assertEquals(10, wanted.length);
        for (Future<List<long[]>> answer : answers) {
            for (long[] classes : CloseTest.within(answer)) {
                assertArrayEquals(wanted, classes);
            }
        }
        threads.shutdown();
        try (Tensor input = Tensor.of(rows, 10, Toy.COLUMNS);
             Batch batch = CloseTest.within(predictor.runAsync(Map.of("x", input)))) {
            assertArrayEquals(wanted, batch.longs("class"));
        }
        assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> predictor.run(Map.of())).code());
    }

    @Test
    public void checkpoints() throws Exception {
        Path directory = folder.getRoot().toPath().resolve("modèle-𝄞");
        RunOptions run = new RunOptions().modelDir(directory);
        List<Path> saved = new ArrayList<>();
        try (Estimator first = Estimator.builder(Toy::model).options(run).build()) {
            first.train(train, new TrainOptions().steps(4), Hook.onEvent(0, event -> {
                if (event.kind() == EventKind.CHECKPOINT_SAVED) {
                    saved.add(event.checkpoint());
                }
            }));
        }
        Path last = saved.get(saved.size() - 1);
        assertTrue(last.toString(), last.endsWith("modèle-𝄞/checkpoint-4"));
        Path other = folder.newFolder().toPath();
        try (Estimator again = Estimator.builder(Toy::model).options(run).build()) {
            assertEquals(7, again.train(train, new TrainOptions().steps(3)).step());
            again.save(other);
        }
        try (Predictor opened = Predictor.open(last)) {
            assertEquals(4, opened.step());
            assertEquals("[x FLOAT32 [-1, 5]] -> [class INT64 [-1]]", opened.signature().toString());
            assertTrue(opened.signature().json().contains("class"));
            opened.reload(other.resolve("checkpoint-7"));
            assertEquals(7, opened.step());
            PredictionPlan plan = opened.describePlan(8, 0);
            assertEquals(8, plan.rows());
            assertFalse(plan.kernels().isEmpty());
            assertTrue(Double.isNaN(plan.seconds()));
            assertTrue(opened.describePlan(8, 1).seconds() >= 0);
            assertEquals(Code.NOT_FOUND, Toy.failure(() -> {
                opened.reload(other + "/checkpoint-8");
                return null;
            }).code());
        }
        try (Strategy one = Strategy.oneDevice();
             Predictor opened = Predictor.builder(directory).strategy(one)
                 .options(new PredictorOptions().threadsPerReplica(1)).open()) {
            assertEquals(7, opened.step());
        }
    }

    @Test
    public void closingWaitsForPredictions() throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        Predictor mine = estimator.predictor();
        Future<Long> rows = threads.submit(() -> {
            try (Batch batch = mine.runAll(test)) {
                return batch.rows();
            } catch (ClosedException closed) {
                return (long) Toy.ROWS; // it was closed before
            }
        });
        mine.close();
        assertEquals(Toy.ROWS, (long) CloseTest.within(rows));
        threads.shutdown();
    }
}
