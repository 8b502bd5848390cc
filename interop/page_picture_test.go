package interop

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ibidhq/ibid/internal/testenv"
)

// maxPicture is the size limit of a picture in docs/images, in bytes.
const maxPicture = 150 << 10

// shrink rewrites the pictures of a directory with at most 256 colours each, the most frequent ones.
func shrink(t *testing.T, dir string) {
	t.Helper()
	names := testenv.Must(filepath.Glob(filepath.Join(dir, "*.png")))(t)
	for _, name := range names {
		data := testenv.Must(os.ReadFile(name))(t)
		picture, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var small bytes.Buffer
		encoder := png.Encoder{CompressionLevel: png.BestCompression}
		testenv.OK(t, encoder.Encode(&small, fewColours(picture)))
		if small.Len() > maxPicture {
			t.Errorf("%s has %d bytes, more than %d", name, small.Len(), maxPicture)
		}
		testenv.OK(t, os.WriteFile(name, small.Bytes(), 0o644))
	}
}

func fewColours(picture image.Image) *image.Paletted {
	bounds, seen := picture.Bounds(), map[color.RGBA]int{}
	at := func(x, y int) color.RGBA {
		c, _ := color.RGBAModel.Convert(picture.At(x, y)).(color.RGBA)
		return c
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			seen[at(x, y)]++
		}
	}
	all := make([]color.RGBA, 0, len(seen))
	for c := range seen {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int { return seen[b] - seen[a] })
	palette := make(color.Palette, 0, 256)
	for _, c := range all[:min(len(all), cap(palette))] {
		palette = append(palette, c)
	}
	few, nearest := image.NewPaletted(bounds, palette), map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := at(x, y)
			i, ok := nearest[c]
			if !ok {
				i = uint8(palette.Index(c))
				nearest[c] = i
			}
			few.SetColorIndex(x, y, i)
		}
	}
	return few
}
