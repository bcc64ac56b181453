// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.Test;

/** What the documentation calls null is annotated, and nothing else is. */
public class NullnessTest {
    /** A comment, and what it is for. */
    private static final Pattern DOCUMENTED =
        Pattern.compile("/\\*\\*((?:(?!\\*/).)*)\\*/\\s*((?:public|protected|default|static|@Override|@Nullable"
            + "|[A-Z])[^;{]*[;{])", Pattern.DOTALL);
    private static final Pattern TAG =
        Pattern.compile("@(param (\\S+)|return)((?:(?!\\n\\s*\\*\\s*@).)*)", Pattern.DOTALL);
    private static final Pattern SAYS_NULL = Pattern.compile("\\bnull\\b");

    private static List<Path> sources() throws Exception {
        try (Stream<Path> files = Files.walk(Path.of(System.getProperty("tutti.test.sources")))) {
            List<Path> sources = files.filter(path -> path.toString().endsWith(".java")).toList();
            assertTrue(sources.size() > 60);
            return sources;
        }
    }

    /** The argument of a name with all that stands before it, or what stands before the arguments. */
    private static String declared(String head, String name) {
        if (name == null) {
            return head.substring(0, Math.max(head.indexOf('('), 0));
        }
        for (String argument : head.substring(head.indexOf('(') + 1).split(", ")) {
            if (argument.matches("(?s).*\\b" + Pattern.quote(name) + "\\W*[;{]?")) {
                return argument;
            }
        }
        return "";
    }

    /** What is said of null otherwise than declared. */
    private static List<String> problems(String source) {
        List<String> problems = new ArrayList<>();
        Matcher documented = DOCUMENTED.matcher(source);
        while (documented.find()) {
            String head = documented.group(2);
            Matcher tag = TAG.matcher(documented.group(1));
            while (tag.find()) {
                String declared = declared(head, tag.group(2));
                boolean says = SAYS_NULL.matcher(tag.group(3)).find();
                if (!declared.isEmpty() && says != declared.contains("@Nullable")) {
                    problems.add(tag.group().strip() + " <> " + declared.strip());
                }
            }
        }
        return problems;
    }

    @Test
    public void documentationAndAnnotationsAgree() throws Exception {
        List<String> problems = new ArrayList<>();
        for (Path source : sources()) {
            if (!source.getFileName().toString().startsWith("Raw")) {
                problems(Files.readString(source)).forEach(one -> problems.add(source.getFileName() + ": " + one));
            }
        }
        assertEquals(List.of(), problems);
    }

    @Test
    public void theCheckFinds() {
        String begin = "/** Text.\n *\n * @param x ";
        assertFalse(problems(begin + "a number; null = none\n */\npublic void f(Long x) {").isEmpty());
        assertFalse(problems(begin + "a number\n */\npublic void f(@Nullable Long x) {").isEmpty());
        assertFalse(problems(begin + "a number\n * @return null\n */\npublic Long f(Long x) {").isEmpty());
        assertEquals(List.of(), problems(begin + "null = none\n * @return a\n */\nLong f(@Nullable Long x);"));
    }

    @Test
    public void annotationsAreSeenByTools() throws Exception {
        assertTrue(Predictor.class.getMethod("signature").getAnnotatedReturnType().getAnnotations().length == 0);
        assertTrue(Tutti.class.getMethod("whyUnavailable", String.class).getAnnotatedReturnType()
            .isAnnotationPresent(Nullable.class));
        assertTrue(DatasetIterator.class.getMethod("read").getAnnotatedReturnType()
            .isAnnotationPresent(Nullable.class));
    }
}
