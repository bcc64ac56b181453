// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.junit.Rule;
import org.junit.Test;

public class InputFunctionTest {
    @Rule public Leaks leaks = new Leaks();

    @Test
    public void paramsReachTheFunctions() {
        List<String> said = new ArrayList<>();
        try (Context context = new Context(new ContextOptions().logicalDevices(2).backend("reference"));
             Strategy both = Strategy.mirrored(context);
             Estimator estimator = Estimator.builder((graph, mode) -> {
                 said.add(graph.params());
                 Toy.model(graph, mode);
             }).context(context).options(new RunOptions().params("7")).build()) {
            InputFunction rows = input -> {
                said.add(input.inputPipelineId() + " of " + input.inputPipelineCount());
                return Toy.pipeline(context).batch(Long.parseLong(input.params())).build();
            };
            estimator.train(rows, new TrainOptions().steps(3));
            double alone = estimator.evaluate(rows, 0).loss();
            estimator.setEvaluationStrategy(both);
            assertEquals(alone, estimator.evaluate(rows, 0).loss(), 1e-6);
            estimator.setEvaluationStrategy(null);
            assertEquals(alone, estimator.evaluate(rows, 0).loss(), 0);
            assertEquals(List.of("0 of 1", "7", "0 of 1", "7", "0 of 1", "0 of 1"), said);
            try (Dataset whole = rows.make(new InputContext("7", 0, 1)); Dataset pieces = both.distribute(whole);
                 DatasetIterator iterator = pieces.iterator(0L)) {
                Tensor[] element = iterator.read();
                Tensor[] first = iterator.piece(0);
                Tensor[] second = iterator.piece(1);
                assertEquals(4, first[1].dims()[0]);
                assertEquals(3, second[1].dims()[0]);
                assertEquals(4, both.perReplicaBatchSize(7));
                assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> iterator.piece(2)).code());
                Tensor.closeAll(element);
                Tensor.closeAll(first);
                Tensor.closeAll(second);
            }
            assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> estimator.evaluate(input -> null, 0)).code());
        }
    }
}
