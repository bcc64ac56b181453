// SPDX-License-Identifier: Apache-2.0

import java.util.Locale;
import java.util.Random;
import org.tutti.Activation;
import org.tutti.Dataset;
import org.tutti.Estimator;
import org.tutti.Graph;
import org.tutti.LayerDenseOptions;
import org.tutti.Mode;
import org.tutti.Pipeline;
import org.tutti.Result;
import org.tutti.Role;
import org.tutti.TrainOptions;
import org.tutti.Value;

/** The smallest useful program: a network with one hidden layer learns from 1000 rows of 10 numbers. */
public class Hello {
    /** One model for one global batch; the strategy divides the batch over the replicas. */
    static void model(Graph g, Mode mode) {
        Value hidden = g.layerDense(g.feature("x"), 16, new LayerDenseOptions().activation(Activation.RELU));
        Value logits = g.layerDense(hidden, 2);
        g.output("class", g.argmax(logits));
        if (mode != Mode.PREDICT) {
            Value y = g.label("y");
            g.metricAccuracy("accuracy", logits, y);
            g.loss(g.lossSparseSoftmaxCrossEntropy(logits, y));
            g.optimizerAdam(g.scheduleConstant(1e-3));
        }
    }

    public static void main(String[] arguments) {
        Random random = new Random();
        float[] rows = new float[1000 * 10];
        for (int i = 0; i < rows.length; i++) {
            rows[i] = random.nextFloat();
        }
        int[] labels = random.ints(1000, 0, 2).toArray();
        Pipeline pipeline = new Pipeline().addSlices("x", Role.FEATURE, rows, 1000, 10);
        pipeline.addSlices("y", Role.LABEL, labels);
        try (Dataset dataset = pipeline.shuffle(1000).repeat().batch(64).build();
             Estimator estimator = new Estimator(Hello::model)) {
            Result result = estimator.train(dataset, new TrainOptions().steps(100));
            System.out.printf(Locale.ROOT, "step %d, loss %.4f%n", result.step(), result.loss());
        }
    }
}
