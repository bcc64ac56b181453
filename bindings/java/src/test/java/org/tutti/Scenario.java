// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/** Does what lines of scenarios say, and gives the lines with their results: tests/bindings/scenarios.txt and
 * workers.txt say what they mean. */
final class Scenario implements AutoCloseable {
    /** Makes a temporary folder. */
    interface Folders {
        String make() throws Exception;
    }

    private final Consumer<String> lines;
    private final Folders folders;
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
    /** Transforms of all data before the batches. */
    private List<String> input;
    private ScenarioWorker.Fault fault;
    /** Words of that line; empty: none. */
    private List<String> plateau;

    Scenario(Consumer<String> lines, Folders folders) {
        this.lines = lines;
        this.folders = folders;
        close();
    }

    private void print(String format, Object... values) {
        lines.accept("= " + String.format(Locale.ROOT, format, values));
    }

    private void forgetEstimator() {
        closeAll(estimator, training);
        estimator = null;
        training = null;
    }

    @Override
    public void close() {
        forgetEstimator();
        closeAll(strategy, context);
        run = new RunOptions();
        strategy = null;
        context = null;
        files = null;
        input = List.of();
        fault = null;
        plateau = List.of();
    }

    private static void closeAll(NativeObject... objects) {
        for (NativeObject object : objects) {
            if (object != null) {
                object.close();
            }
        }
    }

    private void useContext(long devices) {
        closeAll(strategy, context);
        context = new Context(new ContextOptions().backend("reference").logicalDevices(devices));
    }

    private void useDevices(long count) {
        useContext(count);
        strategy = Strategy.mirrored(context);
    }

    private void useWorkers(long devices, boolean ownInput) {
        useContext(devices);
        input = ownInput ? List.of("shard") : List.of();
        strategy = Strategy.multiWorkerFromEnvironment(context, new ClusterOptions().connectTimeoutMs(30000)
            .workerInput(ownInput ? WorkerInput.OWN : WorkerInput.WHOLE));
    }

    private void cluster() {
        print("worker %d of %d, replicas %d, input %d of %d", strategy.workerIndex(), strategy.workerCount(),
            strategy.replicaCount(), strategy.inputPipelineId(), strategy.inputPipelineCount());
    }

