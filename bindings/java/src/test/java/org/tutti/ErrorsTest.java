// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertSame;
import static org.junit.Assert.assertTrue;
import static org.junit.Assert.fail;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.junit.Rule;
import org.junit.Test;

public class ErrorsTest {
    @Rule public Leaks leaks = new Leaks();

    /** An error whose functions throw. */
    private static final class Broken extends Error {
        private static final long serialVersionUID = 1;

        @Override
        public String toString() {
            throw new IllegalStateException("no text");
        }
    }

    /** What a callback may throw. */
    static List<Throwable> throwables() {
        return List.of(new IOException("checked"), new IllegalStateException("unchecked"), new StackOverflowError(),
            new RuntimeException((String) null), new RuntimeException("bad \ud800 text\0\n𝄞"), new Broken(),
            new TuttiException(Code.DATA_LOSS, "ours"), new InterruptedException("not really"));
    }

    /** Throws anything. */
    static <E extends Throwable> void raise(Throwable thrown) throws E {
        @SuppressWarnings("unchecked")
        E unchecked = (E) thrown;
        throw unchecked;
    }

    interface Failing {
        Object call(Throwable thrown) throws Exception;
    }

    private static void comesBack(Failing function) {
        for (Throwable thrown : throwables()) {
            TuttiException exception = Toy.failure(() -> function.call(thrown));
            assertTrue(thrown.getClass() + " is lost", Toy.isCausedBy(exception, thrown));
            assertEquals(thrown instanceof TuttiException ? Code.DATA_LOSS : Code.ABORTED, exception.code());
        }
    }

