// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.List;

/** A model whose optimizer the run option params names (tests/bindings/scenarios.txt). */
final class ScenarioOptimizers {
    private ScenarioOptimizers() {}

    static void build(Graph g, Mode mode) {
        Value z = g.layerDense(g.feature("x"), 3);
        g.output("z", z);
        if (mode != Mode.PREDICT) {
            g.loss(g.lossSparseSoftmaxCrossEntropy(z, g.label("y")));
            set(g, g.params());
        }
    }

    private static void set(Graph g, String name) {
        switch (name) {
            case "sgd" -> g.optimizerSgd(g.scheduleConstant(0.25),
                new OptimizerSgdOptions().momentum(0.9).nesterov(true).weightDecay(0.1));
            case "adagrad" -> g.optimizerAdagrad(g.scheduleConstant(0.5),
                new OptimizerAdagradOptions().rateDecay(0.5).initialSum(0.1).epsilon(0.01).weightDecay(0.1));
            case "adadelta" -> g.optimizerAdadelta(g.scheduleConstant(2),
                new OptimizerAdadeltaOptions().rho(0.8).epsilon(0.01).weightDecay(0.1));
            case "rmsprop" -> g.optimizerRmsprop(g.scheduleConstant(0.125), new OptimizerRmspropOptions().rho(0.8)
                .momentum(0.5).centered(true).epsilon(0.01).weightDecay(0.1));
            case "lion" -> g.optimizerLion(g.scheduleConstant(0.125),
                new OptimizerLionOptions().beta1(0.8).beta2(0.5).weightDecay(0.1));
            case "ftrl" -> g.optimizerFtrl(g.scheduleConstant(0.5), new OptimizerFtrlOptions().ratePower(-0.25)
                .initialSum(0.2).l1(0.05).l2(0.1).l2Shrinkage(0.02).beta(0.5));
            case "lars" -> g.optimizerLars(g.scheduleConstant(1), new OptimizerLarsOptions().momentum(0.5)
                .nesterov(true).trust(0.1).epsilon(0.01).weightDecay(0.1));
            case "groups" -> groups(g);
            case "rows_and_columns" -> rowsAndColumns(g);
            case "frozen" -> {
                g.parameterGroup("*bias", new ParameterGroupOptions().frozen(true));
                g.optimizerAdagrad(g.scheduleConstant(0.5));
            }
            case "vectors" -> {
                g.parameterGroup("*", new ParameterGroupOptions().asVectors(true));
                g.optimizerMuon(g.scheduleConstant(0.125));
            }
            default -> setAdam(g, name);
        }
    }

    /** Adam and its relatives. */
    private static void setAdam(Graph g, String name) {
        Value rate = g.scheduleConstant(0.25);
        switch (name) {
            case "adam" -> g.optimizerAdam(rate,
                new OptimizerAdamOptions().beta1(0.8).beta2(0.5).epsilon(0.01).amsgrad(true));
            case "adamw" -> g.optimizerAdamw(rate,
                new OptimizerAdamwOptions().weightDecay(0.1).beta1(0.8).beta2(0.5).epsilon(0.01).amsgrad(true));
            case "adamax" -> g.optimizerAdamax(rate,
                new OptimizerAdamaxOptions().beta1(0.8).beta2(0.5).epsilon(0.01).weightDecay(0.1));
            case "nadam" -> g.optimizerNadam(rate,
                new OptimizerNadamOptions().beta1(0.8).beta2(0.5).epsilon(0.01).momentumDecay(2).weightDecay(0.1));
            case "lamb" -> g.optimizerLamb(rate,
                new OptimizerLambOptions().beta1(0.8).beta2(0.5).epsilon(0.01).weightDecay(0.1));
            case "muon" -> g.optimizerMuon(rate, new OptimizerMuonOptions().momentum(0.8).withoutNesterov(true)
                .rounds(3).scale(OptimizerMuonScale.LIKE_ADAM).vectorRate(0.5).beta1(0.8).beta2(0.5).epsilon(0.01)
                .weightDecay(0.1));
            case "adafactor" -> g.optimizerAdafactor(g.scheduleConstant(0.75));
            case "adafactor_fixed" -> g.optimizerAdafactor(g.scheduleConstant(0.75),
                new OptimizerAdafactorOptions().beta2Decay(-0.5).epsilon(0.01).addsEpsilon(true).leastScale(0.5)
                    .clipThreshold(0.5).keepsRate(true).weightDecay(0.1));
            default -> throw new IllegalArgumentException(name);
        }
    }

    /** Of vectors w - rate g; of matrices w - rate g r c, where r = r / 2 + the sum of the squares of a row of g, and c
     * that of a column. */
    private static void rowsAndColumns(Graph g) {
        Value rate = g.scheduleConstant(2);
        g.updateRule(rate, u -> new UpdatedVariable(g.sub(u.weight(), g.mul(u.learningRate(), u.gradient()))));
        UpdateRuleOptions options = new UpdateRuleOptions().stacks(true).slotPerRow("rows", 0.25)
            .slotPerColumn("columns", 0.5);
        g.updateRule(rate, options, u -> {
            Value half = g.constant(DType.FLOAT32, 0.5);
            Value squares = g.square(u.gradient());
            Value rows = g.add(g.mul(u.slots().get(0), half), g.reduceSum(squares, new ReduceSumOptions().axes(2)));
            Value columns = g.add(g.mul(u.slots().get(1), half), g.reduceSum(squares, new ReduceSumOptions().axes(1)));
            Value step = g.einsum(List.of(u.gradient(), rows, columns), "mrc,mr,mc->mrc");
            return new UpdatedVariable(g.sub(u.weight(), g.mul(u.learningRate(), step)), rows, columns);
        });
    }

    private static void groups(Graph g) {
        g.parameterGroup("*bias",
            new ParameterGroupOptions().learningRate(g.scheduleConstant(0.125)).withoutDecay(true));
        g.parameterGroup("dens?/*", new ParameterGroupOptions().rateFactor(0.5).weightDecay(0.2));
        g.optimizerSgd(g.scheduleConstant(1), new OptimizerSgdOptions().weightDecay(0.1));
    }
}