    private void setOption(String key, String value) {
        switch (key) {
            case "seed" -> run.seed(Long.parseLong(value));
            case "determinism" -> run.determinism(Determinism.valueOf(value.toUpperCase(Locale.ROOT)));
            case "logical_replicas" -> run.logicalReplicas(Long.parseLong(value));
            case "accumulation_steps" -> run.accumulationSteps(Long.parseLong(value));
            case "all_reduce" -> run.allReduce(AllReduce.valueOf(value.toUpperCase(Locale.ROOT)));
            case "params" -> run.params(value);
            case "raw_weights" -> run.rawWeights(Long.parseLong(value) != 0);
            case "keep_outputs" -> run.keepOutputs(Long.parseLong(value) != 0);
            case "collective_timeout_ms" -> run.collectiveTimeoutMs(Long.parseLong(value));
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
        long parts = 1;
        for (int i = 0; i < words.size(); i++) {
            switch (words.get(i)) {
                case "shard" -> {
                    // Batches of a part of the data are of a part of the size.
                    parts = strategy.inputPipelineCount();
                    pipeline.shard(parts, strategy.inputPipelineId());
                }
                case "repeat" -> pipeline.repeat();
                case "shuffle" -> pipeline.shuffle(Long.parseLong(words.get(++i)));
                case "take" -> pipeline.take(Long.parseLong(words.get(++i)));
                case "skip" -> pipeline.skip(Long.parseLong(words.get(++i)));
                case "batch" -> {
                    long count = Long.parseLong(words.get(++i));
                    pipeline.batch(count < parts ? count : count / parts);
                }
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
            estimator = Estimator.builder(model).context(context).strategy(strategy).options(run).build();
        }
        return estimator;
    }

    /** With what the line "plateau" says. */
    private TrainOptions trainOptions() {
        TrainOptions options = new TrainOptions();
        if (plateau.isEmpty()) {
            return options;
        }
        return options.plateauMetric(plateau.get(0)).plateauHigherIsBetter(plateau.get(1).equals("1"))
            .plateauEverySteps(Long.parseLong(plateau.get(2))).plateauPatience(Long.parseLong(plateau.get(3)))
            .plateauCooldown(Long.parseLong(plateau.get(4))).plateauFactor(Double.parseDouble(plateau.get(5)))
            .plateauThreshold(Double.parseDouble(plateau.get(6)))
            .plateauMinimumFactor(Double.parseDouble(plateau.get(7)));
    }

    private void train(long steps) {
        Hook hook = Hook.onStep(1, event -> fault.happen(event, strategy));
        Hook[] hooks = fault == null ? new Hook[0] : new Hook[] {hook};
        Result result = estimator().train(training, trainOptions().steps(steps), hooks);
        print("step %d loss %.5f", result.step(), result.loss());
    }

    private void loop(String[] words) throws Exception {
        Estimator trained = estimator();
        int[] left = {words.length - 2};
        Hook atLast = Hook.onStep(1, event -> {
            if (--left[0] == 0) {
                evaluate(words[1]);
            }
        });
        long most = Long.parseLong(words[1]);
        try (ScenarioLoop loop = new ScenarioLoop(context, trained, trainOptions(), most, x, y, atLast)) {
            for (int i = 2; i < words.length; i++) {
                Result result = loop.step(Integer.parseInt(words[i]));
                StringBuilder metrics = new StringBuilder();
                new TreeMap<>(result.metrics()).forEach(
                    (name, value) -> metrics.append(String.format(Locale.ROOT, " %s %.5f", name, value)));
                print("step %d examples %d loss %.5f%s", result.step(), result.examples(), result.loss(), metrics);
                try (Tensor output = trained.readOutput("y")) {
                    rowsOf(output).forEach(row -> print("y%s", row));
                }
            }
            // While the session is open.
            evaluate(words[1]);
            predict("2");
            save();
            print("%s", loop.end());
        }
    }

    private void evaluate(String batch) {
        Estimator trained = estimator();
        try (Dataset dataset = dataset(joined(input, List.of("batch", batch)))) {
            Result result = trained.evaluate(dataset);
            print("loss %.5f", result.loss());
            Map<String, double[]> metrics = new TreeMap<>();
            result.metrics().forEach((name, value) -> metrics.put(name, new double[] {value}));
            result.tensors().forEach((name, tensor) -> metrics.put(name, tensor.toDoubles()));
            metrics.forEach((name, values) -> {
                StringBuilder numbers = new StringBuilder();
                for (double value : values) {
                    numbers.append(String.format(Locale.ROOT, " %.5f", value));
                }
                print("%s%s", name, numbers);
            });
        }
    }

    private void predict(String rows) {
        Estimator trained = estimator();
        try (Dataset dataset = dataset(firstRows(rows)); Predictor predictor = trained.predictor();
             Batch batch = predictor.runAll(dataset)) {
            for (String name : new TreeSet<>(batch.names())) {
                rowsOf(batch, name).forEach(row -> print("%s%s", name, row));
            }
        }
    }

    private List<String> firstRows(String rows) {
        return joined(List.of("take", rows), joined(input, List.of("batch", "3")));
    }

    private static List<String> joined(List<String> first, List<String> second) {
        List<String> all = new ArrayList<>(first);
        all.addAll(second);
        return all;
    }

    /** The numbers of each row, a blank before each. */
    private static List<String> rowsOf(Batch batch, String name) {
        try (Tensor tensor = batch.output(name)) {
            return rowsOf(tensor);
        }
    }

    private static List<String> rowsOf(Tensor tensor) {
        List<String> rows = new ArrayList<>();
        if (tensor.dtype() == DType.INT64) {
            Arrays.stream(tensor.toLongs()).forEach(value -> rows.add(" " + value));
            return rows;
        }
        float[] values = tensor.toFloats();
        int width = values.length / (int) tensor.dims()[0];
        for (int i = 0; i < values.length; i += width) {
            StringBuilder row = new StringBuilder();
            for (int j = i; j < i + width; j++) {
                row.append(String.format(Locale.ROOT, " %.5f", values[j]));
            }
            rows.add(row.toString());
        }
        return rows;
    }

    private void predictOwn(String rows) {
        TreeMap<String, List<String>> seen = new TreeMap<>();
        Estimator trained = estimator();
        try (Dataset dataset = dataset(firstRows(rows));
             Predictor predictor = trained.predictor(new PredictorOptions().workerRows(WorkerRows.OWN));
             PredictionStream stream = predictor.stream(dataset)) {
            for (Batch batch : stream) {
                try (batch) {
                    for (String name : batch.names()) {
                        long position = batch.firstRow();
                        for (String row : rowsOf(batch, name)) {
                            seen.computeIfAbsent(name, key -> new ArrayList<>()).add(position++ + row);
                        }
                    }
                }
            }
        }
        seen.forEach((name, all) -> all.forEach(row -> print("%s %s", name, row)));
    }

    private void leave(long worker, long batches, String rows) {
        long seen = 0;
        Estimator trained = estimator();
        try (Dataset dataset = dataset(firstRows(rows)); Predictor predictor = trained.predictor();
             PredictionStream stream = predictor.stream(dataset)) {
            for (long read = 0; read != batches || strategy.workerIndex() != worker; read++) {
                try (Batch batch = stream.read()) {
                    if (batch == null) {
                        break;
                    }
                    seen += batch.rows();
                }
            }
        } finally {
            print("rows %d", seen);
        }
    }

    private void checksum(String name) {
        long sum = 0;
        try (Tensor tensor = estimator().readVariable(name)) {
            for (float value : tensor.toFloats()) {
                sum = sum * 1000003 + Integer.toUnsignedLong(Float.floatToRawIntBits(value));
            }
        }
        print("bits %016x", sum);
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
        String directory = folders.make();
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
            files = folders.make();
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
                close();
                useDevices(1);
            }
            case "devices" -> useDevices(Long.parseLong(words[1]));
            case "workers" -> useWorkers(Long.parseLong(words[2]), words.length > 3);
            case "fault" -> fault = ScenarioWorker.Fault.of(words);
            case "data" -> makeData(Integer.parseInt(words[1]), Integer.parseInt(words[2]), Integer.parseInt(words[3]),
                Integer.parseInt(words[4]));
            case "pipeline" -> {
                forgetEstimator();
                transforms = List.of(words).subList(1, words.length);
            }
            case "plateau" -> plateau = List.of(words).subList(1, words.length);
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
            case "loop" -> loop(words);
            case "evaluate" -> evaluate(words[1]);
            case "predict" -> predict(words[1]);
            case "variable" -> variable(words[1]);
            case "cluster" -> cluster();
            case "predict_own" -> predictOwn(words[1]);
            case "leave" -> leave(Long.parseLong(words[1]), Long.parseLong(words[2]), words[3]);
            case "checksum" -> checksum(words[1]);
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

    /** Those that have results are left out: their results come anew. */
    void run(List<String> scenario) throws Exception {
        for (String line : scenario) {
            if (line.startsWith("=")) {
                continue;
            }
            lines.accept(line);
            if (line.isEmpty() || line.startsWith("#")) {
                continue;
            }
            try {
                run(line.split(" "));
            } catch (TuttiException failure) {
                printFailure(failure);
            }
        }
    }
}
