// SPDX-License-Identifier: Apache-2.0

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.tutti.*;

/**
 * Answers over HTTP, many requests at a time from one predictor: POST rows of numbers, one row a line, to /predict, and
 * get the number of the largest in each row, which the network learned. Argument: PORT, 0 for a free one.
 */
public class Serving {
    static final int COLUMNS = 4;

    static void model(Graph g, Mode mode) {
        LayerDenseOptions relu = new LayerDenseOptions().activation(Activation.RELU);
        Value logits = g.layerDense(g.layerDense(g.feature("x"), 32, relu), COLUMNS);
        g.output("class", g.argmax(logits));
        if (mode != Mode.PREDICT) {
            g.loss(g.lossSparseSoftmaxCrossEntropy(logits, g.label("y")));
            g.optimizerAdam(g.scheduleConstant(1e-2));
        }
    }

    static Predictor trained() {
        Random random = new Random(1);
        float[] rows = new float[1000 * COLUMNS];
        int[] labels = new int[1000];
        for (int i = 0; i < rows.length; i++) {
            rows[i] = random.nextFloat();
            int row = i / COLUMNS;
            labels[row] = rows[i] > rows[row * COLUMNS + labels[row]] ? i % COLUMNS : labels[row];
        }
        try (Dataset dataset = new Pipeline().addSlices("x", Role.FEATURE, rows, 1000, COLUMNS)
                .addSlices("y", Role.LABEL, labels).shuffle(1000).repeat().batch(64).build();
             Estimator estimator = Estimator.builder(Serving::model).options(new RunOptions().seed(1)).build()) {
            estimator.train(dataset, new TrainOptions().steps(500));
            return estimator.predictor();
        }
    }

    static String predict(Predictor predictor, String text) {
        String[] words = text.trim().split("[,\\s]+");
        float[] rows = new float[words.length];
        for (int i = 0; i < words.length; i++) {
            rows[i] = Float.parseFloat(words[i]);
        }
        try (Tensor x = Tensor.of(rows, words.length / COLUMNS, COLUMNS); Batch batch = predictor.run(Map.of("x", x))) {
            return LongStream.of(batch.longs("class")).mapToObj(Long::toString).collect(Collectors.joining("\n"));
        }
    }

    static void answer(HttpExchange exchange, Predictor predictor) throws IOException {
        int status = 200;
        String text;
        try {
            text = predict(predictor, new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
        } catch (NumberFormatException | TuttiException failure) {
            status = failure instanceof TuttiException t && t.code() != Code.INVALID_ARGUMENT ? 500 : 400;
            text = failure.getMessage();
        }
        byte[] bytes = (text + "\n").getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, bytes.length);
        try (exchange) {
            exchange.getResponseBody().write(bytes);
        }
    }

    public static void main(String[] arguments) throws IOException {
        Predictor predictor = trained(); // which lives as long as the server
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/predict", exchange -> answer(exchange, predictor));
        server.start();
        System.out.println("listening on port " + server.getAddress().getPort());
    }
}
