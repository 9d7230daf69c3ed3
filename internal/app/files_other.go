//go:build !unix

package app

func maxFiles() (n uint64, ok bool) { return 0, false }
