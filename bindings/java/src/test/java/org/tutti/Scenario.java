// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assume.assumeNotNull;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.After;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** Does what the scenarios say, and compares what it gives: tests/bindings/scenarios.txt says what the lines mean. */
public class ScenarioTest {
    @Rule public Leaks leaks = new Leaks();
    @Rule public TemporaryFolder folder = new TemporaryFolder();

    private final List<String> lines = new ArrayList<>();
    private Context context;
    private Strategy strategy;
    private RunOptions run;
    private float[] x;
    private int[] y;
    private ModelFunction model;
    private List<String> transforms;
    private Dataset training;
    private Estimator estimator;
    /** Of files; null before the first. */
    private String files;

    private void print(String format, Object... values) {
        lines.add("= " + String.format(Locale.ROOT, format, values));
    }

    private void forgetEstimator() {
        closeAll(estimator, training);
        estimator = null;
        training = null;
    }

    @After
    public void forget() {
        forgetEstimator();
        closeAll(strategy, context);
        run = new RunOptions();
        strategy = null;
        context = null;
        files = null;
    }

    private static void closeAll(NativeObject... objects) {
        for (NativeObject object : objects) {
            if (object != null) {
                object.close();
            }
        }
    }

    private void useDevices(long count) {
        closeAll(strategy, context);
        context = new Context(new ContextOptions().backend("reference").logicalDevices(count));
        strategy = Strategy.mirrored(context);
    }

    private void setOption(String key, String value) {
        switch (key) {
            case "seed" -> run.seed(Long.parseLong(value));
            case "determinism" -> run.determinism(Determinism.valueOf(value.toUpperCase(Locale.ROOT)));
            case "logical_replicas" -> run.logicalReplicas(Long.parseLong(value));
            case "accumulation_steps" -> run.accumulationSteps(Long.parseLong(value));
            case "all_reduce" -> run.allReduce(AllReduce.valueOf(value.toUpperCase(Locale.ROOT)));
            case "raw_weights" -> run.rawWeights(Long.parseLong(value) != 0);
            default -> throw new IllegalArgumentException(key);
        }
    }

    private void makeData(int rows, int columns, int classes, int seed) {
        x = new float[rows * columns];
        y = new int[rows];
        for (int i = 0; i < x.length; i++) {
            int row = i / columns;
            y[row] = row % classes;
            seed = seed * 1664525 + 1013904223;
            x[i] = (float) (seed >>> 8) / (1 << 24);
            if (i % columns % classes == y[row]) {
                x[i] += 0.5f;
            }
        }
    }

    private Dataset dataset(List<String> words) {
        Pipeline pipeline = new Pipeline(context).addSlices("x", Role.FEATURE, x, y.length, x.length / y.length)
            .addSlices("y", Role.LABEL, y);
        for (int i = 0; i < words.size(); i++) {
            switch (words.get(i)) {
                case "repeat" -> pipeline.repeat();
                case "shuffle" -> pipeline.shuffle(Long.parseLong(words.get(++i)));
                case "take" -> pipeline.take(Long.parseLong(words.get(++i)));
                case "skip" -> pipeline.skip(Long.parseLong(words.get(++i)));
                case "batch" -> pipeline.batch(Long.parseLong(words.get(++i)));
                default -> throw new IllegalArgumentException(words.get(i));
            }
        }
        return pipeline.build();
    }

    private Estimator estimator() {
        if (training == null) {
            training = dataset(transforms);
        }
        if (estimator == null) {
            estimator = new Estimator(context, model, strategy, run);
        }
        return estimator;
    }

    private void train(long steps) {
        Result result = estimator().train(training, new TrainOptions().steps(steps));
        print("step %d loss %.5f", result.step(), result.loss());
    }

    private void evaluate(String batch) {
        Estimator trained = estimator();
        try (Dataset dataset = dataset(List.of("batch", batch))) {
            Result result = trained.evaluate(dataset);
            print("loss %.5f", result.loss());
            new TreeMap<>(result.metrics()).forEach((name, value) -> print("%s %.5f", name, value));
        }
    }

    private void predict(String rows) {
        Estimator trained = estimator();
        try (Dataset dataset = dataset(List.of("take", rows, "batch", "3")); Predictor predictor = trained.predictor();
             Batch batch = predictor.runAll(dataset)) {
            for (String name : new TreeSet<>(batch.names())) {
                printRows(batch, name);
            }
        }
    }

