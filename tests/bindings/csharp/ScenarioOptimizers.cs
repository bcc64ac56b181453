// SPDX-License-Identifier: Apache-2.0
using System;

namespace Tutti.Tests
{
    // A model whose optimizer the run option Params names (tests/bindings/scenarios.txt).
    internal static class ScenarioOptimizers
    {
        public static void Build(Graph g, Mode mode)
        {
            Value z = g.LayerDense(g.GetFeature("x"), 3);
            g.SetOutput("z", z);
            if (mode == Mode.Predict)
                return;
            g.SetLoss(g.LossSparseSoftmaxCrossEntropy(z, g.GetLabel("y")));
            Set(g, g.Params);
        }

        private static void Set(Graph g, string name)
        {
            switch (name)
            {
                case "sgd":
                    var sgd = new OptimizerSgdOptions { Momentum = 0.9, Nesterov = true, WeightDecay = 0.1 };
                    g.OptimizerSgd(g.ScheduleConstant(0.25), sgd);
                    break;
                case "adagrad":
                    var adagrad = new OptimizerAdagradOptions
                    { RateDecay = 0.5, InitialSum = 0.1, Epsilon = 0.01, WeightDecay = 0.1 };
                    g.OptimizerAdagrad(g.ScheduleConstant(0.5), adagrad);
                    break;
                case "adadelta":
                    var adadelta = new OptimizerAdadeltaOptions { Rho = 0.8, Epsilon = 0.01, WeightDecay = 0.1 };
                    g.OptimizerAdadelta(g.ScheduleConstant(2), adadelta);
                    break;
                case "rmsprop":
                    var rmsprop = new OptimizerRmspropOptions
                    { Rho = 0.8, Momentum = 0.5, Centered = true, Epsilon = 0.01, WeightDecay = 0.1 };
                    g.OptimizerRmsprop(g.ScheduleConstant(0.125), rmsprop);
                    break;
                case "lion":
                    var lion = new OptimizerLionOptions { Beta1 = 0.8, Beta2 = 0.5, WeightDecay = 0.1 };
                    g.OptimizerLion(g.ScheduleConstant(0.125), lion);
                    break;
                case "ftrl":
                    var ftrl = new OptimizerFtrlOptions
                    { RatePower = -0.25, InitialSum = 0.2, L1 = 0.05, L2 = 0.1, L2Shrinkage = 0.02, Beta = 0.5 };
                    g.OptimizerFtrl(g.ScheduleConstant(0.5), ftrl);
                    break;
                case "lars":
                    var lars = new OptimizerLarsOptions
                    { Momentum = 0.5, Nesterov = true, Trust = 0.1, Epsilon = 0.01, WeightDecay = 0.1 };
                    g.OptimizerLars(g.ScheduleConstant(1), lars);
                    break;
                case "rows_and_columns":
                    RowsAndColumns(g);
                    break;
                case "groups":
                    Groups(g);
                    break;
                case "frozen":
                    g.ParameterGroup("*bias", new ParameterGroupOptions { Frozen = true });
                    g.OptimizerAdagrad(g.ScheduleConstant(0.5));
                    break;
                case "vectors":
                    g.ParameterGroup("*", new ParameterGroupOptions { AsVectors = true });
                    g.OptimizerMuon(g.ScheduleConstant(0.125));
                    break;
                default:
                    SetAdam(g, name);
                    break;
            }
        }

