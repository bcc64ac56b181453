// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongFunction;

/**
 * Owns devices, threads, memory budgets and the log sink. Objects of different contexts must not be mixed. Where none
 * is named, objects belong to the default context, which is made on first use. Its devices are the machine's GPUs,
 * "cuda:0", "cuda:1", ..., where a backend for them is installed and can be used, else every processor core, "cpu:0",
 * "cpu:1", ...
 */
public final class Context extends NativeObject {
    private volatile @Nullable Log log;

    /** A context with the devices that the default context has. */
    public Context() {
        this(new ContextOptions());
    }

    /** A context.
     *
     * @param options what it has
     */
    public Context(ContextOptions options) {
        this(create(options));
    }

    private Context(long number) {
        super(new Handle("Context", number, Raw::context_unref));
    }

    /** A context that the library lends. */
    static Context share(long number) {
        Raw.context_ref(number);
        return new Context(number);
    }

    private static long create(ContextOptions options) {
        try (Options.Native o = new Options.Native(options)) {
            long[] out = new long[1];
            long[] failure = new long[1];
            TuttiException.check(Raw.context_create(o.number, out, failure), failure);
            return out[0];
        }
    }

    /** Sends the log to a function, in place of the one before.
     *
     * @param minimum from which severity on
     * @param sink the function; null = nowhere
     */
    public void setLog(Severity minimum, @Nullable LogSink sink) {
        try (Use use = new Use()) {
            log = setLog(use.of(this), minimum, sink);
        }
    }

    /** Sends the log of the default context to a function. What the function throws is lost.
     *
     * @param minimum from which severity on
     * @param sink the function; null = nowhere
     */
    public static void setDefaultLog(Severity minimum, @Nullable LogSink sink) {
        setLog(0, minimum, sink);
    }

    private static Log setLog(long number, Severity minimum, @Nullable LogSink sink) {
        Log log = new Log(sink);
        long[] failure = new long[1];
        long token = sink == null ? 0 : Callbacks.keep(log);
        int code = Raw.context_set_log(number, token, minimum.number(), failure);
        Callbacks.reap();
        TuttiException.check(code, failure);
        return log;
    }

    /** Records what trainings, evaluations and predictions of the context do, from their next step or batch on, until
     * {@link #stopProfile}: each kernel with its time on the device, the steps, and what they wait for.
     */
    public void startProfile() {
        startProfile("");
    }

    /** The same, with a trace for Perfetto or TensorBoard.
     *
     * @param trace the file that a trace for Perfetto is written to, or a directory that is there, whose profiles
     *              TensorBoard shows
     */
    public void startProfile(Path trace) {
        startProfile(PathText.of(trace));
    }

    private void startProfile(String path) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.context_start_profile(use.of(this), path, failure), failure);
        }
    }

    /** Ends the profile.
     *
     * @return how busy devices were, what steps waited for and what layers cost
     */
    public Profile stopProfile() {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            String text = Raw.context_stop_profile(use.of(this), failure);
            if (failure[0] != 0) {
                TuttiException.check(Raw.error_get_code(failure[0]), failure);
            }
            return Profile.of(text);
        }
    }

    /** Adds the file systems of a shared module with its default settings.
     *
     * @param module "http", or the absolute path of a module
     */
    public void loadFileSystem(String module) {
        loadFileSystem(module, "{}");
    }

    /** Adds the file systems of a shared module, whose paths the sources then read.
     *
     * @param module "http", or the absolute path of a module
     * @param settings a JSON object in the module's own words
     */
    public void loadFileSystem(String module, String settings) {
        try (Use use = new Use()) {
            long[] failure = new long[1];
            TuttiException.check(Raw.context_load_file_system(use.of(this), module, settings, failure), failure);
        }
    }

    /** Adds a file system of the program: sources then find files whose paths have its scheme, such as
     * {@code store://bucket/part-1.csv}. It is held until the context, and all that was made with it, is closed.
     *
     * @param scheme small letters, digits, "+", "-" and "."; "store" for {@code store://}
     * @param source its files
     */
    public void addFileSystem(String scheme, FileSource source) {
        if (source == null) {
            throw TuttiException.ofTutti(Code.INVALID_ARGUMENT, "the file system is null");
        }
        try (Use use = new Use()) {
            long[] failure = new long[1];
            long queue = Raw.context_add_file_system(use.of(this), scheme, true, failure);
            if (queue == 0) {
                throw TuttiException.take(Raw.error_get_code(failure[0]), failure[0]);
            }
            new FileCalls(queue, source).start();
        }
    }

    /** What the function of {@link #setLog} threw first.
     *
     * @return that same object; null when it threw nothing
     */
    public @Nullable Throwable logError() {
        Log present = log;
        return present == null ? null : present.error;
    }

    @Override
    String details() {
        return " of " + devices();
    }

    /** The names of the devices, such as "cpu:0".
     *
     * @return all names
     */
    public List<String> devices() {
        return texts(number -> index -> Raw.context_get_device_name(number, index));
    }

    /** What the devices are. The first call loads the libraries that they use.
     *
     * @return a description of each
     */
    public List<DeviceDescription> describeDevices() {
        List<String> all = texts(number -> index -> Raw.context_describe_device(number, index));
        return all.stream().map(DeviceDescription::of).toList();
    }

    private List<String> texts(LongFunction<LongFunction<String>> get) {
        try (Use use = new Use()) {
            long number = use.of(this);
            List<String> texts = new ArrayList<>();
            for (long i = 0; i < Raw.context_get_device_count(number); i++) {
                texts.add(get.apply(number).apply(i));
            }
            return texts;
        }
    }

    /** A sink, and what went wrong in it. */
    static final class Log {
        private final @Nullable LogSink sink;
        private volatile @Nullable Throwable error;

        private Log(@Nullable LogSink sink) {
            this.sink = sink;
        }

        /** Called one at a time. */
        void write(Severity severity, String text) {
            try {
                sink.log(severity, text);
            } catch (Throwable thrown) {
                if (error == null) {
                    error = thrown;
                }
            }
        }
    }
}
