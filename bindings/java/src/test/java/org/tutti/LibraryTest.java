// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeTrue;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.Test;

public class LibraryTest {
    /** A program that says the library's version. */
    static final class Says {
        public static void main(String[] arguments) {
            System.out.println("version " + Tutti.version());
        }
    }

    @Test
    public void aMissingLibraryIsNamed() throws Exception {
        String output = StressTest.child(1, List.of("-Djava.library.path=/nowhere"), Says.class);
        assertTrue(output, output.contains("the native library was not found"));
        assertTrue(output, output.contains(NativeLibrary.PROPERTY));
    }

    @Test
    public void thePropertyNamesAFolderOrAFile() throws Exception {
        String folder = System.getProperty("java.library.path");
        for (String path : List.of(folder, folder + File.separator + System.mapLibraryName("tuttijni"))) {
            String output = StressTest.child(0,
                List.of("-Djava.library.path=/nowhere", "-D" + NativeLibrary.PROPERTY + "=" + path), Says.class);
            assertTrue(output, output.trim().endsWith("version " + Tutti.version())); // behind what Java may warn of
        }
    }

    @Test
    public void anotherInterfaceIsRefused() {
        int abi = Raw.abi_version();
        NativeLibrary.check(abi, "1");
        NativeLibrary.check(abi + 1, "a later one");
        for (int other : new int[] {abi - 1, abi + (1 << 16)}) {
            try {
                NativeLibrary.check(other, "another");
            } catch (UnsatisfiedLinkError error) {
                assertTrue(error.getMessage(), error.getMessage().contains("does not fit"));
                continue;
            }
            throw new AssertionError(other);
        }
    }

    @Test
    public void theReadmeShowsHello() throws Exception {
        Path readme = Path.of(System.getProperty("tutti.test.readme"));
        Path hello = Path.of(System.getProperty("tutti.test.examples"), "Hello.java");
        assumeTrue(Files.exists(hello));
        String text = Files.readString(readme);
        String program = text.substring(text.indexOf("```java\n") + 8);
        program = program.substring(0, program.indexOf("```"));
        assertTrue(program.length() > 500);
        assertTrue("README.md and Hello.java are not the same program", Files.readString(hello).endsWith(program));
    }
}
