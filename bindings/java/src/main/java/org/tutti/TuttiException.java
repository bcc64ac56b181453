// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * An error of the library. Its causes are further errors of the library or, at the end, what a callback threw: that
 * same object.
 */
public class TuttiException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** One thing that an error tells beside its message, such as ("node", "dense_1/matmul").
     *
     * @param key what it is about
     * @param value what it is
     */
    public record Detail(String key, String value) {}

    /** What kind of error it is. */
    private final Code code;
    /** A number of the domain's own. */
    private final long subcode;
    /** Who reports. */
    private final String domain;
    /** The message alone. */
    private final String reason;
    /** Keys and values of the details in turn. */
    private final String[] details;

    /** An error, for callbacks that report one with a code of their choice.
     *
     * @param code what kind of error it is
     * @param reason one line that says what was wrong
     */
    public TuttiException(Code code, String reason) {
        this(code, 0, "user", reason, List.of());
    }

    /** An error of the package itself. */
    static TuttiException ofTutti(Code code, String reason) {
        return new TuttiException(code, 0, "tutti", reason, List.of());
    }

    TuttiException(Code code, long subcode, String domain, String reason, List<Detail> details) {
        super(text(code, reason, details));
        this.code = code;
        this.subcode = subcode;
        this.domain = domain;
        this.reason = reason;
        this.details = details.stream().flatMap(d -> Stream.of(d.key(), d.value())).toArray(String[]::new);
    }

    /** Sets the cause unless it is null, when a later one may still be set. */
    private TuttiException causedBy(Throwable cause) {
        if (cause != null) {
            initCause(cause);
        }
        return this;
    }

    private static String text(Code code, String reason, List<Detail> details) {
        StringBuilder text = new StringBuilder(code + ": " + reason);
        for (Detail detail : details) {
            text.append(" [").append(detail.key()).append(": ").append(detail.value()).append("]");
        }
        return text.toString();
    }

    /** What kind of error it is.
     *
     * @return the code
     */
    public Code code() {
        return code;
    }

    /** A number that means something in the error's domain, such as an errno.
     *
     * @return the number; 0 = none
     */
    public long subcode() {
        return subcode;
    }

    /** Who reports.
     *
     * @return "tutti", "user" for callbacks, or a library
     */
    public String domain() {
        return domain;
    }

    /** What was wrong, without code, details and causes.
     *
     * @return one line
     */
    public String reason() {
        return reason;
    }

    /** What the error tells beside its message.
     *
     * @return all details, in order
     */
    public List<Detail> details() {
        List<Detail> list = new ArrayList<>();
        for (int i = 0; i < details.length; i += 2) {
            list.add(new Detail(details[i], details[i + 1]));
        }
        return list;
    }

    /** The whole story as JSON on one line, for logs: code, domain, message, and where there are any, subcode, details
     * and cause.
     *
     * @return an object
     */
    public String json() {
        StringBuilder text = new StringBuilder("{\"code\":" + Json.quoted(code.toString()) + ",\"domain\":"
            + Json.quoted(domain) + ",\"message\":" + Json.quoted(reason));
        if (subcode != 0) {
            text.append(",\"subcode\":").append(subcode);
        }
        String before = ",\"details\":{";
        for (int i = 0; i < details.length; i += 2) {
            text.append(before).append(Json.quoted(details[i])).append(":").append(Json.quoted(details[i + 1]));
            before = ",";
        }
        text.append(details.length > 0 ? "}" : "");
        if (getCause() instanceof TuttiException cause) {
            text.append(",\"cause\":").append(cause.json());
        } else if (getCause() != null) { // of a callback
            String code = ThrownErrors.codeOf(getCause()).toString();
            text.append(",\"cause\":{\"code\":" + Json.quoted(code) + ",\"domain\":\"user\",\"message\":"
                + Json.quoted(getCause().toString()) + "}");
        }
        return text.append("}").toString();
    }

    /** The first detail of a key.
     *
     * @param key such as "node" or "step"
     * @return its value, if there is one
     */
    public Optional<String> detail(String key) {
        return details().stream().filter(detail -> detail.key().equals(key)).map(Detail::value).findFirst();
    }

    /** Throws what a C function reported, taking the error. */
    static void check(int code, long[] failure) {
        if (code != Raw.OK) {
            throw take(code, failure[0]);
        }
    }

    /** An exception of a C error, which it takes. What a callback threw is its cause, or itself if it can be. */
    static TuttiException take(int code, long handle) {
        if (handle == 0) {
            return ofTutti(Code.of(code), "the library gave no reason");
        }
        try {
            Throwable error = read(handle);
            if (error instanceof TuttiException exception) {
                return exception;
            }
            String reason = Raw.error_get_message(handle);
            return new TuttiException(Code.of(code), 0, "user", reason, List.of()).causedBy(error);
        } finally {
            Raw.error_unref(handle);
        }
    }

    /** What a C error that is lent stands for. */
    private static Throwable read(long handle) {
        String domain = Raw.error_get_domain(handle);
        long subcode = Raw.error_get_subcode(handle);
        Throwable thrown = ThrownErrors.find(domain, subcode);
        if (thrown != null) {
            return thrown;
        }
        List<Detail> details = new ArrayList<>();
        for (long i = 0; i < Raw.error_get_detail_count(handle); i++) {
            details.add(new Detail(Raw.error_get_detail_key(handle, i), Raw.error_get_detail_value(handle, i)));
        }
        long next = Raw.error_get_cause(handle);
        Throwable cause = next == 0 ? null : read(next);
        Code code = Code.of(Raw.error_get_code(handle));
        if (code == Code.UNKNOWN && cause != null) {
            code = ThrownErrors.codeOf(cause); // a feed's error has our number in place of a code
        }
        String reason = Raw.error_get_message(handle);
        return new TuttiException(code, subcode, ThrownErrors.shown(domain), reason, details).causedBy(cause);
    }
}
