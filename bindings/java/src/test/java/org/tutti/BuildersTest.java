// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.function.BiFunction;
import org.junit.Rule;
import org.junit.Test;

/** One builder of each kind, by value. */
public class BuildersTest {
    @Rule public Leaks leaks = new Leaks();

    /** What a graph computes of x = [[1, -2, 3], [-4, 5, -6]]. */
    private static float[] compute(BiFunction<Graph, Value, Value> build) {
        try (Tensor x = Tensor.of(new float[] {1, -2, 3, -4, 5, -6}, 2, 3);
             Dataset dataset = new Pipeline().addSlices("zero", Role.FEATURE, new float[1], 1, 1).mapGraph(1, g -> {
                 Value result = g.reshape(build.apply(g, g.constant(x)), new long[] {1, -1});
                 g.output("y", g.add(g.feature("zero"), result)); // which gives it a row of the batch
             }).build();
             DatasetIterator iterator = dataset.iterator(0)) {
            Tensor[] element = iterator.read();
            try {
                return element[1].toFloats();
            } finally {
                Tensor.closeAll(element);
            }
        }
    }

    private static void gives(BiFunction<Graph, Value, Value> build, double... wanted) {
        float[] got = compute(build);
        assertEquals(wanted.length, got.length);
        for (int i = 0; i < got.length; i++) {
            assertEquals("element " + i, wanted[i], got[i], 1e-5);
        }
    }

    private static Value image(Graph g, Value x) {
        return g.reshape(x, new long[] {1, 2, 3, 1});
    }

    @Test
    public void opsOfOneAndTwoInputs() {
        gives((g, x) -> g.relu(x), 1, 0, 3, 0, 5, 0);
        gives((g, x) -> g.sub(g.square(x), x), 0, 6, 6, 20, 20, 42);
        gives((g, x) -> g.leakyRelu(x, new LeakyReluOptions().alpha(0.5)), 1, -1, 3, -2, 5, -3);
        gives((g, x) -> g.select(g.greater(x, g.constant(DType.FLOAT32, 0)), x, g.neg(x)), 1, 2, 3, 4, 5, 6);
        gives((g, x) -> g.cast(g.cast(g.add(x, g.constant(DType.FLOAT32, 0.7)), DType.INT32), DType.FLOAT32),
            1, -1, 3, -3, 5, -5);
    }

    @Test
    public void opsWithListsAndTruthValues() {
        gives((g, x) -> g.reduceSum(x), -3);
        gives((g, x) -> g.reduceMax(x, new ReduceMaxOptions().axes(1)), 3, 5);
        gives((g, x) -> g.reduceSum(x, new ReduceSumOptions().axes(0).keepDims(true)), -3, 3, -3);
        gives((g, x) -> g.transpose(x, new TransposeOptions().permutation(1, 0)), 1, -4, -2, 5, 3, -6);
        gives((g, x) -> g.matmul(x, x, new MatmulOptions().transposeB(true)), 14, -32, -32, 77);
        gives((g, x) -> g.slice(x, new long[] {0, 1}, new long[] {2, 2}), -2, 3, 5, -6);
        gives((g, x) -> g.slice(x, new long[] {0, 0}, new long[] {1, 2}, new SliceOptions().strides(1, 2)), 1, 3);
        gives((g, x) -> g.pad(x, new long[] {0, 1}, new long[] {0, 0}, new PadOptions().value(9.0)),
            9, 1, -2, 3, 9, -4, 5, -6);
        gives((g, x) -> g.iota(new long[] {3}, new IotaOptions().dtype(DType.FLOAT32)), 0, 1, 2);
        gives((g, x) -> g.concat(List.of(x, x, x), new ConcatOptions().axis(0)),
            1, -2, 3, -4, 5, -6, 1, -2, 3, -4, 5, -6, 1, -2, 3, -4, 5, -6);
    }

