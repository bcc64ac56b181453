// SPDX-License-Identifier: Apache-2.0
package org.tutti;

/** A model with the layer that the run option params names (tests/bindings/scenarios.txt). */
final class ScenarioBlocks {
    private static final int CLASSES = 3;
    private static final int LENGTH = 3;
    private static final int SIDE = 2;
    private static final int HIDDEN = 5;

    private ScenarioBlocks() {}

    static void build(Graph g, Mode mode) {
        Value z = logits(g, g.feature("x"), g.params());
        g.output("z", z);
        if (mode != Mode.PREDICT) {
            g.loss(g.lossSparseSoftmaxCrossEntropy(z, g.label("y")));
            g.optimizerSgd(g.scheduleConstant(0.25));
        }
    }

    private static Value logits(Graph g, Value x, String name) {
        return switch (name) {
            case "constrained" -> {
                Value z = g.layerDense(x, CLASSES, new LayerDenseOptions().kernelConstraint("max_norm(0.5)"));
                g.parameterConstraint("*bias", "non_negative");
                yield z;
            }
            case "given" -> given(g, x);
            case "weight_norm" -> g.layerDense(x, CLASSES,
                new LayerDenseOptions().kernelNormalization(KernelNormalization.WEIGHT_NORM));
            case "spectral_norm" -> g.layerDense(x, CLASSES,
                new LayerDenseOptions().kernelNormalization(KernelNormalization.SPECTRAL_NORM));
            case "encoder" -> {
                Value y = g.layerTransformerEncoder(g.layerSinusoidalPositions(sequence(g, x)), 2, HIDDEN,
                    new LayerTransformerEncoderOptions().activation(Activation.GELU));
                yield g.layerDense(g.layerFlatten(y), CLASSES);
            }
            case "decoder" -> {
                Value placed = g.layerLearnedPositions(sequence(g, x), LENGTH,
                    new LayerLearnedPositionsOptions().initializer("glorot_uniform"));
                LayerTransformerDecoderValues made = g.layerTransformerDecoder(placed, 1, HIDDEN,
                    new LayerTransformerDecoderOptions().activation(Activation.GELU).preNorm(true).rotaryBase(100));
                yield g.layerDense(g.layerFlatten(g.layerRotaryPositions(made.y())), CLASSES);
            }
            case "norms" -> {
                Value y = g.layerGroupNorm(sequence(g, x), 2);
                y = g.layerLayerNorm(g.layerInstanceNorm(g.tanh(y)));
                y = g.layerMultiHeadAttention(g.layerRmsNorm(g.tanh(y)), 2);
                yield g.layerDense(g.layerFlatten(y), CLASSES);
            }
            case "residual" -> {
                long channels = g.dims(x)[1] / (SIDE * SIDE);
                Value image = g.reshape(x, new long[] {Graph.DIM_BATCH, SIDE, SIDE, channels});
                Value y = g.layerResidualBlock2d(image, channels,
                    new LayerResidualBlock2dOptions().kernelInitializer("glorot_uniform"));
                yield g.layerDense(g.layerFlatten(y), CLASSES);
            }
            default -> throw new IllegalArgumentException(name);
        };
    }

    /** x as a sequence of three positions. */
    private static Value sequence(Graph g, Value x) {
        return g.reshape(x, new long[] {Graph.DIM_BATCH, LENGTH, g.dims(x)[1] / LENGTH});
    }

    private static Value given(Graph g, Value x) {
        Value z = g.layerDense(x, CLASSES);
        int columns = (int) g.dims(x)[1];
        float[] values = new float[columns * CLASSES];
        for (int i = 0; i < values.length; i++)
            values[i] = (i * 5 % 7 - 3) / 8f;
        try (Tensor kernel = Tensor.of(values, columns, CLASSES)) {
            g.initialValue("dense/kernel", kernel);
        }
        return z;
    }
}
