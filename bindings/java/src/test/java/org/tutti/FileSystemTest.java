// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;
import static org.junit.Assume.assumeNotNull;

import com.sun.net.httpserver.HttpServer;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;

public class FileSystemTest {
    @Rule public Leaks leaks = new Leaks();
    @Rule public TemporaryFolder folder = new TemporaryFolder();

    private static List<String> lines(Context context, String path) {
        try (Dataset dataset = new Pipeline(context).textLines(new String[] {path}).build()) {
            return lines(dataset);
        }
    }

    private static List<String> lines(Dataset dataset) {
        List<String> lines = new ArrayList<>();
        try (DatasetIterator iterator = dataset.iterator(0)) {
            for (Tensor[] element = iterator.read(); element != null; element = iterator.read()) {
                lines.addAll(List.of(element[0].toTexts()));
                Tensor.closeAll(element);
            }
        }
        return lines;
    }

    private static Code codeOf(Runnable call) {
        return Toy.failure(() -> {
            call.run();
            return null;
        }).code();
    }

    @Test
    public void fileSystemsOfModules() {
        String letters = System.getenv("TUTTI_LETTERS_MODULE");
        assumeNotNull(letters);
        try (Context context = new Context()) {
            assertEquals(Code.NOT_FOUND, codeOf(() -> context.loadFileSystem("nothing")));
            Toy.failure(() -> lines(context, "letters://a"));
            assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> context.loadFileSystem(letters, "{\"upper\": true}")));
            context.loadFileSystem(letters);
            assertEquals(Code.ALREADY_EXISTS, codeOf(() -> context.loadFileSystem(letters)));
            assertEquals(List.of("a", "größe", "c"), lines(context, "letters://a,größe,c"));
            assertEquals(Code.NOT_FOUND, codeOf(() -> lines(context, "letters://")));
        }
    }

    @Test
    public void filesOverHttp() throws Exception {
        String module = System.getenv("TUTTI_HTTP_MODULE");
        assumeNotNull(module);
        byte[] body = "one\ntwo\n".getBytes(StandardCharsets.UTF_8);
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            boolean isThere = exchange.getRequestURI().getPath().equals("/lines.txt")
                && "open".equals(exchange.getRequestHeaders().getFirst("X-Key"));
            exchange.sendResponseHeaders(isThere ? 200 : 404, isThere ? body.length : -1);
            if (isThere && !exchange.getRequestMethod().equals("HEAD")) {
                exchange.getResponseBody().write(body);
            }
            exchange.close();
        });
        server.start();
        String url = "http://127.0.0.1:" + server.getAddress().getPort();
        try (Context context = new Context()) {
            context.loadFileSystem(module, "{\"headers\": [\"X-Key: open\"]}");
            assertEquals(List.of("one", "two"), lines(context, url + "/lines.txt"));
            assertEquals(Code.NOT_FOUND, codeOf(() -> lines(context, url + "/none.txt")));
        } finally {
            server.stop(0);
        }
    }

    /** A channel that gives no more than seven bytes at a time. */
    private static SeekableByteChannel slowly(Path path) throws Exception {
        SeekableByteChannel channel = Files.newByteChannel(path);
        return (SeekableByteChannel) Proxy.newProxyInstance(FileSystemTest.class.getClassLoader(),
            new Class<?>[] {SeekableByteChannel.class}, (proxy, method, arguments) -> {
                if (method.getName().equals("read")) {
                    ByteBuffer target = (ByteBuffer) arguments[0];
                    target.limit(Math.min(target.limit(), target.position() + 7));
                }
                return method.invoke(channel, arguments);
            });
    }

    private FileSource files() throws Exception {
        Files.writeString(folder.newFile("one.txt").toPath(), "a\nb\n");
        Files.writeString(folder.newFile("größe.txt").toPath(), "c\n");
        folder.newFolder("more");
        return new FileSource() {
            private Path at(String path) {
                return folder.getRoot().toPath().resolve(path.substring("java://".length()));
            }

            @Override
            public SeekableByteChannel open(String path) throws Exception {
                return slowly(at(path));
            }

            @Override
            public List<String> list(String directory) throws Exception {
                try (Stream<Path> paths = Files.list(at(directory))) {
                    return paths.map(p -> p.getFileName() + (Files.isDirectory(p) ? "/" : "")).toList();
                }
            }
        };
    }

    @Test
    public void fileSystemsInJava() throws Exception {
        try (Context context = new Context()) {
            context.addFileSystem("java", files());
            assertEquals(List.of("a", "b"), lines(context, "java://one.txt"));
            assertEquals(List.of("c", "a", "b"), lines(context, "java://*.txt"));
            assertEquals(Code.ALREADY_EXISTS, codeOf(() -> context.addFileSystem("java", path -> null)));
            assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> context.addFileSystem("Big Letters", path -> null)));
            assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> context.addFileSystem("other", null)));
            TuttiException missing = Toy.failure(() -> lines(context, "java://none.txt"));
            assertEquals(Code.NOT_FOUND, missing.code());
            Throwable cause = missing;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            assertTrue(cause.toString(), cause instanceof NoSuchFileException);
            context.addFileSystem("nothing", path -> null);
            assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> lines(context, "nothing://x")));
            assertEquals(Code.UNIMPLEMENTED, codeOf(() -> lines(context, "nothing://*")));
        }
    }

    /** A file system of one file, whose version is given. */
    private static final class OneFile implements FileSource {
        private final Path file;
        private final Callable<String> version;

        OneFile(Path file, Callable<String> version) {
            this.file = file;
            this.version = version;
        }

        @Override
        public SeekableByteChannel open(String path) throws Exception {
            return Files.newByteChannel(file);
        }

        @Override
        public String version(String path, SeekableByteChannel channel) throws Exception {
            assertEquals("java://n.txt", path);
            assertTrue(channel.isOpen());
            return version.call();
        }
    }

    /** The lines of the file, which has this content now, through a cache in a file. */
    private String cached(String content, Callable<String> version) throws Exception {
        Path file = folder.getRoot().toPath().resolve("n.txt");
        Path cache = folder.getRoot().toPath().resolve("lines.cache");
        Files.writeString(file, content);
        try (Context context = new Context()) {
            context.addFileSystem("java", new OneFile(file, version));
            try (Dataset dataset = new Pipeline(context).textLines(new String[] {"java://n.txt"})
                     .cache(new CacheOptions().path(cache.toString())).build()) {
                return String.join(" ", lines(dataset));
            }
        }
    }

    @Test
    public void cachesFollowVersionsOfFiles() throws Exception {
        assertEquals("one two", cached("one\ntwo\n", () -> "1"));
        assertEquals("one two", cached("six\nten\n", () -> "1"));
        assertEquals("six ten", cached("six\nten\n", () -> "2"));
        for (String unknown : new String[] {null, ""}) {
            TuttiException exception = Toy.failure(() -> cached("one\n", () -> unknown));
            assertEquals(Code.INVALID_ARGUMENT, exception.code());
            assertTrue(exception.toString(), exception.getCause().getMessage().contains("'key'"));
        }
        for (Throwable thrown : ErrorsTest.throwables()) {
            TuttiException exception = Toy.failure(() -> cached("one\n", () -> {
                ErrorsTest.<RuntimeException>raise(thrown);
                return null;
            }));
            assertTrue(thrown.getClass() + " is lost", Toy.isCausedBy(exception, thrown));
        }
    }

    @Test
    public void anInterruptEndsTheOpeningOfFiles() throws Exception {
        FileSource files = files();
        Thread here = Thread.currentThread();
        try (Context context = new Context()) {
            context.addFileSystem("java", path -> {
                here.interrupt();
                return files.open(path);
            });
            String[] both = {"java://one.txt", "java://größe.txt"};
            for (int i = 0; i < 2; i++) { // while files are opened, and before
                TuttiException exception = Toy.failure(() -> new Pipeline(context).textLines(both).build());
                assertEquals(Code.CANCELLED, exception.code());
            }
            assertTrue("the status is set", Thread.interrupted());
        }
    }

    @Test
    public void fileSystemsFail() {
        for (Throwable thrown : ErrorsTest.throwables()) {
            try (Context context = new Context()) {
                context.addFileSystem("bad", path -> {
                    ErrorsTest.<RuntimeException>raise(thrown);
                    return null;
                });
                TuttiException exception = Toy.failure(() -> lines(context, "bad://x"));
                assertTrue(thrown.getClass() + " is lost", Toy.isCausedBy(exception, thrown));
            }
        }
    }
}