    private void printRows(Batch batch, String name) {
        try (Tensor tensor = batch.output(name)) {
            if (tensor.dtype() == DType.INT64) {
                Arrays.stream(tensor.toLongs()).forEach(value -> print("%s %d", name, value));
                return;
            }
            float[] values = tensor.toFloats();
            int width = values.length / (int) batch.rows();
            for (int i = 0; i < values.length; i += width) {
                StringBuilder line = new StringBuilder(name);
                for (int j = i; j < i + width; j++) {
                    line.append(String.format(Locale.ROOT, " %.5f", values[j]));
                }
                print("%s", line);
            }
        }
    }

    private void variable(String name) {
        try (Tensor tensor = estimator().readVariable(name)) {
            double sum = 0;
            for (float value : tensor.toFloats()) {
                sum += value;
            }
            String dims = LongStream.of(tensor.dims()).mapToObj(Long::toString).collect(Collectors.joining(" "));
            print("shape %s sum %.5f", dims, sum);
        }
    }

    private void save() throws Exception {
        String directory = folder.newFolder().getPath();
        run.modelDir(directory);
        estimator.save(directory);
    }

    private void restore() {
        forgetEstimator();
        print("step %d", estimator().globalStep());
    }

    private void integer(long value) {
        try (Tensor tensor = Tensor.of(new long[] {value}, 1)) {
            print("%d", tensor.toLongs()[0]);
        }
    }

    private void text(String name) {
        try (Dataset dataset = new Pipeline(context).addSlices(name, Role.FEATURE, new long[] {0}, 1).build()) {
            print("%s", dataset.components().get(0).name());
        }
    }

    private void write(String name, String digits) throws Exception {
        if (files == null) {
            files = folder.newFolder().getPath();
        }
        Files.write(Path.of(files, name), HexFormat.of().parseHex(digits));
    }

    private void read(String name, long seed) {
        try (Dataset dataset = new ScenarioPipelines(context, files).of(name)) {
            ScenarioPipelines.read(dataset, seed).forEach(line -> print("%s", line));
        }
    }

    private void prepare(String[] words) {
        switch (words[0]) {
            case "scenario" -> {
                forget();
                useDevices(1);
            }
            case "devices" -> useDevices(Long.parseLong(words[1]));
            case "data" -> makeData(Integer.parseInt(words[1]), Integer.parseInt(words[2]), Integer.parseInt(words[3]),
                Integer.parseInt(words[4]));
            case "pipeline" -> {
                forgetEstimator();
                transforms = List.of(words).subList(1, words.length);
            }
            case "model" -> {
                forgetEstimator();
                model = ScenarioModels.of(words[1]);
            }
            case "run" -> {
                forgetEstimator();
                setOption(words[1], words[2]);
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private void run(String[] words) throws Exception {
        switch (words[0]) {
            case "train" -> train(Long.parseLong(words[1]));
            case "evaluate" -> evaluate(words[1]);
            case "predict" -> predict(words[1]);
            case "variable" -> variable(words[1]);
            case "save" -> save();
            case "restore" -> restore();
            case "integer" -> integer(Long.parseLong(words[1]));
            case "text" -> text(words[1]);
            case "file" -> write(words[1], words[2]);
            case "read" -> read(words[1], words.length > 2 ? Long.parseLong(words[2]) : 0);
            default -> prepare(words);
        }
    }

    private void printFailure(TuttiException failure) {
        StringBuilder line = new StringBuilder(failure.code().name());
        for (Throwable at = failure; at != null; at = at.getCause()) {
            line.append(": ").append(at instanceof TuttiException one ? one.reason() : at.getMessage());
        }
        print("%s", line);
    }

    @Test
    public void scenariosAreThoseOfC() throws Exception {
        String paths = System.getenv("TUTTI_SCENARIOS");
        assumeNotNull(paths);
        for (String path : paths.split(File.pathSeparator)) {
            compare(Files.readAllLines(Path.of(path)));
        }
    }

    private void compare(List<String> wanted) throws Exception {
        lines.clear();
        for (String line : wanted) {
            if (line.startsWith("=")) {
                continue;
            }
            lines.add(line);
            if (line.isEmpty() || line.startsWith("#")) {
                continue;
            }
            try {
                run(line.split(" "));
            } catch (TuttiException failure) {
                printFailure(failure);
            }
        }
        assertEquals(String.join("\n", wanted), String.join("\n", lines));
    }
}
