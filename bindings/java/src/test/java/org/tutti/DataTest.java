// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeNotNull;

import java.io.File;
import java.io.FileOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.zip.GZIPOutputStream;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

public class DataTest {
    @Rule public Leaks leaks = new Leaks();
    @Rule public TemporaryFolder folder = new TemporaryFolder();

    @Test
    public void tensorsOfEveryType() {
        float[] floats = {1.5f, Float.NEGATIVE_INFINITY};
        double[] doubles = {1.0 / 3, Double.MAX_VALUE};
        int[] ints = {-1, Integer.MAX_VALUE};
        long[] longs = {(1L << 40) + 1, Long.MIN_VALUE};
        boolean[] truths = {true, false, true};
        byte[] bytes = {-128, 127, 0};
        short[] shorts = {-32768, 32767};
        try (Tensor a = Tensor.of(floats); Tensor b = Tensor.of(doubles); Tensor c = Tensor.of(ints);
             Tensor d = Tensor.of(longs); Tensor e = Tensor.of(truths)) {
            assertArrayEquals(floats, a.toFloats(), 0);
            assertArrayEquals(doubles, b.toDoubles(), 0);
            assertArrayEquals(ints, c.toInts());
            assertArrayEquals(longs, d.toLongs());
            assertArrayEquals(truths, e.toBooleans());
            assertEquals(DType.FLOAT32, a.dtype());
            assertEquals(DType.BOOL, e.dtype());
        }
        for (DType dtype : List.of(DType.INT8, DType.UINT8)) {
            try (Tensor tensor = Tensor.of(dtype, bytes)) {
                assertArrayEquals(bytes, tensor.toBytes());
                assertEquals(dtype, tensor.dtype());
            }
        }
        for (DType dtype : List.of(DType.INT16, DType.UINT16, DType.FLOAT16, DType.BFLOAT16)) {
            try (Tensor tensor = Tensor.of(dtype, shorts)) {
                assertArrayEquals(shorts, tensor.toShorts());
            }
        }
        try (Tensor a = Tensor.of(DType.UINT32, ints); Tensor b = Tensor.of(DType.UINT64, longs)) {
            assertArrayEquals(ints, a.toInts());
            assertArrayEquals(longs, b.toLongs());
        }
        assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> Tensor.of(DType.INT32, bytes)).code());
    }

    @Test
    public void scalarsOfEveryType() {
        for (DType dtype : DType.values()) {
            if (dtype == DType.FLOAT16 || dtype == DType.BFLOAT16 || dtype == DType.BYTES) {
                Toy.failure(() -> Tensor.scalar(dtype, 1));
                continue;
            }
            try (Tensor tensor = Tensor.scalar(dtype, 1)) {
                assertEquals(dtype, tensor.dtype());
                assertEquals(0, tensor.dims().length);
                assertEquals(1, tensor.elementCount());
                assertEquals(dtype.sizeBytes(), tensor.sizeBytes());
            }
        }
        try (Tensor tensor = Tensor.scalar(DType.INT64, 1L << 60)) {
            assertArrayEquals(new long[] {1L << 60}, tensor.toLongs());
        }
    }

    @Test
    public void tensorsOfEveryShape() {
        try (Tensor empty = Tensor.of(new float[0], 0, 7); Tensor grid = Tensor.zeros(DType.INT64, 2, 3)) {
            assertEquals(0, empty.elementCount());
            assertArrayEquals(new long[] {0, 7}, empty.dims());
            assertEquals(0, empty.toFloats().length);
            assertEquals(0, (int) empty.view(TensorMemory::size));
            grid.update(memory -> {
                for (int i = 0; i < 6; i++) {
                    memory.putLong(i * 8, (long) i << 33);
                }
            });
            assertArrayEquals(new long[] {0, 1L << 33, 2L << 33, 3L << 33, 4L << 33, 5L << 33}, grid.toLongs());
            assertEquals(5L << 33, (long) grid.view(40, 8, memory -> memory.getLong(0)));
            assertTrue(!grid.view(TensorMemory::isWritable));
            assertEquals(Code.OUT_OF_RANGE, Toy.failure(() -> grid.view(41, 8, memory -> 0)).code());
            assertEquals(Code.OUT_OF_RANGE, Toy.failure(() -> grid.view(-1, 8, memory -> 0)).code());
            try (Tensor shared = Tensor.ofDLPack(grid.toDLPack())) {
                grid.close();
                assertEquals(5L << 33, shared.toLongs()[5]);
            }
        }
        assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> Tensor.zeros(DType.INT8, -1)).code());
        assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> Tensor.of(new float[3], 2, 2)).code());
    }

    @Test
    public void tensorsFromBuffers() {
        ByteBuffer direct = ByteBuffer.allocateDirect(24).order(ByteOrder.nativeOrder());
        direct.putInt(4, 7).putInt(8, 8).position(4).limit(12);
        ByteBuffer heap = ByteBuffer.allocate(24).order(ByteOrder.nativeOrder());
        heap.putInt(4, 7).putInt(8, 8).position(4).limit(12);
        for (ByteBuffer data : List.of(direct, heap, heap.asReadOnlyBuffer().order(ByteOrder.nativeOrder()))) {
            try (Tensor tensor = Tensor.of(DType.INT32, data, 2)) {
                assertArrayEquals(new int[] {7, 8}, tensor.toInts());
                assertEquals(4, data.position());
            }
        }
        try (Tensor none = Tensor.of(DType.INT32, ByteBuffer.allocateDirect(0), 0)) {
            assertEquals(0, none.toInts().length);
        }
        ByteOrder other = ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN
            : ByteOrder.BIG_ENDIAN;
        ByteBuffer swapped = ByteBuffer.allocate(4).order(other).putInt(0, 7);
        String problem = Toy.failure(() -> Tensor.of(DType.INT32, swapped, 1)).reason();
        assertTrue(problem, problem.contains("the buffer's byte order is " + other));
        try (Tensor bytes = Tensor.of(DType.UINT8, swapped, 4)) {
            assertEquals(4, bytes.elementCount());
        }
    }

    /** Needs some 5 GB; the variable opts in. */
    @Test
    public void tensorsOfMoreThanTwoGigabytes() {
        assumeNotNull(System.getenv("TUTTI_TEST_LARGE"));
        long count = (1L << 31) + 16;
        try (Tensor tensor = Tensor.zeros(DType.UINT8, count)) {
            assertEquals(count, tensor.sizeBytes());
            tensor.update(count - 8, 8, memory -> memory.putLong(0, 5));
            assertEquals(5L, (long) tensor.view(count - 8, 8, memory -> memory.getLong(0)));
            assertEquals(Code.OUT_OF_RANGE, Toy.failure(() -> tensor.view(TensorMemory::size)).code());
            assertEquals(Code.OUT_OF_RANGE, Toy.failure(tensor::toBytes).code());
        }
    }

    private static Pipeline numbers() {
        return new Pipeline().addSlices("n", Role.FEATURE, Toy.count(10));
    }

    private static void gives(String wanted, Pipeline pipeline) {
        try (Dataset dataset = pipeline.build()) {
            assertEquals(wanted, Toy.rows(dataset).toString());
        }
    }

    @Test
    public void pipelines() {
        try (Dataset other = numbers().take(2).build(); Tensor three = Tensor.of(Toy.count(3))) {
            gives("[[0, 1, 2], [0, 1, 2]]",
                new Pipeline().addTensor("n", Role.FEATURE, three).repeat(new RepeatOptions().count(2)));
            gives("[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]", numbers().batch(4));
            gives("[[0, 1, 2, 3], [4, 5, 6, 7]]", numbers().batch(4, new BatchOptions().dropRemainder(true)));
            gives("[[1], [2], [1], [2]]", numbers().skip(1).take(2).repeat(new RepeatOptions().count(2)));
            gives("[]", numbers().take(2).repeat(new RepeatOptions().count(0)));
            gives("[[0], [0], [1]]", numbers().take(1).concatenate(other).prefetch());
            gives("[[2], [7]]", numbers().shard(5, 2).cache());
            gives("[[0], [1], [2]]", numbers().batch(5).unbatch().take(3));
            gives("[[0], [" + (1L << 33) + "]]", new Pipeline().addDataset(other).mapGraph(1, g ->
                g.output("n", g.mul(g.feature("n"), g.constant(DType.INT64, 1L << 33)))));
            gives("[[0], [1], [2]]", numbers().filterGraph(g ->
                g.output("keep", g.less(g.feature("n"), g.constant(DType.INT64, 3)))));
        }
    }

    @Test
    public void datasetsTellAndSplit() {
        try (Dataset dataset = new Pipeline().addSlices("größe", Role.LABEL, Toy.count(5)).prefetch().build()) {
            List<Dataset> parts = dataset.split(2);
            try (Dataset head = parts.get(0); Dataset rest = parts.get(1)) {
                assertEquals("[[0], [1]]", Toy.rows(head).toString());
                assertEquals("[[2], [3], [4]]", Toy.rows(rest).toString());
                assertEquals(3, rest.cardinality());
            }
            TensorSpec sizes = new TensorSpec("größe", DType.INT64, List.of());
            assertEquals(List.of(new DatasetSpec.Component(Role.LABEL, sizes)), dataset.components());
            assertTrue(dataset.spec().json().contains("größe"));
            assertEquals(List.of(), dataset.lint());
        }
        try (Dataset endless = Toy.dataset()) {
            assertEquals(Dataset.INFINITE, endless.cardinality());
        }
    }

    @Test
    public void iteratorsSaveAndRestore() {
        try (Dataset dataset = numbers().take(3).build(); DatasetIterator iterator = dataset.iterator(0);
             DatasetIterator again = dataset.iterator(0)) {
            assertTrue(iterator.hasNext());
            assertEquals(Code.FAILED_PRECONDITION, Toy.failure(iterator::save).code());
            Tensor.closeAll(iterator.next());
            again.restore(iterator.save());
            Tensor[] second = again.next();
            assertArrayEquals(new long[] {1}, second[0].toLongs());
            Tensor.closeAll(second);
            Toy.failure(() -> {
                again.restore("{");
                return null;
            });
            Tensor.closeAll(again.read());
            assertNull(again.read());
            assertFalse(again.hasNext());
            try {
                again.next();
                throw new AssertionError();
            } catch (NoSuchElementException wanted) {
                assertTrue(iterator.hasNext()); // closing it closes what was read ahead
            }
        }
    }

    @Test
    public void loopsTakeWhatIsLeft() {
        try (Dataset dataset = numbers().build()) {
            List<Long> taken = new ArrayList<>();
            long before = Tutti.liveObjects("iterator");
            try (DatasetIterator elements = dataset.iterator(0)) {
                for (int pass = 0; pass < 2; pass++) {
                    for (Tensor[] element : elements) {
                        taken.add(element[0].toLongs()[0]);
                        Tensor.closeAll(element);
                        if (pass == 0 && taken.size() == 3) {
                            break;
                        }
                    }
                }
                assertEquals(List.of(0L, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L), taken);
            }
            try (DatasetIterator elements = dataset.iterator(0)) {
                for (Tensor[] element : elements) {
                    Tensor.closeAll(element);
                    throw new IllegalStateException("the body");
                }
            } catch (IllegalStateException wanted) {
                assertEquals("the body", wanted.getMessage());
            }
            assertEquals(before, Tutti.liveObjects("iterator"));
        }
    }

    /** The words of a corpus; with a vocabulary their numbers, 0 for padding and 1 for what is not in it. */
    private static Pipeline words(Tensor vocabulary) {
        try (Tensor corpus = Tensor.of(new String[] {"The cat sat.", "A dog sat", "", "the cat, the dog!"})) {
            return new Pipeline().addSlices("text", Role.FEATURE, corpus).mapGraph(0, g -> {
                var plain = new BytesTokenizeOptions().punctuation(BytesTokenizePunctuation.DROP);
                Value text = g.bytesTokenize(g.feature("text"), plain);
                if (vocabulary != null) {
                    Value found = g.lookup(text, new LookupOptions().vocabulary(g.constant(vocabulary)));
                    text = g.add(found, g.constant(DType.INT64, 2));
                }
                g.output("text", text);
            });
        }
    }

    private static TextCountOptions only() {
        return new TextCountOptions();
    }

    private static void counts(String wanted, Dataset.TextCounts found) {
        try (found) {
            assertEquals(wanted, List.of(found.texts().toTexts()) + " " + Arrays.toString(found.counts()));
        }
    }

    @Test
    public void aVocabularyIsMadeFromACorpus() {
        try (Dataset corpus = words(null).build()) {
            counts("[the, cat, dog, sat, a] [3, 2, 2, 2, 1]", corpus.countTexts("text"));
            counts("[the, cat, dog, sat] [3, 2, 2, 2]", corpus.countTexts("text", only().leastCount(2)));
            counts("[the, cat, dog] [3, 2, 2]", corpus.countTexts("text", only().mostTexts(3)));
            try (Dataset.TextCounts found = corpus.countTexts("text", only().mostTexts(3))) {
                gives("[[2, 3, 1, 1, 4, 1], [0, 0, 0, 0, 2, 3, 2, 4]]", words(found.texts()).paddedBatch(2));
            }
            TuttiException large = Toy.failure(() -> corpus.countTexts("text", only().memoryBytes(100)));
            assertEquals(Code.RESOURCE_EXHAUSTED, large.code());
            assertTrue(large.getMessage(), large.getMessage().contains("need more than 100 bytes"));
            assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> corpus.countTexts("y")).code());
            TuttiException negative = Toy.failure(() -> corpus.countTexts("text", only().mostTexts(-1)));
            assertEquals(Code.INVALID_ARGUMENT, negative.code());
        }
    }

    @Test
    public void classesAreCountedAndWeighed() {
        long[] labels = {2, 0, 0, 1, 0, 0};
        try (Dataset dataset = new Pipeline().addSlices("y", Role.LABEL, labels).build();
             Dataset endless = new Pipeline().addDataset(dataset).repeat().build()) {
            assertArrayEquals(new long[] {4, 1, 1}, dataset.countClasses("y"));
            long[] counts = dataset.countClasses("y", 4);
            assertArrayEquals(new long[] {4, 1, 1, 0}, counts);
            TuttiException bad = Toy.failure(() -> dataset.countClasses("y", 2));
            assertEquals(Code.OUT_OF_RANGE, bad.code());
            assertTrue(bad.getMessage(), bad.getMessage().contains("element 0 is of class 2; expected a class from 0"));
            assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> dataset.countClasses("y", 0)).code());
            assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> endless.countClasses("y")).code());
            try (Dataset weighed = new Pipeline().addDataset(dataset).classWeights("y", counts).batch(6).build();
                 DatasetIterator elements = weighed.iterator(0)) {
                assertEquals(Role.WEIGHT, weighed.spec().component("weight").role());
                Tensor[] batch = elements.next();
                assertArrayEquals(new float[] {2, 0.5f, 0.5f, 2, 0.5f, 0.5f}, batch[1].toFloats(), 0);
                Tensor.closeAll(batch);
            }
            try (Dataset none = new Pipeline().addDataset(dataset).take(0).build()) {
                assertEquals(0, none.countClasses("y").length);
            }
        }
    }

    @Test
    public void texts() {
        String[] texts = {"one", "", "größe-数-🙂"};
        byte[][] bytes = {{0, -1}, {}};
        try (Tensor a = Tensor.of(texts); Tensor b = Tensor.of(bytes, 2, 1); Tensor c = Tensor.of(new long[] {1})) {
            assertArrayEquals(texts, a.toTexts());
            assertArrayEquals(bytes, b.toByteArrays());
            assertEquals(DType.BYTES, a.dtype());
            assertArrayEquals(new long[] {2, 1}, b.dims());
            assertEquals(Code.INVALID_ARGUMENT, Toy.failure(c::toTexts).code());
        }
    }

    @Test
    public void linesOfFiles() throws Exception {
        Files.writeString(folder.newFile("1.txt").toPath(), "head\na\r\nb");
        Files.writeString(folder.newFile("2.txt").toPath(), "head\nc\n");
        String[] paths = {folder.getRoot() + "/*.txt"};
        try (Dataset dataset = new Pipeline().textLines(paths, new TextLinesOptions().skipLines(1)).batch(5).build();
             DatasetIterator iterator = dataset.iterator(0)) {
            Tensor[] element = iterator.next();
            assertArrayEquals(new String[] {"a", "b", "c"}, element[0].toTexts());
            Tensor.closeAll(element);
        }
        assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> new Pipeline().textLines(new String[0]).build()).code());
    }

    @Test
    public void recordsAndExamples() throws Exception {
        String path = new File(folder.getRoot(), "größe.gz").getPath();
        try (RecordWriter writer = new RecordWriter(Path.of(path), RecordWriter.Compression.GZIP)) {
            for (long i = 0; i < 3; i++) {
                try (Tensor label = Tensor.of(new long[] {i}); Tensor words = Tensor.of(new byte[(int) i][3])) {
                    writer.addFeature("label", label).addFeature("words", words).writeExample();
                }
            }
            writer.write(new byte[] {-1});
            writer.finish();
            assertEquals(Code.FAILED_PRECONDITION, Toy.failure(() -> {
                writer.finish();
                return null;
            }).code());
        }
        String[] features = {"label: i64[1]", "words: bytes[?]"};
        try (Dataset dataset = new Pipeline().tfrecord(new String[] {path})
                 .parseExample(features, new ParseExampleOptions().labels("label")).build();
             DatasetIterator iterator = dataset.iterator(0)) {
            for (long i = 0; i < 3; i++) {
                Tensor[] element = iterator.next();
                assertArrayEquals(new long[] {i}, element[0].toLongs());
                assertEquals(i, element[1].elementCount());
                Tensor.closeAll(element);
            }
            assertEquals(Code.DATA_LOSS, Toy.failure(iterator::read).code());
        }
    }

    @Test
    public void idxFiles() throws Exception {
        File packed = new File(folder.getRoot(), "größe-𝄞.gz");
        try (GZIPOutputStream out = new GZIPOutputStream(new FileOutputStream(packed))) {
            out.write(new byte[] {0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9});
        }
        gives("[[7, 8, 9]]", new Pipeline().addIdx("n", Role.FEATURE, packed.getPath()).batch(3).mapGraphOnDevice(g ->
            g.output("n", g.cast(g.feature("n"), DType.INT64))));
    }

    @Test
    public void zeroBytesDoNotCutText() throws Exception {
        String path = new File(folder.getRoot(), "file").getPath();
        Files.write(Path.of(path), new byte[] {0, 0, 8, 1, 0, 0, 0, 1, 7});
        new Pipeline().addIdx("n", Role.FEATURE, path).build().close();
        assertEquals(Code.NOT_FOUND,
            Toy.failure(() -> new Pipeline().addIdx("n", Role.FEATURE, path + "\0more").build()).code());
        assertEquals(Code.NOT_FOUND, Toy.failure(() -> Strategy.mirrored("cpu:0\0")).code());
        assertFalse(Tutti.hasFeature("backend:reference\0"));
        assertFalse(Tutti.hasFeature(null));
    }

    @Test
    public void forgottenTensorsDoNotPileUp() {
        long most = 0;
        for (int i = 0; i < 400; i++) {
            Tensor.zeros(DType.FLOAT32, 1 << 20); // 4 MB each, never closed: 1.6 GB in all
            most = Math.max(most, Tutti.liveObjects("tensor"));
        }
        assertTrue(most + " tensors of 4 MB at a time", most <= 250); // the cleaner of a busy machine is late
    }

    @Test
    public void devicesOfSeveralBackends() {
        if (!Tutti.hasFeature("backend:cpu")) return;
        try (Context context = new Context(new ContextOptions().logicalDevices(2).backend("cpu,reference"));
             Strategy mixed = Strategy.mirrored(context, "reference:1", "cpu:0");
             Strategy all = Strategy.mirrored(context)) {
            assertEquals(List.of("cpu:0", "cpu:1", "reference:0", "reference:1"), context.devices());
            assertEquals(List.of("reference:1", "cpu:0"), mixed.devices());
            assertEquals(context.devices(), all.devices());
            // Workers on them are told that they do not train before they wait for others.
            ClusterOptions cluster = new ClusterOptions().workers("a.invalid:1,b.invalid:1").worker(1);
            try (Strategy workers = Strategy.multiWorker(context, cluster);
                 Estimator estimator = Estimator.builder(Toy::model).context(context).strategy(workers).build();
                 Dataset dataset = Toy.pipeline(context).batch(Toy.BATCH).build()) {
                assertEquals(8, workers.replicaCount());
                assertEquals(context.devices(), workers.devices());
                TuttiException refused = Toy.failure(() -> estimator.train(dataset));
                assertEquals(Code.FAILED_PRECONDITION, refused.code());
                assertTrue(refused.getMessage(), refused.getMessage().contains("cannot train together"));
            }
        }
    }

    @Test
    public void centralStorage() {
        ContextOptions options = new ContextOptions().logicalDevices(3).backend("reference");
        try (Context context = new Context(options);
             Strategy second = Strategy.centralStorage(context, "reference:1");
             Strategy first = Strategy.centralStorage(context, "", "reference:2", "reference:0");
             Strategy ofDefault = Strategy.centralStorage("");
             Dataset dataset = Toy.dataset();
             Estimator estimator = Estimator.builder(Toy::model).strategy(ofDefault).build()) {
            assertEquals(List.of("reference:1", "reference:0", "reference:2"), second.devices());
            assertEquals(List.of("reference:2", "reference:0"), first.devices());
            assertEquals(5, estimator.train(dataset, new TrainOptions().steps(5)).step());
            assertEquals(Code.NOT_FOUND,
                Toy.failure(() -> Strategy.centralStorage(context, "reference:7", "reference:0")).code());
            assertEquals(Code.INVALID_ARGUMENT,
                Toy.failure(() -> Strategy.centralStorage(context, "", "reference:0", "reference:0")).code());
        }
    }

    @Test
    public void contextsAndStrategies() {
        ContextOptions options = new ContextOptions().logicalDevices(3).backend("reference");
        try (Context context = new Context(options);
             Strategy strategy = Strategy.mirrored(context, "reference:2", "reference:0");
             Context scope = strategy.context(); Strategy first = Strategy.oneDevice(context)) {
            assertEquals(List.of("reference:0", "reference:1", "reference:2"), context.devices());
            assertEquals(List.of("reference:2", "reference:0"), strategy.devices());
            assertEquals(1, strategy.inputPipelineCount());
            assertEquals(0, strategy.inputPipelineId());
            DeviceDescription last = scope.describeDevices().get(2);
            assertEquals("reference:2", last.name());
            assertEquals("reference", last.backend());
            context.startProfile();
            assertEquals(Code.FAILED_PRECONDITION, Toy.failure(() -> {
                scope.startProfile();
                return null;
            }).code());
            Profile profile = scope.stopProfile();
            assertTrue(profile.json().contains("\"devices\":[]"));
            assertEquals(List.of(), profile.devices());
            assertEquals(0, profile.steps());
            assertEquals(Code.FAILED_PRECONDITION, Toy.failure(context::stopProfile).code());
            assertEquals(1, first.devices().size());
            try (Strategy small = Strategy.auto(context, 1); Strategy all = Strategy.auto()) {
                assertEquals(List.of("reference:0"), small.devices());
                assertTrue(all.replicaCount() >= 1);
            }
            ClusterOptions cluster = new ClusterOptions().workers("a.invalid:1,b.invalid:1").worker(1)
                .devices("reference:1").workerInput(WorkerInput.OWN);
            try (Strategy workers = Strategy.multiWorker(context, cluster)) {
                assertEquals(2, workers.replicaCount());
                assertEquals(2, workers.workerCount());
                assertEquals(1, workers.workerIndex());
                assertEquals(2, workers.inputPipelineCount());
                assertEquals(1, workers.inputPipelineId());
                assertEquals(List.of("reference:1"), workers.devices());
            }
            // The launcher says it, so the options may not.
            assertEquals(Code.INVALID_ARGUMENT,
                Toy.failure(() -> Strategy.multiWorkerFromEnvironment(context, cluster)).code());
        }
        assertTrue(new RunOptions().seed(1L << 40).toJson().contains(String.valueOf(1L << 40)));
        OptionKey steps = Options.keys("train").get(0);
        assertEquals("steps", steps.key());
        assertFalse(steps.documentation().isEmpty());
        assertEquals(17, Options.keys("train").size());
        assertTrue(Tutti.hasFeature("backend:reference"));
        assertNull(Tutti.whyUnavailable("reference"));
        assertFalse(Tutti.whyUnavailable("nothing").isEmpty());
        assertEquals(Tutti.version(), Tutti.buildInfo().version());
        assertTrue(Tutti.buildInfo().backends().contains("reference"));
        for (Code code : Code.values()) {
            assertEquals(Raw.code_get_name(code.number()), code.name());
            assertSame(code, Code.of(code.number()));
        }
    }
}
