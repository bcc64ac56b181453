// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.Rule;
import org.junit.Test;

/** Reports by type, and what objects say of themselves. */
public class ReportsTest {
    @Rule public Leaks leaks = new Leaks();

    @Test
    public void trainingsReportStepsAndInput() {
        try (Strategy all = Strategy.mirrored(); Dataset dataset = Toy.dataset();
             Estimator estimator = Estimator.builder(Toy::model).strategy(all).build()) {
            Result result = estimator.train(dataset, new TrainOptions().steps(20));
            StepReport steps = result.stepReport();
            assertNotNull(steps);
            assertEquals(all.replicaCount(), steps.replicas());
            assertEquals(all.devices(), steps.devices().stream().map(StepReport.Device::device).toList());
            assertEquals(steps.replicas() > 1, !Double.isNaN(steps.efficiency()));
            assertTrue(steps.json().startsWith("{\"steps\":"));
            InputReport input = result.inputReport();
            assertNotNull(input);
            List<String> names = input.stages().stream().map(InputReport.Stage::stage).toList();
            assertTrue(names.toString(), names.contains("batch") && names.contains("shuffle"));
            assertTrue(input.stages().get(0).elements() >= 20);
            assertEquals(0, input.stages().get(0).level());
            assertFalse(input.limitingStage().isEmpty());
            assertTrue(input.text(), input.text().contains("limit: " + input.limitingStage()));
        }
    }

    /** Hooks of the library: progress goes to standard error, metrics to a file. */
    @Test
    public void hooksOfTheLibrary() throws Exception {
        Path file = Files.createTempFile("tutti", ".csv");
        Files.delete(file);
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            estimator.train(dataset, new TrainOptions().steps(20), Hook.progress(Hook.ProgressStyle.LINES),
                Hook.metricsFile(file, Hook.MetricsFormat.CSV, 5));
            List<String> lines = Files.readAllLines(file);
            assertTrue(lines.get(0), lines.get(0).startsWith("event,time,step,epoch,examples_per_second,loss"));
            assertEquals(4, lines.stream().filter(line -> line.startsWith("step,")).count());
            assertTrue(lines.get(lines.size() - 1).startsWith("end,"));
            Files.write(file, List.of("something else"));
            TuttiException refused = assertThrows(TuttiException.class, () -> estimator.train(dataset,
                new TrainOptions().steps(1), Hook.metricsFile(file, Hook.MetricsFormat.JSON_LINES, 1)));
            assertEquals(Code.FAILED_PRECONDITION, refused.code());
        } finally {
            Files.deleteIfExists(file);
        }
    }

    @Test
    public void evaluationsReportNeither() {
        try (Dataset dataset = Toy.dataset(); Dataset test = Toy.testset(); Estimator estimator = Toy.estimator();
             Session session = estimator.openSession(dataset)) {
            for (Result result : List.of(session.run(2), estimator.evaluate(test))) {
                assertNull(result.stepReport());
                assertNull(result.inputReport());
                assertEquals(Reason.UNFINISHED, result.reason());
            }
            assertNotNull(session.finish().stepReport());
        }
    }

    @Test
    public void iteratorsReport() {
        try (Dataset dataset = Toy.testset(); DatasetIterator iterator = dataset.iterator()) {
            Tensor.closeAll(iterator.read());
            InputReport report = iterator.report();
            assertEquals("batch", report.stages().get(0).stage());
            assertEquals(1, report.stages().get(0).elements());
            assertTrue(report.toString(), report.toString().startsWith("limit: "));
        }
    }

    @Test
    public void specsHaveTypesAndShapes() {
        try (Dataset dataset = Toy.testset()) {
            DatasetSpec spec = dataset.spec();
            assertEquals(Toy.BATCH, spec.batchSize());
            assertEquals(new TensorSpec("x", DType.FLOAT32, List.of(TensorSpec.UNKNOWN, 5L)),
                spec.component("x").tensor());
            assertEquals(Role.LABEL, spec.component("y").role());
        }
        try (Dataset example = Toy.pipeline().build()) {
            assertEquals(0, example.spec().batchSize());
            assertEquals("[FEATURE x FLOAT32 [5], LABEL y INT32 []]", example.spec().toString());
        }
    }

    @Test
    public void mistakesAreToldOneByOne() {
        try (Dataset dataset = Toy.pipeline().batch(2).shuffle(9).build()) {
            List<String> mistakes = dataset.lint();
            assertEquals(mistakes.toString(), 2, mistakes.size());
            assertTrue(mistakes.toString(), mistakes.stream().anyMatch(line -> line.contains("shuffle")));
            assertTrue(mistakes.toString(), mistakes.stream().anyMatch(line -> line.contains("prefetch")));
        }
    }

    @Test
    public void profilesName() {
        try (Context context = new Context(new ContextOptions().logicalDevices(1));
             Dataset dataset = Toy.pipeline(context).repeat().batch(Toy.BATCH).build();
             Estimator estimator = Estimator.builder(Toy::model).context(context).build()) {
            context.startProfile();
            estimator.train(dataset, new TrainOptions().steps(5));
            Profile profile = context.stopProfile();
            assertTrue(profile.steps() > 0);
            assertEquals(context.devices(), profile.devices().stream().map(Profile.Device::device).toList());
            assertTrue(profile.layers().stream().anyMatch(layer -> layer.layer().contains("dense")));
            assertEquals(1, profile.replicas().size());
            assertEquals(profile.text(), profile.toString());
        }
    }

    @Test
    public void objectsPrintShortly() {
        try (Dataset dataset = Toy.testset(); Estimator estimator = Toy.estimator();
             Tensor tensor = Tensor.of(new float[6], 2, 3)) {
            Result result = estimator.train(dataset, new TrainOptions().steps(3));
            String pattern =
                "step 3, loss #, accuracy #, learning_rate #, ended by MAX_STEPS".replace("#", "[0-9.e-]+");
            assertTrue(result.toString(), result.toString().matches(pattern));
            assertFalse(estimator.evaluate(dataset).toString().contains("ended"));
            assertEquals("Tensor FLOAT32 [2, 3]", tensor.toString());
            assertEquals("Dataset of [FEATURE x FLOAT32 [-1, 5], LABEL y INT32 [-1]]", dataset.toString());
            assertEquals("Estimator", estimator.toString());
            try (Predictor predictor = estimator.predictor(); Batch batch = predictor.runAll(dataset)) {
                assertEquals("Predictor of step 3", predictor.toString());
                assertEquals("Batch of 200 rows from 0: [class]", batch.toString());
            }
            tensor.close();
            assertEquals("closed Tensor", tensor.toString());
        }
        assertEquals("run options {seed=7, determinism=invariant}",
            new RunOptions().seed(7).determinism(Determinism.INVARIANT).toString());
        assertFalse(new ClusterOptions().jobSecret("hush").toString().contains("hush"));
        assertEquals("{axes=[0, 1]}", new ReduceSumOptions().axes(0, 1).toString());
    }
}
