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
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.ServiceLoader;
import java.util.zip.ZipFile;

/**
 * Finds and loads the native library: from the folder or file of the system property tutti.library.path, from
 * java.library.path, from the natives jar. The first that is there is taken; what else was tried is in the error.
 */
final class NativeLibrary {
    static final String PROPERTY = "tutti.library.path";
    static final String UNPACK_PROPERTY = "tutti.unpack.path";
    private static final String NAME = "tuttijni";
    private static final String BESIDE = "beside ";

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

    /** Jars of plug-ins for this machine, which have nothing to load, are unpacked together with the jar that has. */
    private static boolean fromJar(List<String> tried) {
        List<NativeFiles> libraries = new ArrayList<>();
        List<NativeFiles> plugins = new ArrayList<>();
        for (NativeFiles files : ServiceLoader.load(NativeFiles.class, NativeLibrary.class.getClassLoader())) {
            if (files.platform().equals(platform())) {
                (isOfPlugins(files) ? plugins : libraries).add(files);
            }
        }
        for (NativeFiles library : libraries) {
            List<NativeFiles> jars = new ArrayList<>(List.of(library));
            jars.addAll(plugins);
            for (Path folder : foldersToUnpackIn()) {
                if (loadAll(jars, folder, tried)) {
                    return true;
                }
            }
        }
        if (libraries.isEmpty()) {
            tried.add("no jar of natives for " + platform() + " on the class path or module path");
        }
        addUnreadableJars(tried);
        return false;
    }

    /** A jar that cannot be read is not one of them: that is told when it is unpacked. */
    private static boolean isOfPlugins(NativeFiles files) {
        try {
            return Arrays.stream(lines(files)).allMatch(line -> line.startsWith(BESIDE));
        } catch (IOException unreadable) {
            return false;
        }
    }

    /** What a jar of natives may be that was copied in part: the Java machine passes over it without a word. */
    private static void addUnreadableJars(List<String> tried) {
        for (String entry : System.getProperty("java.class.path", "").split(File.pathSeparator)) {
            File file = new File(entry);
            if (!entry.endsWith(".jar") || !file.isFile()) {
                continue;
            }
            try {
                new ZipFile(file).close();
            } catch (IOException error) {
                tried.add(file + " on the class path cannot be read: " + error.getMessage());
            }
        }
    }

    /** The folder that the program names, alone; else that for temporary files and, as a system may forbid to run code
     * there, the user's cache. */
    private static List<Path> foldersToUnpackIn() {
        String named = System.getProperty(UNPACK_PROPERTY, "");
        if (!named.isEmpty()) {
            return List.of(Path.of(named));
        }
        List<Path> folders = new ArrayList<>(List.of(Path.of(System.getProperty("java.io.tmpdir"))));
        String cache = System.getenv("XDG_CACHE_HOME");
        if (cache != null && cache.startsWith("/")) {
            folders.add(Path.of(cache, "tutti"));
        } else if (System.getProperty("user.home", "").startsWith("/")) {
            folders.add(Path.of(System.getProperty("user.home"), ".cache", "tutti"));
        }
        return folders;
    }

    /** The jar lists its files in the order in which they are to be loaded. They are needed only until then, but for
     * plug-ins, which the library opens when it needs them, and what lies beside them. */
    private static boolean loadAll(List<NativeFiles> jars, Path folder, List<String> tried) {
        List<Path> written = new ArrayList<>();
        boolean keeps = false;
        try {
            Files.createDirectories(folder);
            Path into = Files.createTempDirectory(folder, "tutti-natives-");
            written.add(into);
            List<Path> loaded = new ArrayList<>();
            for (NativeFiles files : jars) {
                keeps |= unpack(files, into, written, loaded);
            }
            for (Path file : loaded) {
                System.load(file.toString());
            }
            return true;
        } catch (IOException | UnsatisfiedLinkError error) {
            keeps = false;
            tried.add("the jar of natives, unpacked in " + folder + ": " + error.getMessage());
            return false;
        } finally {
            remove(written, keeps);
        }
    }

    /** Adds what it writes, and what of that is to be loaded. Whether there are plug-ins among it. */
    private static boolean unpack(NativeFiles files, Path into, List<Path> written, List<Path> loaded)
        throws IOException {
        boolean hasPlugins = false;
        for (String line : lines(files)) {
            boolean isLoaded = !line.startsWith(BESIDE);
            String name = isLoaded ? line : line.substring(BESIDE.length());
            Path file = into.resolve(name);
            written.add(file);
            extract(files, name, file);
            if (isLoaded) {
                loaded.add(file);
            }
            hasPlugins |= name.startsWith("tutti-");
        }
        return hasPlugins;
    }

    /** The folder comes first. */
    private static void remove(List<Path> written, boolean atTheEnd) {
        if (atTheEnd) {
            written.forEach(path -> path.toFile().deleteOnExit()); // which goes backwards
            return;
        }
        for (int i = written.size() - 1; i >= 0; i--) {
            written.get(i).toFile().delete();
        }
    }

    private static String[] lines(NativeFiles files) throws IOException {
        try (InputStream list = open(files, "files.txt")) {
            return new String(list.readAllBytes(), StandardCharsets.UTF_8).split("\n");
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
        } catch (IOException error) {
            throw new IOException(name + ": " + error.getMessage(), error);
        }
    }
}
