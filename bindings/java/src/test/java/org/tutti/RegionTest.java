// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;

import java.util.List;
import org.junit.Rule;
import org.junit.Test;

public class RegionTest {
    @Rule public Leaks leaks = new Leaks();

    /** w x for rows x of three numbers, made of a loop, a choice, a part that is computed again and a function whose
     * gradient is half of what it should be. */
    private static void model(Graph g, Mode mode) {
        Value x = g.feature("x");
        Value w = g.variable("w", DType.FLOAT32, new long[0],
            new VariableOptions().initializer("constant", 2));
        Value first = g.mul(g.reduceSum(x, new ReduceSumOptions().axes(1)), g.constant(DType.FLOAT32, 0));
        Scanned loop = g.scan(List.of(first), List.of(x), 1, false, (states, elements) -> {
            Value next = g.add(states.get(0), g.mul(elements.get(0), w));
            return new Scanned(List.of(next), List.of(next));
        });
        Value early = g.less(g.completedSteps(), g.constant(DType.FLOAT32, 1));
        List<Value> chosen = g.cond(early, loop::states, () -> List.of(g.neg(loop.states().get(0))));
        List<Value> again = g.call(chosen, inputs -> List.of(g.square(inputs.get(0))));
        Value half = g.customGradient(again, inputs -> List.of(g.mul(inputs.get(0), g.constant(DType.FLOAT32, 1))),
            at -> List.of(g.mul(at.gradients().get(0), g.constant(DType.FLOAT32, 0.5)))).get(0);
        g.output("p", half);
        g.output("sums", loop.results().get(0));
        if (mode != Mode.PREDICT) {
            g.loss(g.reduceMean(half));
            g.optimizerSgd(g.constant(DType.FLOAT32, 0.1));
        }
    }

    /** Each recurrent layer gives outputs of all positions, and its last states. */
    private static void recurrent(Graph g, Mode mode) {
        Value x = g.feature("x");
        Value nothing = g.mul(g.reduceMax(x, new ReduceMaxOptions().axes(1, 2)), g.constant(DType.FLOAT32, 0));
        LayerRnnValues rnn = g.layerRnn(x, 2, new LayerRnnOptions().bidirectional(true));
        LayerLstmValues lstm = g.layerLstm(rnn.y(), 3,
            new LayerLstmOptions().layers(2).lengths(g.cast(nothing, DType.INT32)));
        LayerGruValues gru = g.layerGru(lstm.y(), 3);
        g.output("gru", gru.y());
        g.output("last", gru.state());
        g.output("cell", lstm.cell());
        if (mode != Mode.PREDICT) {
            g.loss(g.reduceMean(g.square(gru.y())));
            g.optimizerSgd(g.constant(DType.FLOAT32, 0.1));
        }
    }

    @Test
    public void recurrentLayers() {
        float[] rows = {1, 2, 3, 4, 5, 6, 7, 8};
        try (Estimator estimator = new Estimator(RegionTest::recurrent);
             Dataset dataset = new Pipeline().addSlices("x", Role.FEATURE, rows, 2, 4, 1).batch(2).build()) {
            estimator.train(dataset);
            try (Predictor predictor = estimator.predictor(); Batch batch = predictor.runAll(dataset);
                 Tensor gru = batch.output("gru"); Tensor last = batch.output("last");
                 Tensor cell = batch.output("cell")) {
                assertArrayEquals(new long[] {2, 4, 3}, gru.dims());
                assertArrayEquals(new long[] {2, 1, 3}, last.dims());
                assertArrayEquals(new long[] {2, 2, 3}, cell.dims());
            }
        }
    }

    @Test
    public void aModelOfRegions() {
        float[] rows = {1, 2, 3, -1, 0.5f, 1};
        try (Estimator estimator = new Estimator(RegionTest::model);
             Dataset dataset = new Pipeline().addSlices("x", Role.FEATURE, rows, 2, 3).repeat().batch(2).build()) {
            double w = 2;
            for (int step = 0; step < 2; step++) {
                // The mean of (6 w)^2 and (w / 2)^2, and half of its gradient.
                double wanted = (36 + 0.25) / 2 * w * w;
                assertEquals(wanted, estimator.train(dataset, new TrainOptions().steps(1)).loss(), 1e-4 * wanted);
                w -= 0.1 * 0.5 * (36 + 0.25) * w;
                try (Tensor variable = estimator.readVariable("w")) {
                    assertEquals(w, variable.toFloats()[0], 1e-4);
                }
            }
        }
    }

    /** The loss is w[0] x[0] + w[1] x[1], and the optimizer momentum whose steps become shorter, for variables of one
     * type. */
    private static void ruled(Graph g, Mode mode, DType dtype) {
        Value w = g.variable("w", dtype, new long[] {2}, new VariableOptions().initializer("constant", 2));
        Value products = g.mul(g.cast(g.feature("x"), dtype), w);
        Value y = g.reduceSum(products, new ReduceSumOptions().axes(1));
        g.output("y", y);
        if (mode != Mode.PREDICT) {
            g.loss(g.cast(g.reduceMean(y), DType.FLOAT32));
            UpdateRuleOptions options = new UpdateRuleOptions().slot("velocity", 1).weightDecay(0.25).dtype(dtype)
                .clipValue(8).clipNorm(5).averageDecay(0.5).averageRamp(true).averageStart(1);
            g.updateRule(g.scheduleConstant(0.1), options, u -> {
                Value velocity = g.add(g.mul(u.slots().get(0), g.constant(dtype, 0.5)), u.gradient());
                Value decayed = g.add(velocity, g.mul(u.weightDecay(), u.weight()));
                Value rate = g.div(u.learningRate(), g.cast(u.count(), dtype));
                return new UpdatedVariable(g.sub(u.weight(), g.mul(rate, decayed)), velocity);
            });
        }
    }

