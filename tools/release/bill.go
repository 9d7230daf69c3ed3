package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// lockfile is what is asked of web/package-lock.json.
type lockfile struct {
	Packages map[string]struct {
		Name         string            `json:"name"`
		Version      string            `json:"version"`
		Integrity    string            `json:"integrity"`
		License      string            `json:"license"`
		Dependencies map[string]string `json:"dependencies"`
	} `json:"packages"`
}

// bill writes what a binary is made of, as CycloneDX has it: the modules that its linker noted, the Go release, and the npm packages of the
// pages that it serves.
func (r release) bill(binary, file string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	digest, err := digestOf(binary)
	if err != nil {
		return err
	}
	var lock lockfile
	text, err := os.ReadFile(filepath.Join(r.tree, "web/package-lock.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return fmt.Errorf("web/package-lock.json: %w", err)
	}
	pages, err := lock.embedded()
	if err != nil {
		return err
	}
	bom := r.materials(info, digest, pages)
	return write(file, func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	})
}

// materials is the bill. No chance is in it: its serial number is made of the binary's digest.
func (r release) materials(info *debug.BuildInfo, digest []byte, pages []cdx.Component) *cdx.BOM {
	program := cdx.Component{
		BOMRef: "leeway", Type: cdx.ComponentTypeApplication, Name: "leeway", Version: r.version,
		PackageURL: "pkg:golang/" + info.Main.Path + "@v" + r.version,
		Licenses:   licensed("Apache-2.0"),
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest)}},
	}
	components := []cdx.Component{{
		BOMRef: "go", Type: cdx.ComponentTypeLibrary, Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go"),
	}}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		purl := "pkg:golang/" + module.Path + "@" + module.Version
		c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: purl}
		if module.Sum != "" {
			c.Properties = &[]cdx.Property{{Name: "leeway:go.sum", Value: module.Sum}}
		}
		components = append(components, c)
	}
	components = append(components, pages...)
	refs := make([]string, 0, len(components))
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	settings := []cdx.Property{}
	for _, s := range info.Settings {
		if slices.Contains([]string{"GOOS", "GOARCH", "vcs.revision", "vcs.modified"}, s.Key) {
			settings = append(settings, cdx.Property{Name: "leeway:" + s.Key, Value: s.Value})
		}
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = serial(digest)
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format("2006-01-02T15:04:05Z"), Component: &program, Properties: &settings}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return bom
}

// licensed is nil where a package does not say its license in one field, as old ones do not.
func licensed(id string) *cdx.Licenses {
	if id == "" {
		return nil
	}
	return &cdx.Licenses{{License: &cdx.License{ID: id}}}
}

// serial is a name-based identifier (RFC 9562, version 8) of a digest.
func serial(digest []byte) string {
	sum := sha256.Sum256(append([]byte("leeway bill of materials "), digest...))
	id := sum[:16]
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// embedded are the packages of others that the pages of the binary hold: those that its pages and scripts depend on, and theirs.
func (l lockfile) embedded() ([]cdx.Component, error) {
	wanted := map[string]bool{}
	var need func(path string) error
	need = func(path string) error {
		if wanted[path] {
			return nil
		}
		found, ok := l.Packages[path]
		if !ok {
			return fmt.Errorf("web/package-lock.json has no %s", path)
		}
		wanted[path] = true
		for name := range found.Dependencies {
			at := "node_modules/" + name
			if own, is := strings.CutPrefix(name, "@leeway/"); is || name == "leeway" {
				at = "packages/" + strings.TrimPrefix(own, "@leeway/")
			}
			if err := need(at); err != nil {
				return err
			}
		}
		return nil
	}
	if err := errors.Join(need("apps/demo"), need("apps/check")); err != nil {
		return nil, err
	}
	var components []cdx.Component
	for _, path := range slices.Sorted(maps.Keys(wanted)) {
		name, foreign := strings.CutPrefix(path, "node_modules/")
		if !foreign {
			continue
		}
		found := l.Packages[path]
		if found.Name != "" {
			name = found.Name
		}
		purl := "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + found.Version
		c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: name, Version: found.Version, PackageURL: purl, Licenses: licensed(found.License)}
		if sum, is := strings.CutPrefix(found.Integrity, "sha512-"); is {
			raw, err := base64.StdEncoding.DecodeString(sum)
			if err != nil {
				return nil, fmt.Errorf("web/package-lock.json: integrity of %s: %w", path, err)
			}
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA512, Value: hex.EncodeToString(raw)}}
		}
		components = append(components, c)
	}
	return components, nil
}
