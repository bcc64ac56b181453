// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** The models of the scenarios; tests/bindings/scenarios.txt says what they are. */
final class ScenarioModels {
    private ScenarioModels() {}

    static ModelFunction of(String name) {
        return switch (name) {
            case "classifier" -> ScenarioModels::classifier;
            case "regression" -> ScenarioModels::regression;
            case "averages" -> ScenarioModels::averages;
            case "images" -> ScenarioModels::images;
            case "losses" -> new ScenarioLosses();
            case "metrics" -> new ScenarioMetrics();
            case "optimizers" -> ScenarioOptimizers::build;
            case "blocks" -> ScenarioBlocks::build;
            case "functions" -> new ScenarioFunctions();
            case "ops" -> new ScenarioOps();
            case "layers" -> new ScenarioLayers();
            case "schedules" -> new ScenarioSchedules();
            case "tables" -> ScenarioModels::tables;
            case "wrong" -> (g, mode) -> g.loss(g.matmul(g.feature("x"), g.feature("x")));
            case "failing" -> (g, mode) -> {
                throw new TuttiException(Code.UNAVAILABLE, "the model is at lunch");
            };
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static void classifier(Graph g, Mode mode) {
        LayerDenseOptions relu = new LayerDenseOptions().activation(Activation.RELU);
        Value hidden = g.layerDense(g.feature("x"), 8, relu);
        Value logits = g.layerDense(g.layerDropout(hidden, 0.25), 3);
        g.output("class", g.argmax(logits));
        g.output("probability", g.softmax(logits));
        if (mode != Mode.PREDICT) {
            Value y = g.label("y");
            g.metricAccuracy("accuracy", logits, y);
            g.metricTopKAccuracy("top_2", logits, y, 2);
            g.loss(g.lossSparseSoftmaxCrossEntropy(logits, y));
            g.optimizerAdam(g.scheduleConstant(0.01));
        }
    }

    private static void regression(Graph g, Mode mode) {
        Value x = g.feature("x");
        Value[] line = new Value[1];
        long[] dims = {g.dims(x)[1], 1};
        g.scope("line", () -> line[0] = g.matmul(x, g.variable("slope", DType.FLOAT32, dims)));
        g.output("y", line[0]);
        if (mode != Mode.PREDICT) {
            Value target = g.reshape(g.cast(g.label("y"), DType.FLOAT32), new long[] {Graph.DIM_BATCH, 1});
            g.metricMean("target", target);
            g.loss(g.lossMeanSquaredError(line[0], target));
            ScheduleExponentialOptions steps = new ScheduleExponentialOptions().staircase(true);
            g.optimizerSgd(g.scheduleExponential(0.05, 0.5, 4, steps),
                new OptimizerSgdOptions().momentum(0.9).nesterov(true));
        }
    }

    private static void tables(Graph g, Mode mode) {
        Value x = g.feature("x");
        LayerEmbeddingOptions ones = new LayerEmbeddingOptions().tableInitializer("ones");
        Value z = g.layerEmbedding(g.argmax(x), g.dims(x)[1], 3, ones);
        g.output("z", z);
        if (mode == Mode.PREDICT) {
            return;
        }
        g.loss(g.lossSparseSoftmaxCrossEntropy(z, g.label("y")));
        Value rate = g.scheduleConstant(0.25);
        boolean isLazy = g.params().startsWith("lazy_");
        switch (g.params()) {
            case "adam", "lazy_adam" -> g.optimizerAdam(rate, new OptimizerAdamOptions().lazy(isLazy));
            case "sgd", "lazy_sgd" -> g.optimizerSgd(rate, new OptimizerSgdOptions().momentum(0.9).lazy(isLazy));
            case "lazy_rule" -> lazyRule(g);
            default -> throw new IllegalArgumentException(g.params());
        }
    }

    /** w - 0.125 m with m = m / 2 + g, of the rows that a step looks up. */
    private static void lazyRule(Graph g) {
        g.updateRule(g.scheduleConstant(0.125), new UpdateRuleOptions().slot("m").lazy(true), u -> {
            Value m = g.add(g.mul(u.slots().get(0), g.constant(DType.FLOAT32, 0.5)), u.gradient());
            return new UpdatedVariable(g.sub(u.weight(), g.mul(u.learningRate(), m)), m);
        });
    }

    private static void averages(Graph g, Mode mode) {
        Value x = g.feature("x");
        long[] dims = {g.dims(x)[1], 1};
        Value line = g.matmul(x, g.variable("line/slope", DType.FLOAT32, dims));
        g.output("y", line);
        if (mode != Mode.PREDICT) {
            Value target = g.reshape(g.cast(g.label("y"), DType.FLOAT32), new long[] {Graph.DIM_BATCH, 1});
            g.loss(g.lossMeanSquaredError(line, target));
            g.optimizerSgd(g.scheduleConstant(0.5), new OptimizerSgdOptions().clipValue(0.2).clipNorm(0.3)
                .averageDecay(0.8).averageRamp(true).averageStart(1));
        }
    }

    private static void images(Graph g, Mode mode) {
        Value x = g.reshape(g.feature("x"), new long[] {Graph.DIM_BATCH, 6, 6, 1});
        x = g.layerConv2d(x, 4, 3, new LayerConv2dOptions().withoutBias(true));
        x = g.relu(g.layerBatchNorm(x, new LayerBatchNormOptions().momentum(0.5)));
        Value logits = g.layerDense(g.layerFlatten(g.layerMaxPool2d(x, 2)), 3);
        g.output("class", g.argmax(logits));
        if (mode != Mode.PREDICT) {
            Value y = g.label("y");
            g.metricAccuracy("accuracy", logits, y);
            g.loss(g.lossSparseSoftmaxCrossEntropy(logits, y));
            g.gradientClipNorm(1);
            g.optimizerAdamw(g.scheduleConstant(0.02), new OptimizerAdamwOptions().weightDecay(0.1));
        }
    }
}
