/* SPDX-License-Identifier: Apache-2.0
 *
 * The maps of the pipelines text_ops, image_ops and image_mixes of scenarios.txt, in the program of C. Each op gives a
 * component of its name, but those that decode: image and photo. */
#ifndef TUTTI_TESTS_BINDINGS_SCENARIO_DATA_OPS_H_
#define TUTTI_TESTS_BINDINGS_SCENARIO_DATA_OPS_H_

#include <tutti/tutti.h>

/* Of the component text. */
int32_t scenario_text_ops(tutti_graph *g, void *user, tutti_error **err);

/* Of the components image, a PNG file, and photo, a JPEG file. */
int32_t scenario_image_ops(tutti_graph *g, void *user, tutti_error **err);

/* Of id and photo: gray pixels as photo and a target, of which scenario_mixes mixes those of a batch. */
int32_t scenario_plain_images(tutti_graph *g, void *user, tutti_error **err);
int32_t scenario_mixes(tutti_graph *g, void *user, tutti_error **err);

#endif /* TUTTI_TESTS_BINDINGS_SCENARIO_DATA_OPS_H_ */
