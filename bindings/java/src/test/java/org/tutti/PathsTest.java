// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.Before;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** Files given as paths, in place of texts. */
public class PathsTest {
    @Rule public Leaks leaks = new Leaks();
    @Rule public TemporaryFolder temporary = new TemporaryFolder();
    private Path folder;

    @Before
    public void resolve() {
        folder = temporary.getRoot().toPath();
    }

    private static List<String> texts(Dataset dataset) {
        List<String> texts = new ArrayList<>();
        for (Tensor[] element : dataset) {
            texts.add(element[0].toTexts()[0]);
            Tensor.closeAll(element);
        }
        return texts;
    }

    @Test
    public void sourcesAndTransforms() throws Exception {
        Path lines = Files.writeString(folder.resolve("größe.txt"), "a\nb\n");
        Path more = Files.writeString(folder.resolve("more.txt"), "c\n");
        Path cache = folder.resolve("cache");
        try (Dataset dataset = new Pipeline().textLines(List.of(lines, more)).cache(new CacheOptions().path(cache))
                .build()) {
            assertEquals(List.of("a", "b", "c"), texts(dataset));
            assertTrue(Files.exists(cache));
        }
        Path idx = Files.write(folder.resolve("labels"), new byte[] {0, 0, 8, 1, 0, 0, 0, 2, 5, 6});
        try (Dataset dataset = new Pipeline().addIdx("n", Role.LABEL, idx).batch(2).build();
             DatasetIterator iterator = dataset.iterator()) {
            Tensor[] element = iterator.next();
            assertArrayEquals(new byte[] {5, 6}, element[0].toBytes());
            Tensor.closeAll(element);
        }
    }

    @Test
    public void recordsAndTraces() throws Exception {
        Path file = folder.resolve("records");
        try (RecordWriter writer = new RecordWriter(file, RecordWriter.Compression.ZLIB)) {
            writer.write("record".getBytes());
            writer.finish();
        }
        TfrecordOptions zlib = new TfrecordOptions().compression("zlib");
        try (Dataset dataset = new Pipeline().tfrecord(List.of(file), zlib).build()) {
            assertEquals(List.of("record"), texts(dataset));
        }
        Path trace = folder.resolve("trace");
        try (Context context = new Context()) {
            context.startProfile(trace);
            context.stopProfile();
        }
        assertTrue(Files.exists(trace));
    }

    @Test
    public void checkpoints() {
        Path saved = folder.resolve("saved");
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator();
             Estimator other = Toy.estimator()) {
            estimator.train(dataset, new TrainOptions().steps(3));
            estimator.save(saved);
            other.initialize(dataset, saved.resolve("checkpoint-3"));
            try (Tensor first = estimator.readVariable("dense/kernel");
                 Tensor same = other.readVariable("dense/kernel")) {
                assertArrayEquals(first.toFloats(), same.toFloats(), 0);
            }
            try (Predictor predictor = Predictor.open(saved)) {
                assertEquals(3, predictor.step());
                predictor.reload();
                predictor.reload(saved);
                assertEquals(3, predictor.step());
            }
        }
    }

    /** The library would look for another file under the same name. */
    @Test
    public void pathsOfOtherFileSystemsAreRefused() throws Exception {
        URI archive = URI.create("jar:" + folder.resolve("archive.zip").toUri());
        try (FileSystem files = FileSystems.newFileSystem(archive, Map.of("create", "true"))) {
            Path inside = Files.writeString(files.getPath("/lines.txt"), "a\n");
            TuttiException refused = Toy.failure(() -> new Pipeline().textLines(List.of(inside)));
            assertEquals(Code.INVALID_ARGUMENT, refused.code());
            assertTrue(refused.reason(), refused.reason().contains("the file system jar"));
            Toy.failure(() -> Predictor.open(inside));
            Toy.failure(() -> new RunOptions().modelDir(inside));
        }
    }
}