    @Test
    public void opsWithChoicesAndOptionalInputs() {
        gives((g, x) -> g.maxPool2d(image(g, x), new long[] {2, 2}, new MaxPool2dOptions().stride(1, 1)), 5, 5);
        gives((g, x) -> g.maxPool2d(image(g, x), new long[] {2, 2}, new MaxPool2dOptions().stride(2, 2)
            .padding(Padding.SAME)), 5, 3);
        try (Tensor ones = Tensor.of(new float[] {1, 1, 1, 1}, 2, 2, 1, 1); Tensor bias = Tensor.of(new float[] {10})) {
            Conv2dOptions valid = new Conv2dOptions().padding(Padding.VALID);
            gives((g, x) -> g.conv2d(image(g, x), g.constant(ones), valid), 0, 0);
            gives((g, x) -> g.conv2d(image(g, x), g.constant(ones), new Conv2dOptions().padding(Padding.VALID)
                .bias(g.constant(bias))), 10, 10);
        }
    }

    @Test
    public void opsWithSeveralOutputs() {
        gives((g, x) -> {
            Value ones = g.broadcastTo(g.constant(DType.FLOAT32, 1), new long[] {3});
            Value zeros = g.broadcastTo(g.constant(DType.FLOAT32, 0), new long[] {3});
            LayerNormValues values = g.layerNorm(x, ones, zeros);
            return g.reshape(values.mean(), new long[] {2});
        }, 2.0 / 3, -5.0 / 3);
        gives((g, x) -> g.topK(x, 2).values(), 3, 1, 5, -4);
        gives((g, x) -> g.cast(g.topK(x, 2).indices(), DType.FLOAT32), 2, 0, 1, 0);
    }

    /** A model of one variable w = [1, 1, 1] over rows [1, 2, 3] and [3, 2, 1], whose labels are 5. */
    private static Result trained(ModelFunction model, int steps, Tensor[] variable) {
        try (Dataset dataset = new Pipeline().addSlices("x", Role.FEATURE, new float[] {1, 2, 3, 3, 2, 1}, 2, 3)
                .addSlices("y", Role.LABEL, new float[] {5, 5}, 2, 1)
                .addSlices("w", Role.WEIGHT, new float[] {1, 3}).repeat().batch(2).build();
             Estimator estimator = new Estimator(model)) {
            Result result = estimator.train(dataset, new TrainOptions().steps(steps));
            if (variable != null) {
                variable[0] = estimator.readVariable(estimator.variableNames().get(0));
            }
            return result;
        }
    }

    private static void ends(ModelFunction model, int steps, double... wanted) {
        Tensor[] variable = new Tensor[1];
        trained(model, steps, variable);
        try (Tensor tensor = variable[0]) {
            float[] got = tensor.toFloats();
            for (int i = 0; i < wanted.length; i++) {
                assertEquals("element " + i, wanted[i], got[i], 1e-5);
            }
        }
    }

    private static void linear(Graph g) {
        Value w = g.variable("w", DType.FLOAT32, new long[] {3}, new VariableOptions().initializer("ones"));
        g.loss(g.reduceMean(g.mul(g.feature("x"), w))); // its gradient is 2/3 for each
    }

    @Test
    public void optimizersAndSchedules() {
        double slope = 2.0 / 3;
        ends((g, mode) -> {
            linear(g);
            g.optimizerSgd(g.scheduleConstant(0.3));
        }, 1, 1 - 0.3 * slope, 1 - 0.3 * slope, 1 - 0.3 * slope);
        ends((g, mode) -> {
            linear(g);
            g.optimizerSgd(g.scheduleConstant(0.3), new OptimizerSgdOptions().momentum(0.5));
        }, 2, 1 - 0.3 * slope * 2.5);
        ends((g, mode) -> {
            linear(g);
            g.optimizerSgd(g.schedulePiecewise(new long[] {1}, new double[] {0.3, 0}));
        }, 3, 1 - 0.3 * slope);
        ends((g, mode) -> {
            linear(g);
            g.optimizerSgd(g.scheduleExponential(0.3, 0.5, 2, new ScheduleExponentialOptions().staircase(true)));
        }, 3, 1 - (0.3 + 0.3 + 0.15) * slope);
    }

