// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti.Tests
{
    // A model with the layer that the run option Params names (tests/bindings/scenarios.txt).
    internal static class ScenarioBlocks
    {
        private const int Classes = 3, Length = 3, Side = 2, Hidden = 5;

        public static void Build(Graph g, Mode mode)
        {
            Value z = Logits(g, g.GetFeature("x"), g.Params);
            g.SetOutput("z", z);
            if (mode == Mode.Predict)
                return;
            g.SetLoss(g.LossSparseSoftmaxCrossEntropy(z, g.GetLabel("y")));
            g.OptimizerSgd(g.ScheduleConstant(0.25));
        }

        private static Value Logits(Graph g, Value x, string name)
        {
            switch (name)
            {
                case "constrained":
                    Value z = g.LayerDense(x, Classes, new LayerDenseOptions { KernelConstraint = "max_norm(0.5)" });
                    g.ParameterConstraint("*bias", "non_negative");
                    return z;
                case "given":
                    return Given(g, x);
                case "weight_norm":
                    return Normalized(g, x, KernelNormalization.WeightNorm);
                case "spectral_norm":
                    return Normalized(g, x, KernelNormalization.SpectralNorm);
                case "encoder":
                    var gelu = new LayerTransformerEncoderOptions { Activation = Activation.Gelu };
                    Value y = g.LayerTransformerEncoder(g.LayerSinusoidalPositions(Sequence(g, x)), 2, Hidden, gelu);
                    return g.LayerDense(g.LayerFlatten(y), Classes);
                case "decoder":
                    return Decoder(g, x);
                case "norms":
                    return Norms(g, x);
                case "residual":
                    return Residual(g, x);
                default:
                    throw new ArgumentException(name);
            }
        }

        private static Value Normalized(Graph g, Value x, KernelNormalization kind)
        {
            return g.LayerDense(x, Classes, new LayerDenseOptions { KernelNormalization = kind });
        }

        private static Value Decoder(Graph g, Value x)
        {
            var first = new LayerLearnedPositionsOptions { Initializer = "glorot_uniform" };
            var options = new LayerTransformerDecoderOptions
            { Activation = Activation.Gelu, PreNorm = true, RotaryBase = 100 };
            Value placed = g.LayerLearnedPositions(Sequence(g, x), Length, first);
            Value y = g.LayerTransformerDecoder(placed, 1, Hidden, options).Y;
            return g.LayerDense(g.LayerFlatten(g.LayerRotaryPositions(y)), Classes);
        }

        private static Value Norms(Graph g, Value x)
        {
            Value y = g.LayerGroupNorm(Sequence(g, x), 2);
            y = g.LayerLayerNorm(g.LayerInstanceNorm(g.Tanh(y)));
            y = g.LayerMultiHeadAttention(g.LayerRmsNorm(g.Tanh(y)), 2);
            return g.LayerDense(g.LayerFlatten(y), Classes);
        }

        private static Value Residual(Graph g, Value x)
        {
            long channels = x.Dims[1] / (Side * Side);
            Value image = g.Reshape(x, new long[] { Graph.DimBatch, Side, Side, channels });
            var options = new LayerResidualBlock2dOptions { KernelInitializer = "glorot_uniform" };
            return g.LayerDense(g.LayerFlatten(g.LayerResidualBlock2d(image, channels, options)), Classes);
        }

        // x as a sequence of three positions.
        private static Value Sequence(Graph g, Value x)
        {
            return g.Reshape(x, new long[] { Graph.DimBatch, Length, x.Dims[1] / Length });
        }

        private static Value Given(Graph g, Value x)
        {
            Value z = g.LayerDense(x, Classes);
            long columns = x.Dims[1];
            var values = new float[columns * Classes];
            for (int i = 0; i < values.Length; i++)
                values[i] = (i * 5 % 7 - 3) / 8f;
            using (Tensor kernel = Tensor.From(values, columns, Classes))
                g.SetInitialValue("dense/kernel", kernel);
            return z;
        }
    }
}
