package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const root = "../.."

// packed is a release of one binary of two systems: Go's gofmt, which is small and has what a linker notes.
func packed(t *testing.T) (release, string) {
	t.Helper()
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "bin", "gofmt"))
	if err != nil {
		t.Fatal(err)
	}
	r := release{tree: root, binaries: t.TempDir(), out: t.TempDir(), version: "1.2.3", time: time.Unix(1_700_000_000, 0).UTC()}
	for folder, name := range map[string]string{"linux-amd64": "leeway", "windows-amd64": "leeway.exe"} {
		if err := os.MkdirAll(filepath.Join(r.binaries, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.binaries, folder, name), text, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.archives(); err != nil {
		t.Fatal(err)
	}
	return r, string(text)
}

// TestArchivesHoldWhatIsInstalled: binary, license and documents in a folder of the archive's name; for servers also their files, as they can be executed.
func TestArchivesHoldWhatIsInstalled(t *testing.T) {
	r, binary := packed(t)
	in, err := os.Open(filepath.Join(r.out, "leeway-1.2.3-linux-amd64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	unpacked, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	for files := tar.NewReader(unpacked); ; {
		h, err := files.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name, inside := strings.CutPrefix(h.Name, "leeway-1.2.3-linux-amd64/")
		if !inside || !h.ModTime.Equal(r.time) || h.Uname != "" {
			t.Errorf("%+v", h)
		}
		modes[name] = h.Mode
		if text, err := io.ReadAll(files); err != nil || name == "leeway" && string(text) != binary {
			t.Errorf("%s has %d bytes: %v", name, len(text), err)
		}
	}
	for name, mode := range map[string]int64{"leeway": 0o755, "LICENSE": 0o644, "README.md": 0o644, "deploy/host/leeway@.service": 0o644, "alerts/leeway.yml": 0o644, "dashboards/cluster.json": 0o644} {
		if modes[name] != mode {
			t.Errorf("%s has mode %o, wanted %o", name, modes[name], mode)
		}
	}
	if _, is := modes["deploy/host/host_test.go"]; is {
		t.Error("a test is packed")
	}
	windows, err := zip.OpenReader(filepath.Join(r.out, "leeway-1.2.3-windows-amd64.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer windows.Close()
	names := []string{}
	for _, file := range windows.File {
		names = append(names, strings.TrimPrefix(file.Name, "leeway-1.2.3-windows-amd64/"))
	}
	if want := []string{"leeway.exe", "LICENSE", "NOTICE", "README.md", "CHANGELOG.md"}; !slices.Equal(names, want) {
		t.Errorf("for Windows: %q, wanted %q", names, want)
	}
}

// TestTheSameCommitIsTheSameRelease, file by file, and a changed binary is another one.
func TestTheSameCommitIsTheSameRelease(t *testing.T) {
	r, _ := packed(t)
	again := r
	again.out = t.TempDir()
	if err := again.archives(); err != nil {
		t.Fatal(err)
	}
	read := func(dir string) []byte {
		if err := sums(dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, sumsFile))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first, second := read(r.out), read(again.out)
	if !bytes.Equal(first, second) || bytes.Count(first, []byte("\n")) != 4 {
		t.Errorf("%s and %s", first, second)
	}
	check := exec.Command("sha256sum", "--check", "--strict", sumsFile)
	check.Dir = r.out
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%s: %v", out, err)
	}
	binary := filepath.Join(r.binaries, "linux-amd64", "leeway")
	file, err := os.OpenFile(binary, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("changed"); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	if err := r.archives(); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(first, read(r.out)) {
		t.Error("a changed binary has the same sums")
	}
}

// TestBillsOfMaterialsAreValid by the schema of CycloneDX 1.6, and name what is linked and embedded. The binary is this test.
func TestBillsOfMaterialsAreValid(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := release{tree: root, version: "1.2.3", time: time.Unix(1_700_000_000, 0).UTC()}
	file := filepath.Join(t.TempDir(), "bill.json")
	if err := r.bill(self, file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	schema := billSchema(t)
	valid := func(text []byte) error {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value)
	}
	if err := valid(text); err != nil {
		t.Error(err)
	}
	if valid(bytes.Replace(text, []byte(`"type": "library"`), []byte(`"type": "book"`), 1)) == nil {
		t.Error("the schema takes everything")
	}
	var bom cdx.BOM
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	purls := map[string]bool{}
	for _, c := range *bom.Components {
		purls[c.PackageURL] = true
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range info.Deps {
		if !purls["pkg:golang/"+module.Path+"@"+module.Version] && module.Replace == nil {
			t.Errorf("%s is linked and not listed", module.Path)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(purls)), func(purl string) bool { return strings.HasPrefix(purl, "pkg:npm/hls.js@") }) {
		t.Errorf("the demo's player is not listed: %v", purls)
	}
	if bom.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("its time is %s, not the commit's", bom.Metadata.Timestamp)
	}
}

// billSchema is CycloneDX' own, which comes with its library.
func billSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	for url, file := range map[string]string{"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json"} {
		in, err := os.Open(filepath.Join(strings.TrimSpace(string(dir)), "schema", file))
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(in)
		_ = in.Close()
		if err != nil {
			t.Fatal(err)
		}
		if err := compiler.AddResource("http://cyclonedx.org/schema/"+url, value); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSection(t *testing.T) {
	const changelog = "# Changelog\n\nIntro.\n\n## Unreleased\n\n### Added\n- new\n\n## [1.1.0] - 2026-01-02\n- old\n\n## 1.0.0\n- first\n"
	for version, want := range map[string]string{
		"1.0.0": "# Leeway 1.0.0\n\n- first\n",
		"1.1.0": "# Leeway [1.1.0] - 2026-01-02\n\n- old\n",
		"1.2.0": "# Leeway 1.2.0\n\n## Added\n- new\n",
	} {
		if got, err := section(changelog, version); err != nil || got != want {
			t.Errorf("%s: %q, wanted %q: %v", version, got, want, err)
		}
	}
	if _, err := section("# Changelog\n\n## 1.0.0\n- first\n", "2.0.0"); err == nil || !strings.Contains(err.Error(), "2.0.0") {
		t.Errorf("a version without a section: %v", err)
	}
}

func TestMistakesOfTheCaller(t *testing.T) {
	for _, args := range [][]string{nil, {"archives"}, {"book", "-out", "x"}, {"archives", "-out", "x", "-binaries", t.TempDir()}, {"sums", "-out", t.TempDir()}} {
		if err := run(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
