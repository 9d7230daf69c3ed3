package app

import "runtime/debug"

// seedGarbage is how much garbage a seed's heap may have before it is collected, in percent of what is in use. What is in use is the store
// and the indexes, which are bounded and stay; what is thrown away is little against them. docs/experiments/seed-memory.md has the figures.
const seedGarbage = 50

// boundGarbage has the collector of this process allow no more than that until stop. It does nothing if the operator has set GOGC.
func boundGarbage(env Env) (stop func()) {
	if env.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(seedGarbage)
	return func() { debug.SetGCPercent(before) }
}
