package transportbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"sync"

	"github.com/leeway-video/leeway/internal/lab/bench/demopage"
)

// pageStack is an end in a browser of its own, Chromium by default flags or Firefox, whose page (web/apps/bench/src/transport) has
// the library's background lane.
type pageStack struct {
	place
	page    *demopage.Orders
	browser *demopage.Browser
	tabs    *tabs // of a Chromium whose page is hidden
	seen    sync.Once
	shown   chan struct{} // closed once the page is hidden, or visible, as it is to be
}

// pageOrder is what a page is told, in the words of web/apps/bench/src/transport/parent.ts.
type pageOrder struct {
	message
	Link  int        `json:"link"` // the first has no other name
	Setup *pageSetup `json:"setup,omitempty"`
}

type pageSetup struct {
	Send bool `json:"send"`
	Asks bool `json:"asks"`
}

// pageWord is what a page says beside what every end says.
type pageWord struct {
	message
	Hidden bool   `json:"hidden"`
	Why    string `json:"why"`
}

// What pages say beside.
const (
	saySetup  = "setup"
	sayBegin  = "begin"
	sayReady  = "ready"
	sayFailed = "failed"
)

func newPageStack(ctx context.Context, p place) (*pageStack, error) {
	s := &pageStack{place: p, shown: make(chan struct{})}
	s.page = demopage.NewOrders(demopage.Script(), s.hear)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := demopage.Options{Listener: listener, Page: s.page, Query: "?transport"}
	switch p.setup.Page {
	case firefoxPage:
		// It opens a tab for each address, and the first is before the others.
		o.Firefox, o.Flags = true, []string{"about:blank"}
	case hiddenPage, sharedPage:
		front := "about:blank"
		if p.setup.Page == sharedPage {
			front = "http://" + listener.Addr().String() + "/?tab"
		}
		if s.tabs, err = newTabs(front); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
		o.Flags, o.Start = []string{"--remote-debugging-pipe"}, s.tabs.start
	}
	if s.browser, err = demopage.Launch(ctx, o); err != nil {
		return nil, err
	}
	s.page.Tell(pageOrder{message: message{Type: saySetup}, Setup: &pageSetup{Send: p.setup.Send, Asks: p.setup.Kind == asked}})
	return s, s.wait(ctx)
}

// wait returns when the page is there.
func (s *pageStack) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ready)
	defer cancel()
	select {
	case <-s.shown:
		return nil
	case err := <-s.browser.Ended:
		return errors.Join(fmt.Errorf("the browser ended by itself: %v", err), s.close())
	case <-ctx.Done():
		return errors.Join(errors.New("the page did not come up"), s.close())
	}
}

// hear takes what the page says.
func (s *pageStack) hear(w pageWord) error {
	switch w.Type {
	case sayReady:
		switch {
		case w.Hidden == (s.setup.Page != visiblePage):
			s.seen.Do(func() { close(s.shown) })
		case s.tabs != nil:
			return s.tabs.open() // which is in front of this one then
		}
	case sayFailed:
		fmt.Fprintf(os.Stderr, "transport end in a browser: %s\n", w.Why)
	case saySignal:
		s.named(w.Signal)
		s.say(w.message)
	default:
		s.say(w.message)
	}
	return nil
}

// hiddenName is what a browser says in place of its own address. A peer that hears it asks the network by multicast, which does
// not pass routers; what it would hear there is filled in.
var hiddenName = regexp.MustCompile(`[0-9a-f-]+\.local\b`)

func (s *pageStack) named(m *signal) {
	if m == nil {
		return
	}
	if m.Description != nil {
		m.Description.SDP = hiddenName.ReplaceAllString(m.Description.SDP, s.setup.Addr)
	}
	if m.Candidate != nil {
		m.Candidate.Candidate = hiddenName.ReplaceAllString(m.Candidate.Candidate, s.setup.Addr)
	}
}

func (s *pageStack) begin(link int) error {
	s.page.Tell(pageOrder{message: message{Type: sayBegin}, Link: link})
	return nil
}

func (s *pageStack) handle(link int, m signal) error {
	s.page.Tell(pageOrder{message: message{Type: saySignal, Signal: &m}, Link: link})
	return nil
}

func (s *pageStack) start() { s.page.Tell(pageOrder{message: message{Type: sayStart}}) }

func (s *pageStack) burst(bytes int) {
	s.page.Tell(pageOrder{message: message{Type: sayBurst, Bytes: bytes}})
}

func (s *pageStack) close() error {
	s.page.Close()
	err := s.browser.Close()
	if s.tabs != nil {
		err = errors.Join(err, s.tabs.close())
	}
	return err
}

// tabs opens tabs in a browser, through the pipe by which its makers' tools order it about: a page is hidden when another
// one of its window is before it.
type tabs struct {
	front           string      // what is opened
	orders, answers *os.File    // our ends
	theirs          [2]*os.File // the browser's: what it reads, and writes
}

func newTabs(front string) (*tabs, error) {
	t := &tabs{front: front}
	var err error
	if t.theirs[0], t.orders, err = os.Pipe(); err != nil {
		return nil, err
	}
	if t.answers, t.theirs[1], err = os.Pipe(); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// start starts the browser with the pipe, as its files 3 and 4.
func (t *tabs) start(cmd *exec.Cmd) error {
	cmd.ExtraFiles = t.theirs[:]
	err := cmd.Start()
	for _, f := range t.theirs {
		_ = f.Close()
	}
	go func() { _, _ = io.Copy(io.Discard, t.answers) }() // until the browser ends
	return err
}

// open opens the tab that is before the others.
func (t *tabs) open() error {
	_, err := fmt.Fprintf(t.orders, `{"id":1,"method":"Target.createTarget","params":{"url":%q}}`+"\x00", t.front)
	return err
}

func (t *tabs) close() error {
	for _, f := range []*os.File{t.theirs[0], t.theirs[1], t.orders, t.answers} {
		if f != nil {
			_ = f.Close() // those of the browser are closed already
		}
	}
	return nil
}
