package emulator

import (
	"bytes"
	"time"
)

// The emulator is a process of its own, so that neither the garbage collector nor the goroutines of the program under
// test delay a packet. It is the same executable, started again with environment naming this role: TUN devices are its
// files from 3 on, orders come as JSON on its standard input, one reply each goes to its standard output. The first
// order is the Config, and its reply is sent when packets are moved.

// roleVariable in the environment makes an executable that contains this package the emulator.
const roleVariable = "LEEWAY_NETLAB_EMULATOR"

// firstFile is the file descriptor of port 0.
const firstFile = 3

// order is one line to the emulator.
type order struct {
	Op   string `json:"op"` // one of the op constants
	Mark bool   `json:"mark,omitempty"`
	N    int    `json:"n,omitempty"` // the link that is meant
	Link *Link  `json:"link,omitempty"`
}

const (
	opStats  = "stats"  // asks for Stats
	opSet    = "set"    // changes a link
	opLedger = "ledger" // asks for a link's ledger
	opClose  = "close"  // says that the process that started the emulator cleans up itself
)

// reply is one line from the emulator.
type reply struct {
	Error string `json:"error,omitempty"`
	Stats *Stats `json:"stats,omitempty"`
	// Ledger has a character for each packet of a link's ledger: ledgerCame or ledgerLost.
	Ledger string `json:"ledger,omitempty"`
}

// Stats are the emulator's figures since it started; Max fields since the last mark.
type Stats struct {
	// RealTime says that the kernel granted a real-time priority; without one, other processes delay packets.
	RealTime bool
	// Late says how long after its time each packet was handed to the kernel.
	Late Histogram
	// Rounds says how long the emulator was away from its devices, other than to sleep until something comes: a packet
	// that came meanwhile got its arrival time that much late, at most.
	Rounds Histogram
	// Read and Written count packets at the devices.
	Read, Written uint64
	// Unrouted packets had no destination in the lab; Refused ones were not taken by the kernel.
	Unrouted, Refused uint64
	// CPU is the processor time the emulator used, including what the kernel did on its account: the receiving half
	// of the network stack, mostly.
	CPU   time.Duration
	Links []Counters
}

// What became of a packet, in reply.Ledger.
const (
	ledgerCame = '.'
	ledgerLost = 'x'
)

func ledgerText(lost []bool) string {
	b := bytes.Repeat([]byte{ledgerCame}, len(lost))
	for i, gone := range lost {
		if gone {
			b[i] = ledgerLost
		}
	}
	return string(b)
}

func readLedger(text string) []bool {
	lost := make([]bool, len(text))
	for i := range lost {
		lost[i] = text[i] == ledgerLost
	}
	return lost
}
