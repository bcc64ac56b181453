// SPDX-License-Identifier: Apache-2.0
package org.tutti;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * May be null. Whatever this package takes or gives is not null unless it has this annotation: arguments, results,
 * components of records, and elements of arrays and collections. {@code Tensor @Nullable []} is an array that may be
 * null, of tensors that are not.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE_USE)
public @interface Nullable {}
