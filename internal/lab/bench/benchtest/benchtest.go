// Package benchtest has what the tests of benches need.
package benchtest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// Main is for TestMain: the test binary is a child process where the bench asks for one.
func Main(m *testing.M, b bench.Bench) {
	if len(os.Args) != 4 || os.Args[1] != bench.ChildCommand {
		os.Exit(m.Run())
	}
	if err := bench.Child(context.Background(), []bench.Bench{b}, os.Args[2], os.Args[3], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
