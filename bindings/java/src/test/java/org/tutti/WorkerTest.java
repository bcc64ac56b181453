// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import java.nio.file.Path;
import org.junit.Rule;
import org.junit.Test;

/** Maps in worker processes, which are programs of Java. */
public class WorkerTest {
    @Rule public Leaks leaks = new Leaks();

    /** The worker. */
    public static void main(String[] arguments) {
        Worker.serveMap(element -> {
            long number = element[0].toLongs()[0];
            System.out.println("element " + number);
            if (number == 3) {
                throw new IllegalStateException("three is not allowed");
            }
            return new Tensor[] {Tensor.scalar(DType.FLOAT64, number / 2.0)};
        });
    }

    private static String[] command() {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        return new String[] {java, "-Xmx64m", "-Djava.library.path=" + System.getProperty("java.library.path"), "-cp",
            System.getProperty("java.class.path"), "org.tutti.WorkerTest"};
    }

    @Test
    public void mapsInProcesses() {
        try (Tensor half = Tensor.scalar(DType.FLOAT64, 0.5);
             Dataset like = new Pipeline().addTensor("half", Role.FEATURE, half).build();
             Dataset dataset = new Pipeline().addSlices("n", Role.FEATURE, Toy.count(6))
                 .mapProcess(command(), new MapProcessOptions().processes(2).like(like)).build();
             DatasetIterator iterator = dataset.iterator(0)) {
            for (int i = 0; i < 6; i++) {
                if (i == 3) {
                    TuttiException error = assertThrows(TuttiException.class, iterator::next);
                    assertTrue(error.toString(), error.getMessage().contains("failed for element 3 of epoch 0"));
                    assertTrue(error.toString(), error.getCause().getMessage().contains("three is not allowed"));
                    continue;
                }
                Tensor[] element = iterator.next();
                assertEquals(i / 2.0, element[0].toDoubles()[0], 0);
                Tensor.closeAll(element);
            }
        }
        assertThrows(TuttiException.class, () -> Worker.serveMap(null));
    }
}
