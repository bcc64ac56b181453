// SPDX-License-Identifier: Apache-2.0

import java.util.Arrays;
import java.util.Locale;
import org.tutti.*;

/** Fashion-MNIST over every device: train, evaluate, predict. Arguments: DATASET_DIRECTORY OUTPUT_DIRECTORY EPOCHS */
public class FashionMnist {
    static void model(Graph g, Mode mode) {
        LayerConv2dOptions relu = new LayerConv2dOptions().activation(Activation.RELU);
        Value x = g.layerMaxPool2d(g.layerConv2d(g.feature("image"), 32, 3, relu), 2);
        x = g.layerMaxPool2d(g.layerConv2d(x, 64, 3, relu), 2);
        x = g.layerDense(g.layerFlatten(x), 128, new LayerDenseOptions().activation(Activation.RELU));
        Value logits = g.layerDense(x, 10);
        g.output("class", g.argmax(logits));
        if (mode != Mode.PREDICT) {
            g.metricAccuracy("accuracy", logits, g.label("label"));
            g.loss(g.lossSparseSoftmaxCrossEntropy(logits, g.label("label")));
            g.optimizerAdam(g.scheduleConstant(1e-3));
        }
    }

    /** Images are u8 [28, 28] in the file and float [28, 28, 1] in [0, 1] for the model. */
    static Dataset images(String path, long shuffle, long epochs) {
        return new Pipeline().addIdx("image", Role.FEATURE, path + "-images-idx3-ubyte.gz")
            .addIdx("label", Role.LABEL, path + "-labels-idx1-ubyte.gz")
            .shuffle(shuffle).repeat(new RepeatOptions().count(epochs)).batch(128)
            .mapGraph(1, g -> {
                Value pixels = g.reshape(g.cast(g.feature("image"), DType.FLOAT32), new long[] {-1, 28, 28, 1});
                g.output("image", g.mul(pixels, g.constant(DType.FLOAT32, 1.0 / 255)));
            }).prefetch().build();
    }

    public static void main(String[] arguments) {
        RunOptions run = new RunOptions().modelDir(arguments[1]).seed(1);
        try (Strategy all = Strategy.mirrored(); // all devices
             Dataset train = images(arguments[0] + "/train", 60000, Long.parseLong(arguments[2]));
             Dataset test = images(arguments[0] + "/t10k", 1, 1);
             Estimator estimator = Estimator.builder(FashionMnist::model).strategy(all).options(run).build()) {
            Result trained = estimator.train(train, new TrainOptions(), Hook.progress(Hook.ProgressStyle.AUTO));
            Result evaluated = estimator.evaluate(test);
            try (Predictor predictor = estimator.predictor(); Batch batch = predictor.runAll(test)) {
                System.out.println("classes: " + Arrays.toString(Arrays.copyOf(batch.longs("class"), 20)));
            }
            System.out.printf(Locale.ROOT,
                "{\"test_accuracy\": %.4f, \"replicas\": %d, \"global_step\": %d, \"examples_per_second\": %.0f}%n",
                evaluated.metrics().get("accuracy"), all.devices().size(), trained.step(),
                trained.examples() / trained.seconds());
        }
    }
}
