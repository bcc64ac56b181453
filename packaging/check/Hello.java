// SPDX-License-Identifier: Apache-2.0

import java.util.Locale;
import java.util.Map;
import org.tutti.Activation;
import org.tutti.Batch;
import org.tutti.ClusterOptions;
import org.tutti.Context;
import org.tutti.ContextOptions;
import org.tutti.Dataset;
import org.tutti.Estimator;
import org.tutti.Graph;
import org.tutti.LayerDenseOptions;
import org.tutti.Mode;
import org.tutti.Pipeline;
import org.tutti.Predictor;
import org.tutti.Role;
import org.tutti.RunOptions;
import org.tutti.Strategy;
import org.tutti.Tensor;
import org.tutti.TrainOptions;
import org.tutti.Value;

/** As hello.c, in Java. */
public class Hello {
    static final int ROWS = 512;
    static final int FEATURES = 4;
    static final float[] NUMBERS = new float[ROWS * FEATURES];
    static final int[] LABELS = new int[ROWS];

    static void makeRows() {
        int state = 1;
        for (int i = 0; i < NUMBERS.length; i++) {
            state = state * 1664525 + 1013904223;
            NUMBERS[i] = (float) (state >>> 8) / (1 << 24);
        }
        for (int i = 0; i < ROWS; i++) {
            LABELS[i] = NUMBERS[i * FEATURES] + NUMBERS[i * FEATURES + 1] > 1 ? 1 : 0;
        }
    }

    static void model(Graph g, Mode mode) {
        Value hidden = g.layerDense(g.feature("x"), 16, new LayerDenseOptions().activation(Activation.RELU));
        Value logits = g.layerDense(hidden, 2);
        g.output("logits", logits);
        if (mode != Mode.PREDICT) {
            g.loss(g.lossSparseSoftmaxCrossEntropy(logits, g.label("y")));
            g.optimizerAdam(g.scheduleConstant(0.02));
        }
    }

    static Predictor train(Context context, Strategy strategy, String directory) {
        Pipeline pipeline = new Pipeline(context).addSlices("x", Role.FEATURE, NUMBERS, ROWS, FEATURES);
        pipeline.addSlices("y", Role.LABEL, LABELS);
        try (Dataset dataset = pipeline.repeat().batch(64).build();
             Estimator estimator = Estimator.builder(Hello::model).context(context).strategy(strategy)
                 .options(new RunOptions().modelDir(directory)).build()) {
            estimator.train(dataset, new TrainOptions().steps(300));
            return estimator.predictor();
        }
    }

    public static void main(String[] arguments) {
        makeRows();
        try (Context context = new Context(new ContextOptions().logicalDevices(2));
             Strategy strategy = arguments[0].equals("workers")
                 ? Strategy.multiWorkerFromEnvironment(context, new ClusterOptions()) : Strategy.mirrored(context);
             Predictor predictor = arguments[0].equals("predict")
                 ? Predictor.builder(arguments[1]).context(context).strategy(strategy).open()
                 : train(context, strategy, arguments[1]);
             Tensor x = Tensor.of(NUMBERS, ROWS, FEATURES);
             Batch batch = predictor.run(Map.of("x", x))) {
            float[] logits = batch.floats("logits");
            int right = 0;
            double sum = 0;
            for (int i = 0; i < ROWS; i++) {
                right += (logits[2 * i + 1] > logits[2 * i]) == (LABELS[i] == 1) ? 1 : 0;
                sum += logits[2 * i] + logits[2 * i + 1];
            }
            System.out.printf(Locale.ROOT, "%d of %d right, sum %.3f%n", right, ROWS, sum);
            if (right <= ROWS * 9 / 10) {
                System.exit(1);
            }
        }
    }
}
