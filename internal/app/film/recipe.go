// Package film turns a video file into the renditions that the demo plays, once, into the user's cache: as HLS of MPEG-TS, and of that
// as CMAF for HLS and DASH.
//
// What is made depends on the recipe and the source alone; both are hashed into the name of the directory, so a
// changed recipe makes a new film and never a mixture of two.
package film

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Rendition is one quality of the film.
type Rendition struct {
	Name   string // directory of its playlist and segments, as in "480p"
	Height int    // pixels
	Video  int    // bits per second
	Audio  int    // bits per second
}

// Recipe says how a film is encoded. Every field is part of the cache key.
type Recipe struct {
	Version        int // raised when the ffmpeg arguments of the encoding change; those of the CMAF form have cmafSuffix
	Renditions     []Rendition
	FPS            int
	GOPSeconds     int
	SegmentSeconds int
	Repeat         int // how many times the source is shown in a row; 1 is once
}

// DefaultRecipe is small enough that four windows play it on two cores, the highest rendition near 1.5 Mbit/s.
func DefaultRecipe() Recipe {
	return Recipe{
		Version: 2,
		Renditions: []Rendition{
			{Name: "240p", Height: 240, Video: 320_000, Audio: 64_000},
			{Name: "360p", Height: 360, Video: 690_000, Audio: 80_000},
			{Name: "480p", Height: 480, Video: 1_330_000, Audio: 96_000},
		},
		FPS:            24,
		GOPSeconds:     2,
		SegmentSeconds: 4,
		Repeat:         1,
	}
}

// key names the directory of what recipe makes of source, which identifies a file's content well enough for a cache.
func (r Recipe) key(source string) (string, error) {
	b, err := json.Marshal(struct {
		Recipe Recipe
		Source string
	}{r, source})
	if err != nil {
		return "", fmt.Errorf("film: hash the recipe: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Slug makes a path element of a file's name: "My Film (1).mp4" becomes "my-film-1".
func Slug(name string) string {
	base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	s := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(base), "-"), "-")
	if s == "" {
		return "film"
	}
	return s
}

// CacheDir is where films are kept: $XDG_CACHE_HOME/leeway, else ~/.cache/leeway.
func CacheDir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "leeway"), nil
	}
	home := getenv("HOME")
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("film: find a cache directory: %w (set XDG_CACHE_HOME or HOME)", err)
		}
	}
	return filepath.Join(home, ".cache", "leeway"), nil
}
