// SPDX-License-Identifier: Apache-2.0

package tutti

// The maps of the pipelines text_ops, image_ops and image_mixes: tests/bindings/scenarios.txt says what they are.
// Each op gives a component of its name, but those that decode: image and photo.

func scenarioTextOps(g *Graph) error {
	text := g.Feature("text")
	words := g.BytesSplit(text, &BytesSplitOptions{Separator: " ", SkipEmpty: true, Count: 3})
	part := func(start, length int64, unit TextUnit) Value {
		return g.BytesSubstring(text, &BytesSubstringOptions{Start: start, Length: &length, Unit: unit})
	}
	g.SetOutput("bytes_length", g.BytesLength(text, &BytesLengthOptions{Unit: TextUnitCharacters}))
	g.SetOutput("bytes_substring", part(1, 3, TextUnitCharacters))
	g.SetOutput("bytes_split", words)
	g.SetOutput("bytes_lower", g.BytesLower(text))
	g.SetOutput("bytes_join", g.BytesJoin(words, &BytesJoinOptions{Separator: "+"}))
	g.SetOutput("bytes_to_number", g.BytesToNumber(part(-3, 3, TextUnitBytes), &BytesToNumberOptions{DType: Int64}))
	big := &BytesToValuesOptions{DType: Int64, Count: 1, ByteOrder: ByteOrderBig}
	g.SetOutput("bytes_to_values", g.BytesToValues(part(0, 8, TextUnitBytes), big))
	g.SetOutput("bytes_hash_bucket", g.BytesHashBucket(text, 1000, &BytesHashBucketOptions{Salt: 3}))
	return nil
}

func scenarioImageOps(g *Graph) error {
	file, photo := g.Feature("image"), g.Feature("photo")
	pixels := g.DecodePNG(file, nil)
	size := g.ImageSize(photo)
	edge := &CropOptions{Size: [2]int64{1, 2}, Offset: [2]int64{3, 7}}
	g.SetOutput("photo", g.Crop(g.DecodeJPEG(photo, nil), edge))
	g.SetOutput("image", g.DecodeImage(file, nil))
	g.SetOutput("image_size", size)
	shapePixels(g, pixels)
	colorPixels(g, pixels)
	drawPixels(g, pixels, plainPixels(g, photo))
	whole := &RandomCropWindowOptions{Area: []float64{1, 1}, Aspect: []float64{2, 2}}
	g.SetOutput("random_crop_window", g.RandomCropWindow(size, whole))
	return nil
}

// plainPixels are 2 x 2 pixels of one gray, the level 40.
func plainPixels(g *Graph, photo Value) Value {
	return g.Crop(g.DecodeJPEG(photo, nil), &CropOptions{Size: [2]int64{2, 2}})
}

func shapePixels(g *Graph, pixels Value) {
	corner := &CropOptions{Size: [2]int64{1, 2}, Offset: [2]int64{1, 1}}
	g.SetOutput("crop", g.Crop(pixels, corner))
	g.SetOutput("pad_image", g.PadImage(pixels, []int64{1, 0, 1, 0}, &PadImageOptions{Mode: PadModeEdge}))
	g.SetOutput("flip", g.Flip(pixels, &FlipOptions{Direction: FlipDirectionVertical}))
	g.SetOutput("rotate90", g.Rotate90(pixels, nil))
	g.SetOutput("rotate", g.Rotate(pixels, 180, &RotateOptions{Method: InterpolationNearest}))
}

func colorPixels(g *Graph, pixels Value) {
	half := 0.5
	normal := &NormalizeImageOptions{Mean: []float64{10, 20, 30}, Stddev: []float64{2, 4, 8}, Scale: &half}
	g.SetOutput("convert_image_dtype", g.ConvertImageDType(pixels, nil))
	g.SetOutput("normalize_image", g.NormalizeImage(pixels, normal))
	g.SetOutput("adjust_brightness", g.AdjustBrightness(pixels, 0.2))
	g.SetOutput("adjust_contrast", g.AdjustContrast(pixels, 2))
	g.SetOutput("adjust_saturation", g.AdjustSaturation(pixels, 0.5))
	g.SetOutput("adjust_hue", g.AdjustHue(pixels, 0.3))
}

// drawPixels has what is the same whatever is drawn.
func drawPixels(g *Graph, pixels, plain Value) {
	column := g.Crop(pixels, &CropOptions{Size: [2]int64{2, 1}})
	striped := g.PadImage(column, []int64{0, 0, 1, 2}, &PadImageOptions{Mode: PadModeEdge})
	mirrored := &RandomResizedCropOptions{Area: []float64{1, 1}, Aspect: []float64{1.5, 1.5}, FlipProbability: 1}
	jitter := &RandomColorJitterOptions{Contrast: 0.5, Saturation: 0.5, Hue: 0.25}
	g.SetOutput("random_crop", g.RandomCrop(striped, []int64{2, 2}, nil))
	g.SetOutput("random_rotate", g.RandomRotate(plain, 90, &RandomRotateOptions{Value: 40}))
	g.SetOutput("random_resized_crop", g.RandomResizedCrop(pixels, []int64{2, 3}, mirrored))
	g.SetOutput("random_cutout", g.RandomCutout(pixels, []int64{6, 8}, &RandomCutoutOptions{Value: 7}))
	g.SetOutput("random_color_jitter", g.RandomColorJitter(plain, jitter))
}

// scenarioPlainImages gives gray pixels and a target, of which scenarioMixes mixes those of a batch.
func scenarioPlainImages(g *Graph) error {
	g.SetOutput("photo", g.ConvertImageDType(plainPixels(g, g.Feature("photo")), nil))
	g.SetOutput("target", g.OneHot(g.Feature("id"), 3, nil))
	return nil
}

func scenarioMixes(g *Graph) error {
	photo, target := g.Feature("photo"), g.Feature("target")
	all := &ReduceSumOptions{Axes: []int64{1}}
	mixed, targets := g.Mixup(photo, target, &MixupOptions{Alpha: 0.5})
	g.SetOutput("mixup", mixed)
	g.SetOutput("mixup_targets", g.ReduceSum(targets, all))
	mixed, targets = g.Cutmix(photo, target, nil)
	g.SetOutput("cutmix", mixed)
	g.SetOutput("cutmix_targets", g.ReduceSum(targets, all))
	return nil
}
