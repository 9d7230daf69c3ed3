package peersbench

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/leeway-video/leeway/internal/lab/bench"
)

// papersJSON has the figures of Heikkinen et al., which scripts/benchmarks/papers.mjs puts beside ours, too.
//
//go:embed papers.json
var papersJSON []byte

// paperTable is one of their tables: a column is a pair of browsers, client first, or a number of connections.
type paperTable struct {
	Columns    []string                   `json:"columns"`
	Rows       map[string]json.RawMessage `json:"rows"`
	Efficiency map[string]float64         `json:"efficiency"`
}

var papers = func() map[string]paperTable {
	var all map[string]paperTable
	if err := json.Unmarshal(papersJSON, &all); err != nil {
		panic(err) // a test reads it
	}
	return all
}()

// source begins what a reference says of itself.
const source = "Heikkinen et al."

// spreadOf returns mean and deviation of a cell; nil where the paper has none.
func (t paperTable) spreadOf(row, column string) []float64 {
	var cells [][]float64
	if json.Unmarshal(t.Rows[row], &cells) != nil {
		return nil
	}
	return cells[slices.Index(t.Columns, column)]
}

// beside is the reference of a figure: a mean of theirs.
func (t paperTable) beside(row, column string) *bench.Reference {
	cell := t.spreadOf(row, column)
	if len(cell) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s, %s", source, column)
	if len(cell) > 1 {
		text += fmt.Sprintf(", ± %g", cell[1])
	}
	return &bench.Reference{Value: cell[0], Source: text}
}

// number is beside for a figure whose table has means alone; what says of which of its ends it is.
func (t paperTable) number(row, column, what string) *bench.Reference {
	var cells []float64
	if json.Unmarshal(t.Rows[row], &cells) != nil {
		return nil
	}
	return &bench.Reference{Value: cells[slices.Index(t.Columns, column)], Source: fmt.Sprintf("%s, %s", source, what)}
}

// besides is the paper's pair of browsers that stands beside a pair of ours: its own, or its best.
func (k kinds) besides() string {
	letter := func(firefox bool) string {
		if firefox {
			return "F"
		}
		return "C"
	}
	return letter(k.clientFirefox) + "-" + letter(k.serverFirefox)
}

// paperTransfers are the rows that figures stand beside: what the paper calls several channels were several connections.
var paperTransfers = map[string]string{
	"a1": "a1", "a2_channels_5": "a2-5", "a2_channels_10": "a2-10", "a2_connections_5": "a2-5", "a2_connections_10": "a2-10", "a3_5": "a3-5", "a3_10": "a3-10",
}

func paperTransfer(k kinds, rate int, figure string) *bench.Reference {
	return papers["H5"].beside(fmt.Sprintf("%d-%s", rate, paperTransfers[figure]), k.besides())
}

// bestOf is the paper's best efficiency at a rate, of the payload's ideal.
func bestOf(rate int) *bench.Reference {
	return &bench.Reference{Value: papers["H5"].Efficiency[fmt.Sprint(rate)], Source: source + ", of the payload's ideal"}
}