    @Test
    public void codesAndDetails() {
        Map<Callable<?>, Code> calls = new LinkedHashMap<>();
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator();
             Tensor one = Tensor.of(new float[1])) {
            RunOptions wrong = new RunOptions().keepCheckpointMax(-5);
            calls.put(() -> new Pipeline().addIdx("x", Role.FEATURE, "no/such/Größe.gz").build(), Code.NOT_FOUND);
            calls.put(() -> estimator.evaluate(dataset, 1), Code.FAILED_PRECONDITION);
            calls.put(() -> Strategy.oneDevice("cpu:9999"), Code.NOT_FOUND);
            calls.put(() -> estimator.train(null), Code.INVALID_ARGUMENT);
            calls.put(() -> new Estimator(null), Code.INVALID_ARGUMENT);
            calls.put(() -> Hook.onStep(1, null), Code.INVALID_ARGUMENT);
            calls.put(() -> new Pipeline().map(1, null), Code.INVALID_ARGUMENT);
            calls.put(() -> Estimator.builder(Toy::model).options(wrong).build(), Code.INVALID_ARGUMENT);
            calls.put(one::toInts, Code.INVALID_ARGUMENT);
            calls.put(() -> Predictor.open("no/such"), Code.NOT_FOUND);
            calls.forEach((call, code) -> {
                TuttiException exception = Toy.failure(call);
                assertEquals(exception.toString(), code, exception.code());
                assertTrue(exception.domain(), List.of("tutti", "errno").contains(exception.domain()));
                assertFalse(exception.reason().isEmpty());
                assertTrue(exception.getMessage().startsWith(code + ": " + exception.reason()));
            });
            String text = Toy.failure(calls.keySet().iterator().next()).getMessage();
            assertTrue(text, text.contains("Größe"));
            String json = Toy.failure(calls.keySet().iterator().next()).json();
            assertTrue(json, json.startsWith("{\"code\":\"NOT_FOUND\",\"domain\":") && json.contains("Größe"));
            json = Toy.failure(() -> Toy.pipeline().mapGraph(1, g -> {
                throw new IllegalStateException("a \"b\"\n");
            }).build()).json();
            assertTrue(json, json.endsWith("IllegalStateException: a \\\"b\\\"\\u000a\"}}"));
        }
    }

    @Test
    public void nullsAreNamed() {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            Map<Callable<?>, String> calls = new LinkedHashMap<>();
            calls.put(() -> estimator.train(dataset, new TrainOptions().steps(1), (Hook) null), "a hook is null");
            calls.put(() -> new Feed(1, (Feed.Component) null), "each component");
            calls.put(() -> new Feed(1, new Feed.Component("x", null, DType.INT32)), "role=null");
            calls.put(() -> Tensor.scalar(DType.INT32, null), "\"value\" is null");
            calls.put(() -> Tensor.zeros(null), "\"dtype\" is null");
            calls.put(() -> Tensor.of((float[]) null), "\"data\" is null");
            calls.forEach((call, part) -> {
                try {
                    fail(part + ": " + call.call());
                } catch (TuttiException | NullPointerException exception) {
                    assertTrue(exception.getMessage(), exception.getMessage().contains(part));
                } catch (Exception exception) {
                    throw new AssertionError(exception);
                }
            });
        }
    }

    @Test
    public void causesAndDetailsOfErrorsOfGraphs() {
        ModelFunction model = (g, mode) -> g.scope("head", () -> g.loss(g.matmul(g.feature("x"), g.feature("x"))));
        try (Dataset dataset = Toy.dataset(); Estimator estimator = new Estimator(model)) {
            TuttiException exception = Toy.failure(() -> estimator.train(dataset));
            StringBuilder story = new StringBuilder();
            List<TuttiException.Detail> details = new ArrayList<>();
            for (Throwable at = exception; at != null; at = at.getCause()) {
                story.append(at.getMessage());
                details.addAll(((TuttiException) at).details());
                details.forEach(detail -> assertFalse(detail.key().isEmpty()));
            }
            assertTrue(story.toString(), story.toString().contains("head/"));
            assertFalse(details.isEmpty());
            assertNull(exception.detail("no such key").orElse(null));
        }
    }

    @Test
    public void modelFunctionFails() {
        try (Dataset dataset = Toy.dataset()) {
            comesBack(thrown -> {
                try (Estimator estimator = new Estimator((g, mode) -> raise(thrown))) {
                    return estimator.train(dataset);
                }
            });
        }
    }

    @Test
    public void hookFails() {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            comesBack(thrown -> estimator.train(dataset, Hook.onStep(1, event -> raise(thrown))));
            estimator.train(dataset, new TrainOptions().steps(2)); // and it is as good as before
        }
    }

    @Test
    public void graphFunctionsFail() {
        comesBack(thrown -> Toy.pipeline().mapGraph(1, g -> raise(thrown)).build());
        comesBack(thrown -> Toy.pipeline().filterGraph(g -> raise(thrown)).build());
    }

    @Test
    public void aGraphIsValidInItsFunctionOnly() throws Exception {
        Graph[] kept = new Graph[1];
        TuttiException[] elsewhere = new TuttiException[1];
        Toy.pipeline().mapGraph(1, g -> {
            kept[0] = g;
            Thread other = new Thread(() -> elsewhere[0] = Toy.failure(() -> g.feature("x")));
            other.start();
            other.join();
            g.output("x", g.feature("x"));
        }).build().close();
        assertEquals(Code.FAILED_PRECONDITION, elsewhere[0].code());
        assertTrue(Toy.failure(() -> kept[0].feature("x")) instanceof ClosedException);
    }

    private static Dataset fedBy(Feed feed) {
        return new Pipeline().addFeed(feed).build();
    }

    private static Feed feed() {
        return new Feed(2, new Feed.Component("x", Role.FEATURE, DType.FLOAT32));
    }

    @Test
    public void feedFails() {
        comesBack(thrown -> {
            try (Feed feed = feed(); Dataset dataset = fedBy(feed); DatasetIterator iterator = dataset.iterator(0)) {
                Thread thread = new Thread(() -> {
                    Throwable told = null;
                    try {
                        feed.pushAll(new Iterator<Tensor[]>() {
                            @Override
                            public boolean hasNext() {
                                ErrorsTest.<RuntimeException>raise(thrown);
                                return false;
                            }

                            @Override
                            public Tensor[] next() {
                                return null;
                            }
                        });
                    } catch (Throwable failure) {
                        told = failure;
                    }
                    assertSame(thrown, told);
                });
                thread.start();
                try {
                    return iterator.read();
                } finally {
                    thread.join();
                }
            }
        });
        comesBack(thrown -> {
            ModelFunction model = (g, mode) -> {
                g.loss(g.reduceMean(g.mul(g.feature("x"), g.variable("w", DType.FLOAT32))));
                g.optimizerSgd(g.scheduleConstant(1));
            };
            try (Feed feed = feed(); Dataset dataset = new Pipeline().addFeed(feed).batch(2).build();
                 Estimator estimator = new Estimator(model)) {
                feed.fail(thrown);
                return estimator.train(dataset);
            }
        });
    }

    @Test
    public void logSinkFails() {
        try (Context context = new Context(new ContextOptions().logicalDevices(1));
             Dataset dataset = Toy.pipeline(context).batch(8).build();
             Estimator estimator = Estimator.builder(Toy::model).context(context)
                 .options(new RunOptions().logStepCountSteps(1)).build()) {
            assertNull(context.logError());
            for (Throwable thrown : throwables()) {
                context.setLog(Severity.DEBUG, (severity, text) -> raise(thrown));
                estimator.train(dataset, new TrainOptions().steps(2));
                assertSame(thrown, context.logError());
            }
            List<String> lines = Collections.synchronizedList(new ArrayList<>());
            context.setLog(Severity.INFO, (severity, text) -> lines.add(severity + text));
            estimator.train(dataset, new TrainOptions().steps(2));
            assertTrue(lines.toString(), lines.stream().anyMatch(line -> line.startsWith("INFO")));
            assertNull(context.logError());
            context.setLog(Severity.INFO, null);
        }
    }

    @Test
    public void theDefaultLog() {
        List<String> lines = Collections.synchronizedList(new ArrayList<>());
        Context.setDefaultLog(Severity.DEBUG, (severity, text) -> lines.add(text));
        try (Dataset dataset = Toy.dataset();
             Estimator estimator = Estimator.builder(Toy::model)
                 .options(new RunOptions().logStepCountSteps(1)).build()) {
            estimator.train(dataset, new TrainOptions().steps(3));
            assertFalse(lines.isEmpty());
        } finally {
            Context.setDefaultLog(Severity.DEBUG, null);
        }
    }

    @Test
    public void trainingInsideAHookIsAnError() {
        try (Dataset dataset = Toy.dataset(); Estimator estimator = Toy.estimator()) {
            TuttiException[] inside = new TuttiException[1];
            estimator.train(dataset, new TrainOptions().steps(1), Hook.onStep(1, event ->
                inside[0] = Toy.failure(() -> estimator.train(dataset))));
            assertEquals(Code.FAILED_PRECONDITION, inside[0].code());
        }
    }

    @Test
    public void eventsTell() {
        List<EventKind> kinds = new ArrayList<>();
        Event[] kept = new Event[1];
        try (Dataset train = Toy.dataset(); Dataset test = Toy.testset(); Estimator estimator = Toy.estimator()) {
            estimator.trainAndEvaluate(train, test, 2, new TrainOptions().steps(4), Hook.onEvent(1, event -> {
                kinds.add(event.kind());
                if (event.kind() == EventKind.STEP) {
                    assertTrue(event.loss() > 0);
                    assertTrue(event.metric("accuracy") >= 0);
                    assertTrue(Double.isNaN(event.metric("nothing")));
                    assertNull(event.checkpoint());
                    kept[0] = event;
                }
            }));
        }
        assertEquals(EventKind.BEGIN, kinds.get(0));
        assertEquals(EventKind.END, kinds.get(kinds.size() - 1));
        assertEquals(4, Collections.frequency(kinds, EventKind.STEP));
        assertTrue(kinds.contains(EventKind.EVALUATED));
        assertEquals(4, kept[0].step());
        assertTrue(Double.isNaN(kept[0].metric("accuracy")));
        kept[0].stop();
    }
}
