// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.NoSuchFileException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** The threads of a file system of the program, and its open files by number. */
final class FileCalls extends CallThreads {
    /** The most that one read gives. */
    private static final int PART = 1 << 20;
    private static final ThreadLocal<ByteBuffer> scratch =
        ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(PART));

    private final FileSource source;
    private final Map<Long, SeekableByteChannel> files = new ConcurrentHashMap<>();
    private final AtomicLong lastFile = new AtomicLong();

    /** Takes the reference of the queue. */
    FileCalls(long queue, FileSource source) {
        super(queue);
        this.source = source;
    }

    @Override
    void serve(long call) {
        long file = 0;
        long number = 0;
        String version = null;
        Throwable error = null;
        try {
            standBy();
            switch (Raw.file_call_get_kind(call)) {
                case Raw.FILE_OPEN -> {
                    String path = Raw.file_call_get_path(call);
                    SeekableByteChannel channel = source.open(path);
                    if (channel == null) {
                        throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the file system gives null for a file");
                    }
                    file = lastFile.incrementAndGet();
                    files.put(file, channel);
                    number = channel.size();
                    version = source.version(path, channel);
                }
                case Raw.FILE_READ -> number = read(call, files.get(Raw.file_call_get_file(call)));
                case Raw.FILE_CLOSE -> files.remove(Raw.file_call_get_file(call)).close();
                default -> list(call);
            }
        } catch (Throwable thrown) {
            error = thrown;
        }
        finish(call, file, number, version, error);
    }

    /** By a copy, for the channel is the program's and may keep the buffer; fewer bytes than wanted are fine. */
    private static long read(long call, SeekableByteChannel channel) throws IOException {
        ByteBuffer copy = scratch.get().clear().limit((int) Math.min(PART, Raw.file_call_get_size(call)));
        synchronized (channel) {
            channel.position(Raw.file_call_get_offset(call));
            channel.read(copy);
        }
        Raw.java_buffer(Raw.file_call_get_target(call), copy.position()).put(copy.flip());
        return copy.limit();
    }

    private void list(long call) throws Exception {
        List<String> names = source.list(Raw.file_call_get_path(call));
        if (names == null) {
            throw TuttiException.ofTutti(Code.UNIMPLEMENTED, "the file system lists no directories");
        }
        for (String name : names) {
            Raw.file_call_add_name(call, name);
        }
    }

    private void finish(long call, long file, long number, String version, Throwable error) {
        if (error == null) {
            Raw.file_call_finish(queue, call, file, number, version, Raw.OK, 0);
            return;
        }
        SeekableByteChannel opened = files.remove(file);
        if (opened != null) {
            close(opened, error);
        }
        boolean isMissing = error instanceof NoSuchFileException || error instanceof FileNotFoundException;
        Code code = isMissing ? Code.NOT_FOUND : ThrownErrors.codeOf(error);
        Raw.file_call_finish(queue, call, 0, 0, null, code.number(), ThrownErrors.toC(code, error));
    }

    private static void close(SeekableByteChannel channel, Throwable error) {
        try {
            channel.close();
        } catch (IOException second) {
            error.addSuppressed(second);
        }
    }
}