        // Adam and its relatives.
        private static void SetAdam(Graph g, string name)
        {
            Value rate = g.ScheduleConstant(0.25);
            switch (name)
            {
                case "adam":
                    g.OptimizerAdam(rate, new OptimizerAdamOptions
                    { Beta1 = 0.8, Beta2 = 0.5, Epsilon = 0.01, Amsgrad = true });
                    break;
                case "adamw":
                    g.OptimizerAdamw(rate, new OptimizerAdamwOptions
                    { WeightDecay = 0.1, Beta1 = 0.8, Beta2 = 0.5, Epsilon = 0.01, Amsgrad = true });
                    break;
                case "adamax":
                    g.OptimizerAdamax(rate, new OptimizerAdamaxOptions
                    { Beta1 = 0.8, Beta2 = 0.5, Epsilon = 0.01, WeightDecay = 0.1 });
                    break;
                case "nadam":
                    g.OptimizerNadam(rate, new OptimizerNadamOptions
                    { Beta1 = 0.8, Beta2 = 0.5, Epsilon = 0.01, MomentumDecay = 2, WeightDecay = 0.1 });
                    break;
                case "lamb":
                    g.OptimizerLamb(rate, new OptimizerLambOptions
                    { Beta1 = 0.8, Beta2 = 0.5, Epsilon = 0.01, WeightDecay = 0.1 });
                    break;
                case "muon":
                    g.OptimizerMuon(rate, new OptimizerMuonOptions
                    {
                        Momentum = 0.8,
                        WithoutNesterov = true,
                        Rounds = 3,
                        Scale = OptimizerMuonScale.LikeAdam,
                        VectorRate = 0.5,
                        Beta1 = 0.8,
                        Beta2 = 0.5,
                        Epsilon = 0.01,
                        WeightDecay = 0.1
                    });
                    break;
                case "adafactor":
                    g.OptimizerAdafactor(g.ScheduleConstant(0.75));
                    break;
                case "adafactor_fixed":
                    g.OptimizerAdafactor(g.ScheduleConstant(0.75), new OptimizerAdafactorOptions
                    {
                        Beta2Decay = -0.5,
                        Epsilon = 0.01,
                        AddsEpsilon = true,
                        LeastScale = 0.5,
                        ClipThreshold = 0.5,
                        KeepsRate = true,
                        WeightDecay = 0.1
                    });
                    break;
                default:
                    throw new ArgumentException(name);
            }
        }

        // Of vectors w - rate g; of matrices w - rate g r c, where r = r / 2 + the sum of the squares of a row of g,
        // and c that of a column.
        private static void RowsAndColumns(Graph g)
        {
            Value rate = g.ScheduleConstant(2);
            g.UpdateRule(rate, u => new UpdatedVariable(g.Sub(u.Weight, g.Mul(u.LearningRate, u.Gradient))));
            var options = new UpdateRuleOptions
            {
                Stacks = true,
                Slots = new[] { new Slot("rows", 0.25, SlotPer.Row), new Slot("columns", 0.5, SlotPer.Column) }
            };
            g.UpdateRule(rate, u =>
            {
                Value half = g.Constant(DType.Float32, 0.5), squares = g.Square(u.Gradient);
                var alongRow = new ReduceSumOptions { Axes = new[] { 2L } };
                var alongColumn = new ReduceSumOptions { Axes = new[] { 1L } };
                Value rows = g.Add(g.Mul(u.Slots[0], half), g.ReduceSum(squares, alongRow));
                Value columns = g.Add(g.Mul(u.Slots[1], half), g.ReduceSum(squares, alongColumn));
                Value step = g.Einsum(new[] { u.Gradient, rows, columns }, "mrc,mr,mc->mrc");
                return new UpdatedVariable(g.Sub(u.Weight, g.Mul(u.LearningRate, step)), rows, columns);
            }, options);
        }

        private static void Groups(Graph g)
        {
            Value slow = g.ScheduleConstant(0.125);
            g.ParameterGroup("*bias", new ParameterGroupOptions { LearningRate = slow, WithoutDecay = true });
            g.ParameterGroup("dens?/*", new ParameterGroupOptions { RateFactor = 0.5, WeightDecay = 0.2 });
            g.OptimizerSgd(g.ScheduleConstant(1), new OptimizerSgdOptions { WeightDecay = 0.1 });
        }
    }
}
