// Package spec has the files of spec/vectors for tests of any package: it imports no other.
package spec

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// Update says that the tests of a package are to write their vectors anew.
var Update = flag.Bool("update", false, "write the files of spec/vectors that these tests make")

// Vectors reads a file of spec/vectors. It fails the test where a list of T has nothing in it: what goes through that would test nothing.
func Vectors[T any](tb testing.TB, name string) (v T) {
	tb.Helper()
	if err := json.Unmarshal(Bytes(tb, name), &v); err != nil {
		tb.Fatalf("vectors of %s: %v", name, err)
	}
	all := reflect.ValueOf(v)
	for i := range all.NumField() {
		if f := all.Field(i); f.Kind() == reflect.Slice && f.Len() == 0 {
			tb.Fatalf("no vectors of %s: %s", all.Type().Field(i).Name, name)
		}
	}
	return v
}

// Bytes is such a file as it is.
func Bytes(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path(name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Write writes such a file.
func Write(tb testing.TB, name string, b []byte) {
	tb.Helper()
	if err := os.WriteFile(path(name), b, 0o644); err != nil {
		tb.Fatal(err)
	}
}

// path is where a file of spec/vectors is: tests run in the folder of their package.
func path(name string) string {
	dir := filepath.FromSlash("spec/vectors")
	for range 8 {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Join("..", dir)
	}
	return filepath.Join(dir, name)
}
