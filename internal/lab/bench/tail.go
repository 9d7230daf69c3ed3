package bench

// Tail keeps the last of what is written to it.
type Tail struct{ b []byte }

const tailBytes = 2048

// Write implements io.Writer.
func (t *Tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if n := len(t.b) - tailBytes; n > tailBytes {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

func (t *Tail) String() string { return string(t.b) }
