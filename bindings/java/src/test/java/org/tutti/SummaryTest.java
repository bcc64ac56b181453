// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** Summaries of models, hooks and programs, and what a training tells Prometheus. */
public class SummaryTest {
    @Rule public Leaks leaks = new Leaks();
    @Rule public TemporaryFolder folder = new TemporaryFolder();

    private static void model(Graph g, Mode mode) {
        Toy.model(g, mode);
        Value x = g.feature("x");
        g.summaryScalar("shown/mean of x", g.reduceMean(x));
        g.summaryHistogram("shown/x", x);
        g.summaryImage("shown/images", g.reshape(x, new long[] {Graph.DIM_BATCH, 1, Toy.COLUMNS, 1}), 2);
        g.summaryText("shown/notes", "*notes*");
    }

    /** What is in the event files of a folder, a character for each byte. */
    private static String events(Path folder) throws IOException {
        StringBuilder all = new StringBuilder();
        try (Stream<Path> files = Files.list(folder)) {
            for (Path file : files.filter(one -> one.getFileName().toString().startsWith("events.")).toList()) {
                all.append(new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1));
            }
        }
        return all.toString();
    }

    @Test
    public void ofATraining() throws Exception {
        Path run = folder.newFolder().toPath();
        RunOptions options = new RunOptions().modelDir(run.toString()).saveSummarySteps(5);
        try (Dataset dataset = Toy.dataset();
             Estimator estimator = Estimator.builder(SummaryTest::model).options(options).build();
             Estimator quiet = Toy.estimator(); Prometheus prometheus = new Prometheus()) {
            Hook hooked = Hook.onStep(5, event -> {
                try (SummaryWriter writer = event.summaryWriter()) {
                    assertNotNull(writer);
                    assertEquals(run, writer.folder());
                    writer.addScalar("hooked/twice the loss", 2 * event.loss(), event.step());
                }
            });
            estimator.train(dataset, new TrainOptions().steps(20), hooked, Hook.prometheus(prometheus, 1));
            String events = events(run);
            for (String name :
                    List.of("shown/mean of x", "shown/x", "shown/images", "hooked/twice the loss", "\u0089PNG")) {
                assertTrue(name, events.split(name, -1).length > 4);
            }
            assertTrue(events.contains("*notes*"));
            String text = prometheus.text();
            assertTrue(text, text.contains("tutti_step 20\n") && text.contains("tutti_metric{name=\"accuracy\"} "));
            quiet.train(dataset, new TrainOptions().steps(1),
                Hook.onStep(1, event -> assertNull(event.summaryWriter())));
        }
    }

    @Test
    public void ofAProgram() throws Exception {
        Path run = folder.getRoot().toPath().resolve("run");
        SummaryWriter writer = new SummaryWriter(run);
        try (Tensor points = Tensor.of(new float[] {1, 2, 3, 4, 5, 6}, 3, 2);
             Tensor images = Tensor.of(DType.UINT8, new byte[] {0, 85, 100, 127}, 1, 2, 2, 1);
             Tensor labels = Tensor.of(new long[] {1, 0, 1}, 3);
             Tensor scores = Tensor.of(new float[] {0.9f, 0.2f, 0.4f}, 3)) {
            writer.addScalar("a/curve", Double.POSITIVE_INFINITY, 1).addHistogram("points", points, 2)
                .addImage("image", images, 0, 3).addText("text", "| a |", 4)
                .addPrCurve("pr", labels, scores, null, 0, 5).addPrCurve("pr weighed", labels, scores, scores, 11, 5)
                .addEmbedding("words", points, "a\nb\nc\n").addEmbedding("bare", points, null)
                .addHyperparameters("{\"rate\": 0.1, \"deep\": true}", "[\"a/curve\"]");
            writer.flush();
            TuttiException refused = assertThrows(TuttiException.class,
                () -> writer.addPrCurve("pr", labels, points, null, 0, 5));
            assertEquals(Code.INVALID_ARGUMENT, refused.code());
        }
        String events = events(run);
        for (String name : List.of("a/curve", "points", "pr_curves", "pr weighed", "| a |", "hparams", "\u0089PNG")) {
            assertTrue(name, events.contains(name));
        }
        String config = Files.readString(run.resolve("projector_config.pbtxt"));
        assertTrue(config, config.contains("tensor_name: \"words\"") && config.contains("tensor_name: \"bare\""));
        writer.close();
        assertThrows(ClosedException.class, () -> writer.addScalar("a/curve", 1, 2));
    }
}
