package viewer

// Shares of contradictions that turn a title's peer delivery off (spec/certificate.md).
const (
	contradictedInRow = 3
	comparedLeast     = 50
)

// agreement is how often the origin's bytes are what certificates say.
type agreement struct{ compared, contradicted, inRow int }

func (a *agreement) agrees() { a.compared, a.inRow = a.compared+1, 0 }

// differs says whether they differ so often that certificates are of no use here.
func (a *agreement) differs() bool {
	a.compared, a.contradicted, a.inRow = a.compared+1, a.contradicted+1, a.inRow+1
	return a.inRow >= contradictedInRow || a.compared >= comparedLeast && a.contradicted*100 > a.compared
}
