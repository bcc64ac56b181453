// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The pipelines that scenarios read: tests/bindings/scenarios.txt says what they are. */
final class ScenarioPipelines {
    private static final Feed.Component VALUE = new Feed.Component("value", Role.FEATURE, DType.INT64);

    private final Context context;
    private final String folder;

    ScenarioPipelines(Context context, String folder) {
        this.context = context;
        this.folder = folder;
    }

    private Pipeline range(long start, long stop) {
        return new Pipeline(context).range(stop, new RangeOptions().start(start));
    }

    private Pipeline source() {
        return new Pipeline(context);
    }

    private String[] paths(String name) {
        return new String[] {folder + "/" + name};
    }

    private static long value(Tensor tensor) {
        return tensor.toLongs()[0];
    }

    private static Tensor[] give(long value) {
        return new Tensor[] {Tensor.scalar(DType.INT64, value)};
    }

    Dataset of(String name) {
        return switch (name) {
            case "turns" -> turns();
            case "sample" -> sample();
            case "sums", "sums_graph" -> sums(name.equals("sums_graph"));
            case "below" -> range(0, 10).takeWhileGraph(
                g -> g.output("goes_on", g.less(g.feature("value"), g.constant(DType.INT64, 4)))).build();
            case "odd" -> range(0, 8).filter(element -> value(element[0]) % 2 == 1)
                .takeWhile(element -> value(element[0]) < 6).build();
            case "pairs" -> range(0, 3).flatMap(
                element -> range(10 * value(element[0]), 10 * value(element[0]) + 2).build()).build();
            case "passes" -> source().addGenerator((pass, index) -> index == 3 ? null : give(100 * pass + index), VALUE)
                .repeat(new RepeatOptions().count(2)).build();
            default -> ofFiles(name);
        };
    }

    private Dataset turns() {
        try (Dataset second = range(10, 15).build(); Dataset third = range(20, 22).build()) {
            return range(0, 3).interleave(List.of(second, third),
                new InterleaveOptions().cycleLength(2).blockLength(2)).build();
        }
    }

    private Dataset sample() {
        try (Dataset other = range(100, 108).build()) {
            return range(0, 5).sampleFrom(List.of(other), new SampleFromOptions().weights(1, 3)).build();
        }
    }

    private Dataset sums(boolean inGraph) {
        try (Tensor zero = Tensor.scalar(DType.INT64, 0)) {
            ScanState state = new ScanState("sum", zero);
            if (inGraph) {
                return range(0, 6).scanGraph(g -> {
                    Value next = g.add(g.feature("sum"), g.feature("value"));
                    g.output("sum", next);
                    g.output("value", next);
                }, state).build();
            }
            return range(0, 6).scan((carried, element) -> {
                long sum = value(carried[0]) + value(element[0]);
                return new ScanFunction.Step(give(sum), give(sum));
            }, state).build();
        }
    }

    private Dataset ofFiles(String name) {
        return switch (name) {
            case "buckets" -> source().textLines(paths("lines.txt"))
                .bucketByLength("text", new long[] {2, 4}, new long[] {2}).build();
            case "cached" -> source().textLines(paths("lines.txt"))
                .cache(new CacheOptions().path(folder + "/lines.elements")).build();
            case "snapshot" -> source().textLines(paths("lines.txt")).snapshot(folder + "/snapshots").build();
            case "snapshot_files" -> source().elementFiles(paths("snapshots/*")).build();
            case "csv" -> source().csv(paths("people.csv"), new CsvOptions()
                .columns("name: bytes", "age: i64 = -1", "weight: f32 = 0.25").labels("age").missing("NA")).build();
            case "examples" -> source().tfrecord(paths("examples.tfrecord"))
                .parseExample(new String[] {"id: i64", "box: f32[2] = 0.5", "words: bytes[?]"}).build();
            case "sequences" -> source().tfrecord(paths("sequences.tfrecord"))
                .parseSequenceExample(new String[] {"frames: f32[2]", "tags: bytes[?]"},
                    new ParseSequenceExampleOptions().context("id: i64")).build();
            case "images" -> source().tfrecord(paths("images.tfrecord"))
                .parseExample(new String[] {"id: i64", "image: bytes"}).mapGraph(2, g -> {
                    ResizeOptions area = new ResizeOptions().method(ResizeMethod.AREA);
                    Value pixels = g.resize(g.decodePng(g.feature("image")), new long[] {2, 3}, area);
                    g.output("image", g.randomFlip(pixels, new RandomFlipOptions().key(7)));
                }).build();
            case "text_ops" -> source().textLines(paths("lines.txt")).mapGraph(2, ScenarioDataOps::texts).build();
            case "image_ops" -> imageFiles("image: bytes", "photo: bytes")
                .mapGraph(2, ScenarioDataOps::images).build();
            case "image_mixes" -> imageFiles("id: i64", "photo: bytes")
                .mapGraph(2, ScenarioDataOps::plainImages).batch(2).mapGraph(1, ScenarioDataOps::mixes).build();
            default -> throw new IllegalArgumentException(name);
        };
    }

    /** Of each example the number id, the PNG file image and the JPEG file photo, where they are asked for. */
    private Pipeline imageFiles(String... features) {
        return source().tfrecord(paths("images.tfrecord")).parseExample(features);
    }

    /** A line for each element. */
    static List<String> read(Dataset dataset, long seed) {
        List<String> lines = new ArrayList<>();
        List<DatasetSpec.Component> components = dataset.components();
        try (DatasetIterator iterator = dataset.iterator(seed)) {
            for (Tensor[] element = iterator.read(); element != null; element = iterator.read()) {
                List<String> shown = new ArrayList<>();
                for (int i = 0; i < element.length; i++) {
                    shown.add(components.get(i).name() + shape(element[i]) + values(element[i]));
                }
                Tensor.closeAll(element);
                lines.add(String.join(" | ", shown));
            }
        }
        return lines;
    }

    private static String shape(Tensor tensor) {
        List<String> dims = new ArrayList<>();
        for (long dim : tensor.dims()) {
            dims.add(Long.toString(dim));
        }
        return dims.isEmpty() ? "" : " [" + String.join(" ", dims) + "]";
    }

    private static String values(Tensor tensor) {
        StringBuilder text = new StringBuilder();
        switch (tensor.dtype()) {
            case INT64 -> {
                for (long value : tensor.toLongs()) {
                    text.append(' ').append(value);
                }
            }
            case UINT8 -> {
                for (byte value : tensor.toBytes()) {
                    text.append(' ').append(Byte.toUnsignedInt(value));
                }
            }
            case FLOAT32 -> {
                for (float value : tensor.toFloats()) {
                    text.append(String.format(Locale.ROOT, " %.5f", value));
                }
            }
            default -> {
                for (String value : tensor.toTexts()) {
                    text.append(" \"").append(value).append('"');
                }
            }
        }
        return text.toString();
    }
}
