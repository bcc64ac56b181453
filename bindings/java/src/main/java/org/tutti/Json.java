// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * A value of JSON, read strictly as RFC 8259 has it: objects, arrays, texts, integers of 64 bits, other numbers, truth
 * values, null. The library writes infinities and NaN as texts. Members that nobody asks for are left alone, for later
 * releases have more; one that is asked for and not there is an error that names it.
 */
final class Json {
    private final String name;
    private final @Nullable Object value;

    private Json(String name, @Nullable Object value) {
        this.name = name;
        this.value = value;
    }

    /** A text as JSON writes it. */
    static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char letter : text.toCharArray()) {
            if (letter == '"' || letter == '\\') {
                quoted.append('\\').append(letter);
            } else if (letter < ' ') {
                quoted.append(String.format("\\u%04x", (int) letter));
            } else {
                quoted.append(letter);
            }
        }
        return quoted.append('"').toString();
    }

    /** Reads a whole text; what it is called is for errors. */
    static Json parse(String name, String text) {
        return new Json(name, new Parser(name, text).whole());
    }

    private TuttiException isNot(String kind) {
        return TuttiException.ofTutti(Code.INTERNAL, name + " is no " + kind);
    }

    private Map<?, ?> object() {
        if (value instanceof Map<?, ?> members) {
            return members;
        }
        throw isNot("object");
    }

    boolean has(String key) {
        return object().containsKey(key);
    }

    Json get(String key) {
        if (!has(key)) {
            throw TuttiException.ofTutti(Code.INTERNAL, name + " lacks \"" + key + "\"");
        }
        return new Json(name + "." + key, object().get(key));
    }

    /** The names of an object's members. */
    List<String> keys() {
        return object().keySet().stream().map(String.class::cast).toList();
    }

    <T> List<T> list(Function<Json, T> read) {
        if (!(value instanceof List<?> elements)) {
            throw isNot("array");
        }
        List<T> results = new ArrayList<>();
        for (Object element : elements) {
            results.add(read.apply(new Json(name + "[" + results.size() + "]", element)));
        }
        return List.copyOf(results);
    }

    <T> List<T> list(String key, Function<Json, T> read) {
        return get(key).list(read);
    }

    boolean isText() {
        return value instanceof String;
    }

    String text() {
        if (value instanceof String text) {
            return text;
        }
        throw isNot("text");
    }

    String text(String key) {
        return get(key).text();
    }

    /** A text, or a number or truth value as one; for what may be any of them. */
    String shown() {
        if (value instanceof Map || value instanceof List) {
            throw isNot("single value");
        }
        return String.valueOf(value);
    }

    boolean truth(String key) {
        if (get(key).value instanceof Boolean truth) {
            return truth;
        }
        throw get(key).isNot("truth value");
    }

    long integer() {
        if (value instanceof Long integer) {
            return integer;
        }
        throw isNot("integer");
    }

    long integer(String key) {
        return get(key).integer();
    }

    /** 0 where there is none. */
    long integerOrZero(String key) {
        return has(key) ? integer(key) : 0;
    }

    double number() {
        if (value instanceof Number number) {
            return number.doubleValue();
        }
        if (value instanceof String text) {
            return switch (text) {
                case "NaN" -> Double.NaN;
                case "Infinity" -> Double.POSITIVE_INFINITY;
                case "-Infinity" -> Double.NEGATIVE_INFINITY;
                default -> throw isNot("number");
            };
        }
        throw isNot("number");
    }

    double number(String key) {
        return get(key).number();
    }

    /** NaN where there is none. */
    double numberOrNan(String key) {
        return has(key) ? number(key) : Double.NaN;
    }

    /** A text that is read from its beginning to its end. */
    private static final class Parser {
        private static final int MOST_LEVELS = 64;

        private final String name;
        private final String text;
        private int at;
        private int level;

        Parser(String name, String text) {
            this.name = name;
            this.text = text;
        }

        @Nullable Object whole() {
            Object value = value();
            if (next() != 0) {
                throw wrong();
            }
            return value;
        }

        private TuttiException wrong() {
            return TuttiException.ofTutti(Code.INTERNAL, name + " is no JSON at character " + at);
        }

        /** The character behind blanks; 0 at the end. */
        private char next() {
            while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            return at < text.length() ? text.charAt(at) : 0;
        }

        private void take(char wanted) {
            if (next() != wanted) {
                throw wrong();
            }
            at++;
        }

        private @Nullable Object value() {
            return switch (next()) {
                case '{' -> object();
                case '[' -> array();
                case '"' -> string();
                case 't' -> word("true", Boolean.TRUE);
                case 'f' -> word("false", Boolean.FALSE);
                case 'n' -> word("null", null);
                default -> number();
            };
        }

        private @Nullable Object word(String word, @Nullable Object value) {
            if (!text.startsWith(word, at)) {
                throw wrong();
            }
            at += word.length();
            return value;
        }

        private void enter(char bracket) {
            take(bracket);
            if (++level > MOST_LEVELS) {
                throw wrong();
            }
        }

        private void leave(char bracket) {
            take(bracket);
            level--;
        }

        private Map<String, Object> object() {
            Map<String, Object> members = new LinkedHashMap<>();
            enter('{');
            while (next() != '}') {
                if (!members.isEmpty()) {
                    take(',');
                    next();
                }
                String key = string();
                take(':');
                if (members.containsKey(key)) {
                    throw wrong();
                }
                members.put(key, value());
            }
            leave('}');
            return members;
        }

        private List<Object> array() {
            List<Object> elements = new ArrayList<>();
            enter('[');
            while (next() != ']') {
                if (!elements.isEmpty()) {
                    take(',');
                }
                elements.add(value());
            }
            leave(']');
            return elements;
        }

        private String string() {
            StringBuilder result = new StringBuilder();
            take('"');
            while (at < text.length() && text.charAt(at) != '"') {
                char c = text.charAt(at++);
                if (c < ' ') {
                    throw wrong();
                }
                result.append(c == '\\' ? escaped() : c);
            }
            if (at == text.length()) {
                throw wrong();
            }
            at++;
            return result.toString();
        }

        private char escaped() {
            char c = at < text.length() ? text.charAt(at++) : 0;
            if (c == 'u') {
                String digits = text.substring(at, Math.min(at + 4, text.length()));
                if (!digits.matches("[0-9a-fA-F]{4}")) {
                    throw wrong();
                }
                at += 4;
                return (char) Integer.parseInt(digits, 16);
            }
            int which = "\"\\/bfnrt".indexOf(c);
            if (which < 0) {
                throw wrong();
            }
            return "\"\\/\b\f\n\r\t".charAt(which);
        }

        private Object number() {
            int begin = at;
            while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            String digits = text.substring(begin, at);
            try {
                if (digits.matches("-?(0|[1-9][0-9]*)")) {
                    return Long.valueOf(digits);
                }
                if (digits.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")) {
                    return Double.valueOf(digits);
                }
            } catch (NumberFormatException tooLarge) {
                // as any other that is none
            }
            at = begin;
            throw wrong();
        }
    }
}
