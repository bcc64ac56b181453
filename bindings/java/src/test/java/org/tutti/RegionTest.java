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
}
