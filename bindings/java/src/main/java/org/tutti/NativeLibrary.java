// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.ServiceLoader;

/**
 * Finds and loads the native library: from the folder or file of the system property tutti.library.path, from
 * java.library.path, from the natives jar. The first that is there is taken; what else was tried is in the error.
 */
final class NativeLibrary {
    static final String PROPERTY = "tutti.library.path";
    private static final String NAME = "tuttijni";

    private NativeLibrary() {}

    /** Called once, when the raw layer is first used. */
    static void load() {
        List<String> tried = new ArrayList<>();
        if (!fromProperty(tried) && !fromLibraryPath(tried) && !fromJar(tried)) {
            throw new UnsatisfiedLinkError("tutti: the native library was not found. Install it, or name its folder by "
                + "-D" + PROPERTY + "=FOLDER, or add the jar of natives to the class path or module path. Tried: "
                + String.join("; ", tried));
        }
        check(Raw.abi_version(), Raw.version());
    }

    /** The library's interface must be that of this jar, or a later one of the same major number. */
    static void check(int abi, String version) {
        if (abi >> 16 != Raw.ABI_MAJOR || (abi & 0xffff) < Raw.ABI_MINOR) {
            throw new UnsatisfiedLinkError("tutti: the library " + version + " (interface " + (abi >> 16) + "."
                + (abi & 0xffff) + ") does not fit this jar, which needs interface " + Raw.ABI_MAJOR + "."
                + Raw.ABI_MINOR + "; install both of the same version");
        }
    }

    private static boolean fromProperty(List<String> tried) {
        String value = System.getProperty(PROPERTY);
        if (value == null || value.isEmpty()) {
            tried.add(PROPERTY + " is not set");
            return false;
        }
        File path = new File(value).getAbsoluteFile();
        File file = path.isDirectory() ? new File(path, System.mapLibraryName(NAME)) : path;
        if (!file.exists()) {
            tried.add(PROPERTY + ": no " + file);
            return false;
        }
        System.load(file.getPath());
        return true;
    }

    private static boolean fromLibraryPath(List<String> tried) {
        try {
            System.loadLibrary(NAME);
            return true;
        } catch (UnsatisfiedLinkError error) {
            tried.add(error.getMessage());
            return false;
        }
    }

    /** The folder of this machine's natives, such as linux-x86_64. */
    static String platform() {
        String machine = System.getProperty("os.arch").equals("amd64") ? "x86_64" : System.getProperty("os.arch");
        return System.getProperty("os.name").toLowerCase(Locale.ROOT).replace(' ', '_') + "-" + machine;
    }

    private static boolean fromJar(List<String> tried) {
        for (NativeFiles files : ServiceLoader.load(NativeFiles.class, NativeLibrary.class.getClassLoader())) {
            if (files.platform().equals(platform()) && loadAll(files, tried)) {
                return true;
            }
        }
        tried.add("no jar of natives for " + platform() + " on the class path or module path");
        return false;
    }

    /** The jar lists its files in the order in which they are to be loaded; they are needed only until then. */
    private static boolean loadAll(NativeFiles files, List<String> tried) {
        try {
            Path into = Files.createTempDirectory("tutti-natives-");
            List<Path> written = new ArrayList<>();
            try (InputStream list = open(files, "files.txt")) {
                for (String name : new String(list.readAllBytes(), StandardCharsets.UTF_8).split("\n")) {
                    Path file = into.resolve(name);
                    written.add(file);
                    extract(files, name, file);
                    System.load(file.toString());
                }
            } finally {
                for (Path file : written) {
                    Files.deleteIfExists(file);
                }
                Files.deleteIfExists(into);
            }
            return true;
        } catch (IOException error) {
            tried.add("the jar of natives: " + error);
            return false;
        }
    }

    private static InputStream open(NativeFiles files, String name) throws IOException {
        InputStream in = files.open(name);
        if (in == null) {
            throw new IOException("the jar of natives lacks " + name);
        }
        return in;
    }

    private static void extract(NativeFiles files, String name, Path file) throws IOException {
        try (InputStream in = open(files, name)) {
            Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
        }
    }
}
