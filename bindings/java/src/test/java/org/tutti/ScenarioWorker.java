// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** A program that does the scenarios of a file as one of several processes, and prints them with their results. */
final class ScenarioWorker {
    private ScenarioWorker() {}

    /** What happens to one worker at a step of its training; the file workers.txt says what there is. */
    record Fault(long worker, long step, String what) {
        static Fault of(String[] words) {
            return new Fault(Long.parseLong(words[1]), Long.parseLong(words[2]), words[3]);
        }

        void happen(Event event, Strategy strategy) throws Exception {
            if (event.step() != step || strategy.workerIndex() != worker) {
                return;
            }
            if (what.equals("kill")) {
                // A shell's own: a bare system has no program of that name.
                new ProcessBuilder("sh", "-c", "kill -9 " + ProcessHandle.current().pid()).start();
            }
            if (!what.equals("fail")) {
                Thread.sleep(100_000);
            }
            throw new TuttiException(Code.DATA_LOSS, "the hook is broken");
        }
    }

    /** Does the scenarios of a file.
     *
     * @param arguments the path of the file
     */
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        try (Scenario scenario = new Scenario(out::println, () -> Files.createTempDirectory("scenario").toString())) {
            scenario.run(Files.readAllLines(Path.of(arguments[0])));
        }
        if (!Leaks.collectUntil(() -> Tutti.liveObjects() == 0)) {
            throw new IllegalStateException("objects are left: " + Tutti.liveObjects());
        }
    }
}
