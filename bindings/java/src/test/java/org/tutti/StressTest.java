// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.Rule;
import org.junit.Test;

public class StressTest {
    @Rule public Leaks leaks = new Leaks();
    /** The variable asks for 10^6 rounds. */
    private static final int ROUNDS = Integer.parseInt(System.getenv().getOrDefault("TUTTI_TEST_ROUNDS", "20000"));

    /** The memory that the process holds. */
    private static long residentBytes() throws Exception {
        Path status = Path.of("/proc/self/statm");
        assumeTrue(Files.exists(status));
        return Long.parseLong(Files.readString(status).split(" ")[1]) * 4096;
    }

    private static void rounds(int count) {
        for (int i = 0; i < count; i++) {
            Tensor tensor = Tensor.of(new long[] {1, 2, 3});
            if (i % 2 == 0) {
                tensor.close();
            }
            new Pipeline(); // forgotten
        }
    }

    @Test
    public void manyObjectsLeaveNothing() throws Exception {
        rounds(20_000);
        System.gc();
        long before = residentBytes();
        rounds(100_000);
        System.gc();
        assertTrue(residentBytes() - before + " bytes more", residentBytes() - before < 128 << 20);
    }

    /** Steps whose temporaries nobody closes. */
    @Test
    public void stepsWithTemporaries() throws Exception {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator();
             DatasetIterator iterator = dataset.iterator(0)) {
            estimator.train(dataset, new TrainOptions().steps(1));
            try (Predictor predictor = estimator.predictor()) {
                long before = 0;
                for (int i = 0; i < ROUNDS; i++) {
                    Tensor[] element = iterator.read();
                    if (i % 10 == 0) {
                        predictor.run(Map.of("x", element[0])).output("class");
                    }
                    if (i == ROUNDS / 4) {
                        before = residentBytes();
                    }
                }
                assertTrue(residentBytes() - before + " bytes more", residentBytes() - before < 192 << 20);
            }
        }
    }

    /** A program that forgets 160 MB of tensors, and says how it is with the collector. */
    static final class Forgets {
        public static void main(String[] arguments) {
            for (int i = 0; i < 40; i++) {
                Tensor.zeros(DType.FLOAT32, 1 << 20);
            }
            System.out.println("forgotten");
        }
    }

    /** Programs decide when the collector runs, or Java does: never the library. */
    @Test
    public void nobodyAsksForACollection() throws Exception {
        List<String> flags = List.of("-Xlog:gc", "-Djava.library.path=" + System.getProperty("java.library.path"));
        String output = child(0, flags, Forgets.class);
        assertTrue(output, output.contains("forgotten"));
        assertTrue(output, !output.contains("System.gc"));
    }

    /** What another process with the same class path says and how it ends. */
    static String child(int wantedStatus, List<String> flags, Class<?> program, String... arguments) throws Exception {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        List<String> command = new ArrayList<>(List.of(java, "-cp", System.getProperty("java.class.path")));
        command.addAll(flags);
        command.add(program.getName());
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        assertTrue("it does not end\n" + output, process.waitFor(60, TimeUnit.SECONDS));
        assertEquals(output, wantedStatus, process.exitValue());
        return output;
    }

    /** The process may end while training runs, while the log is written and while a map computes. */
    @Test
    public void exitWhileTraining() throws Exception {
        List<String> path = List.of("-Djava.library.path=" + System.getProperty("java.library.path"));
        for (String way : List.of("exit", "return", "halt", "throw")) {
            String output = child(way.equals("throw") ? 1 : 0, path, ExitWhileTraining.class, way);
            assertTrue(output, output.contains("trains"));
        }
    }

    /** A program that ends in several ways while a daemon thread trains. */
    static final class ExitWhileTraining {
        public static void main(String[] arguments) throws Exception {
            Context context = new Context();
            context.setLog(Severity.DEBUG, (severity, text) -> { });
            CountDownLatch steps = new CountDownLatch(3);
            Thread thread = new Thread(() -> {
                Dataset dataset = Toy.pipeline(context).shuffle(Toy.ROWS).repeat().map(2, element -> element)
                    .batch(Toy.BATCH).prefetch().build();
                RunOptions run = new RunOptions().logStepCountSteps(1);
                Hook hook = Hook.onStep(1, event -> steps.countDown());
                Estimator.builder(Toy::model).context(context).options(run).build().train(dataset, hook);
            });
            thread.setDaemon(true);
            thread.start();
            if (!steps.await(60, TimeUnit.SECONDS)) {
                System.out.println("it does not train");
                System.exit(2);
            }
            System.out.println("it trains");
            switch (arguments[0]) {
                case "exit" -> System.exit(0);
                case "halt" -> Runtime.getRuntime().halt(0);
                case "throw" -> throw new IllegalStateException("on purpose");
                default -> { }
            }
        }
    }
}