    @Test
    public void layersLossesAndMetrics() {
        LayerDenseOptions ones = new LayerDenseOptions().kernelInitializer("ones").withoutBias(true);
        double[] metrics = new double[3];
        Result result = trained((g, mode) -> {
            Value sum = g.layerDense(g.feature("x"), 1, ones); // 6 for each row
            g.loss(g.lossMeanSquaredError(sum, g.label("y"), new LossMeanSquaredErrorOptions()
                .weights(g.sampleWeight("w")).reduction(Reduction.SUM)));
            g.metricMean("sum", g.reshape(sum, new long[] {-1}));
            g.metricMean("weighted", g.reduceMax(g.feature("x"), new ReduceMaxOptions().axes(1)),
                new MetricMeanOptions().weights(g.sampleWeight("w")));
            g.optimizerSgd(g.scheduleConstant(0));
            metrics[0] = g.dims(sum)[1];
        }, 1, null);
        assertEquals(1, metrics[0], 0);
        assertEquals(1 + 3, result.loss(), 1e-5);
        assertEquals(6, result.metrics().get("sum"), 1e-5);
        assertEquals(3, result.metrics().get("weighted"), 1e-5);
    }

    @Test
    public void transforms() {
        try (Dataset a = new Pipeline().addSlices("n", Role.FEATURE, Toy.count(6)).build();
             Dataset b = new Pipeline().addSlices("m", Role.FEATURE, Toy.count(6)).skip(3).build();
             Dataset both = new Pipeline().addDataset(a).zip(b)
                 .enumerate(new EnumerateOptions().start(7).name("größe")).build();
             Dataset part = new Pipeline().addDataset(a).split("second", new SplitOptions().count(2)).build();
             DatasetIterator iterator = both.iterator(0)) {
            assertEquals(3, both.cardinality());
            assertEquals(List.of("n", "m", "größe"), both.components().stream().map(c -> c.name()).toList());
            Tensor[] element = iterator.read();
            assertArrayEquals(new long[] {3}, element[1].toLongs());
            assertArrayEquals(new long[] {7}, element[2].toLongs());
            Tensor.closeAll(element);
            assertTrue(part.cardinality() + " elements", part.cardinality() > 0);
        }
        try (Dataset a = new Pipeline().addSlices("n", Role.FEATURE, Toy.count(50)).shuffle(50,
                new ShuffleOptions().seed(1L << 40).sameOrderEachEpoch(true)).batch(50).repeat().build();
             DatasetIterator iterator = a.iterator(0)) {
            Tensor[] first = iterator.read();
            Tensor[] second = iterator.read();
            assertArrayEquals(first[0].toLongs(), second[0].toLongs());
            Tensor.closeAll(first);
            Tensor.closeAll(second);
        }
    }

    /** The same choice has the same type wherever it is one. */
    @Test
    public void oneActivationAndOnePadding() throws Exception {
        assertEquals(Activation.class, parameter(LayerDenseOptions.class, "activation"));
        assertEquals(Activation.class, parameter(LayerConv2dOptions.class, "activation"));
        for (Class<?> options : List.of(Conv2dOptions.class, MaxPool2dOptions.class, LayerConv2dOptions.class,
                LayerMaxPool2dOptions.class)) {
            assertEquals(Padding.class, parameter(options, "padding"));
        }
        assertEquals(Reduction.class, parameter(LossMeanSquaredErrorOptions.class, "reduction"));
        TuttiException exception = Toy.failure(() -> compute((g, x) ->
            g.layerConv2d(image(g, x), 1, 1, new LayerConv2dOptions().padding(Padding.CAUSAL))));
        assertTrue(Toy.story(exception), Toy.story(exception).contains("causal"));
    }

    private static Class<?> parameter(Class<?> options, String setter) {
        return Arrays.stream(options.getMethods()).filter(method -> method.getName().equals(setter)).findFirst()
            .orElseThrow().getParameterTypes()[0];
    }

    @Test
    public void wrongAttributesAreNamed() {
        ArgmaxOptions wrong = new ArgmaxOptions().axis(1L << 40);
        TuttiException exception = Toy.failure(() -> compute((g, x) -> g.argmax(x, wrong)));
        StringBuilder story = new StringBuilder();
        for (Throwable at = exception; at != null; at = at.getCause()) {
            story.append(at.getMessage());
        }
        assertTrue(story.toString(), story.toString().contains("argmax"));
    }
}
