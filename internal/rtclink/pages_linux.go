package rtclink

import (
	"os"
	"syscall"
	"unsafe"
)

// giveBack returns the whole pages of b to the system; they are zero when they are next touched. For buffers that pion
// makes longer than any packet and holds as long as a link lives.
func giveBack(b []byte) {
	page := os.Getpagesize()
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & uintptr(page-1))
	if n := (len(b) - skip) / page * page; n > 0 {
		_ = syscall.Madvise(b[skip:skip+n], syscall.MADV_DONTNEED) // else they stay
	}
}
