package packaging

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/certificate"
)

// TestASignatureIsVerifiedOnce: what this process signed or verified is not verified again, what stands there instead of it is.
func TestASignatureIsVerifiedOnce(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	if p.certify("720p.m3u8"); p.verified.Load() != 0 {
		t.Errorf("%d signatures of its own were verified", p.verified.Load())
	}
	again, err := New(p.Settings)
	if err != nil {
		t.Fatal(err)
	}
	before := p.list("720p.m3u8")
	for range 2 {
		if plan, _, err := again.Certify(context.Background(), "720p.m3u8"); err != nil || plan.Kept != len(before) || again.verified.Load() != int64(len(before)) {
			t.Errorf("kept %d, verified %d of %d: %v", plan.Kept, again.verified.Load(), len(before), err)
		}
	}
	list, err := os.ReadFile(filepath.Join(p.dir, "720p.m3u8"+Suffix))
	if err != nil {
		t.Fatal(err)
	}
	list[len(list)-1] ^= 1 // in the signature of the last entry
	if err := os.WriteFile(filepath.Join(p.dir, "720p.m3u8"+Suffix), list, 0o644); err != nil {
		t.Fatal(err)
	}
	plan, changed, err := again.Certify(context.Background(), "720p.m3u8")
	if err != nil || !changed || plan.Kept != len(before)-1 || again.verified.Load() != int64(len(before)+1) {
		t.Errorf("an entry with another signature: kept %d, verified %d, %v", plan.Kept, again.verified.Load(), err)
	}
}

// TestWhatWasIssuedAheadOfTheClockIsSignedAgain: the clock was ahead, and has been set back. No viewer takes what is from the future.
func TestWhatWasIssuedAheadOfTheClockIsSignedAgain(t *testing.T) {
	p := newPackager(t, nil)
	p.film()
	p.pass(time.Hour)
	p.certify("720p.m3u8")
	for _, step := range []struct {
		back time.Duration
		kept int
	}{{certificate.MaxSkew, 3}, {time.Second, 0}, {0, 3}} {
		p.pass(-step.back)
		if plan := p.certify("720p.m3u8"); plan.Kept != step.kept {
			t.Errorf("the clock was set back by %v: kept %d of %d entries, want %d", step.back, plan.Kept, plan.Segments(), step.kept)
		}
	}
}
