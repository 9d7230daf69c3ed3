package emulator

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batch is how many packets are read from one device before deliveries have their turn again.
const batch = 32

// realTimePriority is low among real-time priorities, and above everything that has none.
const realTimePriority = 10

// loop moves packets between devices and engine. One thread does everything; what others want is sent to it.
type loop struct {
	engine *Engine
	tuns   []int
	epoll  int
	wake   int // eventfd: something is in asks
	asks   chan func(now time.Duration)
	stop   bool
	start  time.Time
	stats  Stats
}

func newLoop(cfg Config, tuns []int) (*loop, error) {
	l := &loop{tuns: tuns, asks: make(chan func(time.Duration), 1), start: time.Now()}
	var err error
	if l.engine, err = NewEngine(cfg, l.deliver); err != nil {
		return nil, err
	}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	for i, fd := range append([]int{l.wake}, tuns...) {
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i - 1)} // the port's number, −1 for wake
		if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
			return nil, fmt.Errorf("epoll: device %d: %w", i-1, err)
		}
	}
	return l, nil
}

// ask has f called by the loop's thread and waits for it.
func (l *loop) ask(f func(now time.Duration)) {
	done := make(chan struct{})
	l.asks <- func(now time.Duration) {
		defer close(done)
		f(now)
	}
	one := [8]byte{1}
	_, _ = unix.Write(l.wake, one[:])
	<-done
}

func (l *loop) now() time.Duration { return time.Since(l.start) }

// run moves packets until stop is set by what is asked.
func (l *loop) run() error {
	runtime.LockOSThread()
	l.stats.RealTime = unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: realTimePriority,
	}, 0) == nil
	if !l.stats.RealTime {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	}
	events := make([]unix.EpollEvent, 64)
	for !l.stop {
		n, err := l.wait(events)
		if err != nil {
			return err
		}
		begin := l.now()
		l.engine.Run(begin)
		for _, e := range events[:n] {
			if e.Fd < 0 {
				l.answer()
				continue
			}
			if err := l.read(int(e.Fd)); err != nil {
				return err
			}
		}
		l.stats.Rounds.add(l.now() - begin)
	}
	return nil
}

// wait sleeps until a device has something or a packet is due.
func (l *loop) wait(events []unix.EpollEvent) (int, error) {
	var timeout *unix.Timespec
	if at, ok := l.engine.Next(); ok {
		ts := unix.NsecToTimespec(int64(max(at-l.now(), 0)))
		timeout = &ts
	}
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epoll),
		uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(unsafe.Pointer(timeout)), 0, 0)
	if errno == unix.EINTR {
		return 0, nil
	}
	if errno != 0 {
		return 0, os.NewSyscallError("epoll_pwait2", errno)
	}
	return int(n), nil
}

// read takes a batch from a device, and gives deliveries their turn as it goes.
func (l *loop) read(port int) error {
	for range batch {
		p := l.engine.Packet()
		n, err := unix.Read(l.tuns[port], p.Data[:])
		if err != nil {
			l.engine.Free(p)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				return nil
			}
			return fmt.Errorf("device %d: %w", port, err)
		}
		l.stats.Read++
		p.Size = n
		l.engine.Arrive(port, p, l.now())
	}
	return nil
}

func (l *loop) deliver(port int, p *Packet, due time.Duration) {
	l.stats.Late.add(l.now() - due)
	if _, err := unix.Write(l.tuns[port], p.Data[:p.Size]); err != nil {
		l.stats.Refused++
		return
	}
	l.stats.Written++
}

func (l *loop) answer() {
	var drain [8]byte
	_, _ = unix.Read(l.wake, drain[:])
	for {
		select {
		case f := <-l.asks:
			f(l.now())
		default:
			return
		}
	}
}

func (l *loop) snapshot(now time.Duration, mark bool) *Stats {
	s := l.stats
	s.Links = l.engine.Counters(now, mark)
	s.Unrouted = l.engine.unrouted
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil {
		s.CPU = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	if mark {
		l.stats.Late.Max, l.stats.Rounds.Max = 0, 0
	}
	return &s
}
