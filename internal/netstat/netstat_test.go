package netstat

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTheSpecificationHasTheKinds: the table of spec/probe.md, Figures, is the closed set, in order.
func TestTheSpecificationHasTheKinds(t *testing.T) {
	text, err := os.ReadFile("../../spec/probe.md")
	if err != nil {
		t.Fatal(err)
	}
	_, below, _ := strings.Cut(string(text), "\n## Figures\n")
	below, _, _ = strings.Cut(below, "\n### ")
	var rows []string
	for line := range strings.Lines(below) {
		if cells := strings.Split(line, "|"); len(cells) > 4 && strings.Contains(cells[1], "`") {
			rows = append(rows, strings.TrimSpace(cells[1])+" "+strings.TrimSpace(cells[2])+" "+strings.TrimSpace(cells[3]))
		}
	}
	if len(rows) != len(Kinds) {
		t.Fatalf("%d rows, %d kinds", len(rows), len(Kinds))
	}
	for i, k := range Kinds {
		if want := fmt.Sprintf("`%s` %s %s", k.Name, k.Unit, k.Source); rows[i] != want {
			t.Errorf("row %d is %q, the kind is %q", i, rows[i], want)
		}
	}
}

// TestPlainReordering: a path that only reorders loses nothing.
func TestPlainReordering(t *testing.T) {
	r := Record{Sent: 1000}
	for i := range int64(1000) {
		r.Arrivals = append(r.Arrivals, Arrival{Sequence: i ^ 3, Sent: (i ^ 3) * 1000, Received: i * 1000})
	}
	p := r.Pattern()
	if p.Lost != 0 || p.Distances != nil || len(p.Reordered) != 750 || p.Extent() != 3 {
		t.Errorf("%d lost, %d reordered, extent %d", p.Lost, len(p.Reordered), p.Extent())
	}
	for _, f := range p.Figures(Up) {
		if f.Name == Loss.Name && f.Value != 0 || f.Name == LossDistance.Name {
			t.Errorf("%+v", f)
		}
	}
}

// TestARecordThatLies: a record of another party is as large as it says, and takes no time that grows with its square.
func TestARecordThatLies(t *testing.T) {
	const n = 1 << 16
	r := Record{Sent: n}
	for i := range int64(n) {
		r.Arrivals = append(r.Arrivals, Arrival{Sequence: n - 1 - i})
	}
	if p := r.Pattern(); len(p.Reordered) != n-1 || p.Extent() != n-1 || p.Reordered[n-2].Before != n-1 {
		t.Errorf("%d reordered, extent %d", len(p.Reordered), p.Extent())
	}
	if p := (Record{Sent: -5, Arrivals: r.Arrivals[:3]}).Pattern(); p.Sent != 0 || p.Foreign != 3 || p.Figures(Up) != nil {
		t.Errorf("%+v", p)
	}
}

// FuzzRecord compares what a record says with the definitions, read word by word.
func FuzzRecord(f *testing.F) {
	f.Add(uint8(10), []byte{0, 2, 3, 5, 7})
	f.Add(uint8(10), []byte{0, 1, 2, 4, 5, 6, 7, 3, 8, 9})
	f.Add(uint8(3), []byte{9, 0, 0, 2})
	f.Add(uint8(0), []byte{})
	f.Fuzz(func(t *testing.T, sent uint8, order []byte) {
		r := Record{Sent: int64(sent)}
		var first []int64
		came := map[int64]bool{}
		for i, s := range order {
			seq := int64(s)
			r.Arrivals = append(r.Arrivals, Arrival{Sequence: seq, Received: int64(i)})
			if seq < int64(sent) && !came[seq] {
				came[seq] = true
				first = append(first, seq)
			}
		}
		p := r.Pattern()
		if p.Lost != int64(sent)-int64(len(first)) || int64(len(p.Distances)) != p.Lost {
			t.Fatalf("%d lost, %d distances", p.Lost, len(p.Distances))
		}
		sum := int64(0)
		for _, l := range p.Periods {
			sum += l.Length
			for s := l.First; s < l.First+l.Length; s++ {
				if came[s] {
					t.Fatalf("%d came and is in a loss period", s)
				}
			}
		}
		if sum != p.Lost {
			t.Fatalf("periods have %d, lost are %d", sum, p.Lost)
		}
		n := 0
		for i, s := range first {
			earliest, before := -1, 0
			for j := i - 1; j >= 0; j-- {
				if first[j] > s {
					earliest = j
				}
			}
			for j := i - 1; j >= 0 && first[j] > s; j-- {
				before++
			}
			if earliest < 0 {
				continue
			}
			if n >= len(p.Reordered) {
				t.Fatalf("%d is not reordered", s)
			}
			if got := p.Reordered[n]; got.Sequence != s || got.Extent != int64(i-earliest) || got.Before != int64(before) {
				t.Fatalf("%+v, want extent %d and %d before", got, i-earliest, before)
			}
			n++
		}
		if n != len(p.Reordered) {
			t.Fatalf("%d reordered, want %d", len(p.Reordered), n)
		}
	})
}

func TestConfidence(t *testing.T) {
	for want, values := range map[Confidence][]float64{Low: {700, 700, 700}, Medium: {500, 700, 700, 700}, High: {100, 700, 700, 700, 700}} {
		if got := ConfidenceOf(values); got != want {
			t.Errorf("%v: %s, want %s", values, got, want)
		}
	}
}
