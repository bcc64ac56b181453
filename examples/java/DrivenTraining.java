// SPDX-License-Identifier: Apache-2.0

import java.util.Locale;
import java.util.Random;
import org.tutti.Dataset;
import org.tutti.Estimator;
import org.tutti.Graph;
import org.tutti.Mode;
import org.tutti.Pipeline;
import org.tutti.Result;
import org.tutti.Role;
import org.tutti.Session;
import org.tutti.TrainOptions;
import org.tutti.Value;

/**
 * Training that the program drives: it runs 25 steps at a time, halves the learning rate when the loss stops falling,
 * and ends when the rate is small.
 */
public class DrivenTraining {
    static void model(Graph g, Mode mode) {
        Value line = g.layerDense(g.feature("x"), 1);
        g.output("y", line);
        if (mode != Mode.PREDICT) {
            g.loss(g.lossMeanSquaredError(line, g.label("y")));
            g.optimizerSgd(g.hostScalar("rate", 0));
        }
    }

    public static void main(String[] arguments) {
        Random random = new Random();
        float[] x = new float[1000 * 2];
        float[] y = new float[1000];
        for (int i = 0; i < y.length; i++) {
            x[2 * i] = random.nextFloat();
            x[2 * i + 1] = random.nextFloat();
            y[i] = x[2 * i] - 2 * x[2 * i + 1] + 0.1f * random.nextFloat();
        }
        Pipeline pipeline = new Pipeline().addSlices("x", Role.FEATURE, x, 1000, 2);
        pipeline.addSlices("y", Role.LABEL, y, 1000, 1);
        try (Dataset dataset = pipeline.repeat().batch(100).build();
             Estimator estimator = new Estimator(DrivenTraining::model);
             Session session = estimator.openSession(dataset, new TrainOptions())) {
            double best = Double.POSITIVE_INFINITY;
            for (double rate = 0.4; rate > 1e-3;) {
                session.setScalar("rate", rate);
                Result result = session.run(25);
                System.out.printf(Locale.ROOT, "step %d, rate %.4f, loss %.6f%n", result.step(), rate, result.loss());
                rate = result.loss() < 0.9 * best ? rate : rate / 2;
                best = Math.min(best, result.loss());
            }
            session.finish();
        }
    }
}