    private static double[] variable(Estimator estimator, String name) {
        try (Tensor variable = estimator.readVariable(name)) {
            double[] numbers = new double[(int) variable.elementCount()];
            for (int i = 0; i < numbers.length; i++) {
                numbers[i] = variable.dtype() == DType.FLOAT64 ? variable.toDoubles()[i] : variable.toFloats()[i];
            }
            return numbers;
        }
    }

    @Test
    public void aRuleOfUpdate() {
        float[] rows = {5, 10, 7, 14};
        for (DType dtype : List.of(DType.FLOAT32, DType.FLOAT64)) {
            try (Estimator estimator = new Estimator((g, mode) -> ruled(g, mode, dtype));
                 Dataset dataset = new Pipeline().addSlices("x", Role.FEATURE, rows, 2, 2).repeat().batch(2).build()) {
                estimator.train(dataset, new TrainOptions().steps(2));
                // The gradient 6, 12 becomes 6, 8, and then 3, 4. The velocity is 3.5, 4.5 and 4.75, 6.25. The weight
                // is first 2 - 0.1 (3.5 + 0.5) = 1.6 and 2 - 0.1 (4.5 + 0.5) = 1.5, then 1.6 - 0.05 (4.75 + 0.4) and
                // 1.5 - 0.05 (6.25 + 0.375). The average is first the weight, and then has a decay of 2 / 11.
                assertArrayEquals(new double[] {1.3425, 1.16875}, variable(estimator, "w"), 1e-5);
                assertArrayEquals(new double[] {4.75, 6.25}, variable(estimator, "w/velocity"), 1e-5);
                double[] average = {(2 * 1.6 + 9 * 1.3425) / 11, (2 * 1.5 + 9 * 1.16875) / 11};
                assertArrayEquals(average, variable(estimator, "w/average"), 1e-5);
            }
        }
    }

    /** A rule without slots is plain descent: 2 - 0.1 * 6 and 2 - 0.1 * 12. */
    @Test
    public void aRuleOfUpdateWithoutSlots() {
        ModelFunction model = (g, mode) -> {
            Value w = g.variable("w", DType.FLOAT32, new long[] {2}, new VariableOptions().initializer("constant", 2));
            Value y = g.mul(g.feature("x"), w);
            g.output("y", y);
            if (mode != Mode.PREDICT) {
                g.loss(g.mul(g.reduceMean(y), g.constant(DType.FLOAT32, 2)));
                g.updateRule(g.constant(DType.FLOAT32, 0.1), u ->
                    new UpdatedVariable(g.sub(u.weight(), g.mul(u.learningRate(), u.gradient()))));
            }
        };
        float[] rows = {5, 10, 7, 14};
        try (Estimator estimator = new Estimator(model);
             Dataset dataset = new Pipeline().addSlices("x", Role.FEATURE, rows, 2, 2).batch(2).build()) {
            estimator.train(dataset);
            assertArrayEquals(new double[] {1.4, 0.8}, variable(estimator, "w"), 1e-6);
        }
    }

    /** The rule for matrices is used where a variable is one: w - 0.1 * g (wt w) with w = 2 I, where g is 12 in the
     * first row and 24 in the second. */
    @Test
    public void aRuleOfUpdateForMatrices() {
        ModelFunction model = (g, mode) -> {
            VariableOptions identity = new VariableOptions().initializer("identity(2)");
            Value w = g.variable("w", DType.FLOAT32, new long[] {2, 2}, identity);
            Value y = g.matmul(g.feature("x"), w);
            g.output("y", y);
            if (mode != Mode.PREDICT) {
                g.loss(g.mul(g.reduceMean(y), g.constant(DType.FLOAT32, 4)));
                Value rate = g.constant(DType.FLOAT32, 0.1);
                g.updateRule(rate, u -> new UpdatedVariable(u.weight()));
                g.updateRule(rate, new UpdateRuleOptions().matrices(true), u -> {
                    Value square = g.matmul(u.weight(), u.weight(), new MatmulOptions().transposeA(true));
                    Value step = g.mul(u.learningRate(), g.matmul(u.gradient(), square));
                    return new UpdatedVariable(g.sub(u.weight(), step));
                });
            }
        };
        float[] rows = {5, 10, 7, 14};
        try (Estimator estimator = new Estimator(model);
             Dataset dataset = new Pipeline().addSlices("x", Role.FEATURE, rows, 2, 2).batch(2).build()) {
            estimator.train(dataset);
            assertArrayEquals(new double[] {-2.8, -4.8, -9.6, -7.6}, variable(estimator, "w"), 1e-5);
        }
    }
}
