// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import java.util.List;
import org.junit.Test;

public class JsonTest {
    private static Json read(String text) {
        return Json.parse("text", text);
    }

    @Test
    public void valuesOfEveryKind() {
        Json json = read(" {\"a\": [1, -2, 9223372036854775807], \"b\": {\"c\": 0.5, \"d\": 1e3, \"e\": -0.0E-2},\n"
            + "\t\"t\": true, \"f\": false, \"n\": null, \"empty\": [], \"none\": {}, \"i\": \"Infinity\","
            + " \"x\": \"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud834\\udd1eé\"} ");
        assertEquals(List.of(1L, -2L, Long.MAX_VALUE), json.list("a", Json::integer));
        assertEquals(0.5, json.get("b").number("c"), 0);
        assertEquals(1000, json.get("b").number("d"), 0);
        assertEquals(0, json.get("b").number("e"), 0);
        assertTrue(json.truth("t"));
        assertFalse(json.truth("f"));
        assertTrue(json.has("n"));
        assertEquals(List.of(), json.list("empty", Json::text));
        assertEquals(List.of(), json.get("none").keys());
        assertEquals(Double.POSITIVE_INFINITY, json.number("i"), 0);
        assertEquals("\"\\/\b\f\n\r\t\u00e9\ud834\udd1e\u00e9", json.text("x"));
        assertEquals(0, json.integerOrZero("nothing"));
        assertTrue(Double.isNaN(json.numberOrNan("nothing")));
    }

    @Test
    public void textsThatAreNone() {
        List<String> wrong = List.of("", " ", "{", "}", "[1,]", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
            "{a:1}", "{\"a\":1,\"a\":2}", "01", "+1", ".5", "1.", "1e", "-", "1 2", "tru", "nul", "'a'", "\"a",
            "\"\n\"", "\"\\x\"", "\"\\u12\"",
            "\"\\u+123\"", "9223372036854775808", "NaN", "[1]]", "[".repeat(100), "\u00a01");
        for (String text : wrong) {
            TuttiException error = Toy.failure(() -> read(text));
            assertEquals(text, Code.INTERNAL, error.code());
            assertTrue(error.reason(), error.reason().startsWith("text is no JSON at character "));
        }
    }

    @Test
    public void whatIsMissingIsNamed() {
        Json json = read("{\"a\": {\"b\": [1, \"x\"]}}");
        assertEquals("text.a lacks \"c\"", Toy.failure(() -> json.get("a").get("c")).reason());
        assertEquals("text.a.b[1] is no integer",
            Toy.failure(() -> json.get("a").list("b", Json::integer)).reason());
        assertEquals("text.a is no number", Toy.failure(() -> json.number("a")).reason());
    }
}
