package emulator

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/leeway-video/leeway/internal/procstat"
)

// batch is how many packets are read from one device before deliveries have their turn again.
const batch = 32

// tick is the longest sleep. Nothing needs it but the emulator's honesty: a process that was stopped while it slept
// learns it from the clock only.
const tick = 2 * time.Millisecond

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
	l.stats.RealTime = prefer() == nil
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // matters without real-time priority only
	events := make([]unix.EpollEvent, 64)
	for !l.stop {
		n, due, err := l.wait(events)
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
		l.stats.Rounds.add(l.now() - min(begin, due))
	}
	return nil
}

// prefer puts every thread of this process before those of all others. Every thread, because this one waits for the
// runtime's now and then: with the others at an ordinary priority, a busy machine stopped it for up to 100 ms.
func prefer() error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, task := range tasks { // threads that come later inherit it
		id, err := strconv.Atoi(task.Name())
		if err != nil {
			return err
		}
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: realTimePriority}
		if err := unix.SchedSetAttr(id, &attr, 0); err != nil {
			return errors.Join(err, unix.Setpriority(unix.PRIO_PROCESS, 0, -20))
		}
	}
	return nil
}

// wait sleeps until a device has something or a packet is due, and no longer than until due.
func (l *loop) wait(events []unix.EpollEvent) (n int, due time.Duration, err error) {
	now := l.now()
	due = now + tick
	if at, ok := l.engine.Next(); ok {
		due = max(min(due, at), now)
	}
	timeout := unix.NsecToTimespec(int64(due - now))
	ready, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epoll),
		uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(unsafe.Pointer(&timeout)), 0, 0)
	if errno == unix.EINTR {
		return 0, due, nil
	}
	if errno != 0 {
		return 0, due, os.NewSyscallError("epoll_pwait2", errno)
	}
	return int(ready), due, nil
}

// read takes a batch from a device, and gives deliveries their turn as it goes.
func (l *loop) read(port int) error {
	for range batch {
		p := l.engine.Packet()
		n, errno := transfer(unix.SYS_READ, l.tuns[port], p.Data[:])
		if errno != 0 {
			l.engine.Free(p)
			if errno == unix.EAGAIN || errno == unix.EINTR {
				return nil
			}
			return fmt.Errorf("device %d: %w", port, os.NewSyscallError("read", errno))
		}
		l.stats.Read++
		p.Size = n
		l.engine.Arrive(port, p, l.now())
	}
	return nil
}

// transfer reads or writes without telling Go's scheduler: the devices do not block, and the telling costs a tenth of
// the emulator's time.
func transfer(call uintptr, fd int, data []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)))
	return int(n), errno
}

func (l *loop) deliver(port int, p *Packet, due time.Duration) {
	l.stats.Late.add(l.now() - due)
	if _, errno := transfer(unix.SYS_WRITE, l.tuns[port], p.Data[:p.Size]); errno != 0 {
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
	s.CPU = procstat.CPU()
	if mark {
		l.stats.Late.Max, l.stats.Rounds.Max = 0, 0
	}
	return &s
}
