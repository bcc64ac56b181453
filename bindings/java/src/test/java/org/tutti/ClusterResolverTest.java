// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.util.List;
import org.junit.Rule;
import org.junit.Test;

public class ClusterResolverTest {
    @Rule public Leaks leaks = new Leaks();

    @Test
    public void sources() {
        try (ClusterResolver list = ClusterResolver.of(List.of("a:2222", "b:2223"), 1);
             ClusterResolver config = ClusterResolver.ofTfConfig(
                 "{\"cluster\": {\"worker\": [\"c:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}");
             ClusterResolver tpu = ClusterResolver.ofTpu("mine", "ACCELERATOR_TYPE: 'v5litepod-4'")) {
            assertEquals(2, list.workerCount());
            assertEquals(1, list.workerIndex());
            assertEquals("a:2222", list.address(0));
            assertEquals("c:1", config.address(0));
            assertTrue(tpu.toJson(), tpu.toJson().contains("\"accelerator_type\":\"v5litepod-4\""));
        }
        assertEquals(Code.NOT_FOUND, Toy.failure(ClusterResolver::fromEnvironment).code());
        assertEquals(Code.NOT_FOUND, Toy.failure(() -> ClusterResolver.fromEnvironment("Slurm")).code());
        assertEquals(Code.INVALID_ARGUMENT, Toy.failure(() -> ClusterResolver.ofTpu("mine")).code());
    }

    private static TuttiException refused(Code code, String text, Runnable call) {
        TuttiException failure = Toy.failure(() -> {
            call.run();
            return null;
        });
        assertEquals(code, failure.code());
        assertTrue(failure.getMessage(), failure.getMessage().contains(text));
        return failure;
    }

    /** Without a TPU the calls say what to do first, and what there is instead. */
    @Test
    public void tpuIsNotThere() {
        try (ClusterResolver resolver = ClusterResolver.ofTpu("local");
             Context context = new Context(new ContextOptions().logicalDevices(2).backend("reference"))) {
            refused(Code.FAILED_PRECONDITION, "connect first", () -> Strategy.tpu(resolver));
            resolver.connect();
            refused(Code.UNAVAILABLE, "the default context has",
                () -> resolver.initialize(new ContextOptions()));
            refused(Code.UNAVAILABLE, "TPU", () -> resolver.initializeFromEnvironment(new ContextOptions()));
            refused(Code.FAILED_PRECONDITION, "initialize first", () -> Strategy.tpu(resolver));
            try {
                resolver.context();
                throw new AssertionError("there is no context yet");
            } catch (IllegalStateException expected) {
                assertTrue(expected.getMessage().contains("not initialized"));
            }
            try (Strategy workers = Strategy.multiWorker(context, resolver, new ClusterOptions());
                 Strategy all = Strategy.multiWorker(resolver)) {
                assertEquals(2, workers.replicaCount());
                assertEquals(1, all.workerCount());
            }
        }
    }
}
