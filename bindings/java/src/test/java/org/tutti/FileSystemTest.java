// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assume.assumeNotNull;

import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.Rule;
import org.junit.Test;

public class FileSystemTest {
    @Rule public Leaks leaks = new Leaks();

    private static List<String> lines(Context context, String path) {
        List<String> lines = new ArrayList<>();
        try (Dataset dataset = new Pipeline(context).textLines(new String[] {path}).build();
             DatasetIterator iterator = dataset.iterator(0)) {
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
        try (Context context = new Context(null)) {
            assertEquals(Code.NOT_FOUND, codeOf(() -> context.loadFileSystem("nothing", null)));
            Toy.failure(() -> lines(context, "letters://a"));
            assertEquals(Code.INVALID_ARGUMENT, codeOf(() -> context.loadFileSystem(letters, "{\"upper\": true}")));
            context.loadFileSystem(letters, null);
            assertEquals(Code.ALREADY_EXISTS, codeOf(() -> context.loadFileSystem(letters, null)));
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
        try (Context context = new Context(null)) {
            context.loadFileSystem(module, "{\"headers\": [\"X-Key: open\"]}");
            assertEquals(List.of("one", "two"), lines(context, url + "/lines.txt"));
            assertEquals(Code.NOT_FOUND, codeOf(() -> lines(context, url + "/none.txt")));
        } finally {
            server.stop(0);
        }
    }
}
