// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assume.assumeNotNull;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

/** Does what the scenarios say, and compares what it gives. */
public class ScenarioTest {
    @Rule public Leaks leaks = new Leaks();
    @Rule public TemporaryFolder folder = new TemporaryFolder();

    @Test
    public void scenariosAreThoseOfC() throws Exception {
        String paths = System.getenv("TUTTI_SCENARIOS");
        assumeNotNull(paths);
        for (String path : paths.split(File.pathSeparator)) {
            compare(Files.readAllLines(Path.of(path)));
        }
    }

    private void compare(List<String> wanted) throws Exception {
        List<String> lines = new ArrayList<>();
        try (Scenario scenario = new Scenario(lines::add, () -> folder.newFolder().getPath())) {
            scenario.run(wanted);
        }
        assertEquals(String.join("\n", wanted), String.join("\n", lines));
    }
}
