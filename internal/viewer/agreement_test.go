package viewer

import "testing"

func TestAgreement(t *testing.T) {
	var a agreement
	for i := range contradictedInRow {
		if got := a.differs(); got != (i == contradictedInRow-1) {
			t.Errorf("after %d in a row: %t", i+1, got)
		}
	}
	a = agreement{}
	for range 2 * comparedLeast {
		a.agrees()
	}
	if a.differs() {
		t.Error("one in a hundred is enough")
	}
	if a.agrees(); !a.differs() {
		t.Error("two in a hundred are not")
	}
}
