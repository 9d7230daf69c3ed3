package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leeway-video/leeway/internal/lab/armwire"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wsconn"
)

func controller(t *testing.T, cfg Config) (*Controller, context.Context) {
	t.Helper()
	current := goleak.IgnoreCurrent()
	cfg.Listen = "127.0.0.1:0"
	c, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(func() {
		_ = c.Close()
		cancel()
		goleak.VerifyNone(t, current)
	})
	return c, ctx
}

// dial is an arm that says what the test wants.
func dial(t *testing.T, ctx context.Context, c *Controller, texts ...string) *wsconn.Conn {
	t.Helper()
	conn, err := wsconn.Dial(ctx, c.URL(), wsconn.Config{Subprotocol: armwire.Subprotocol, MaxMessage: armwire.MaxMessage}, wsconn.DialConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close(wsconn.CloseDone, "")
		conn.Wait()
	})
	for _, text := range texts {
		if err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

// registered is an arm that a controller has taken, with its connection.
func registered(t *testing.T) (context.Context, *wsconn.Conn, *Arm) {
	t.Helper()
	c, ctx := controller(t, Config{})
	conn := dial(t, ctx, c, registers)
	a, err := c.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, conn, a
}

const registers = `{"jattack":"register","transaction":"r","body":{"version":1,"name":"a"}}`

func TestArmsThatDoNotRegister(t *testing.T) {
	for _, text := range []string{
		`hello`, `{"jattack":"webrtcup","id":"s"}`, `{"jattack":"success","transaction":"t"}`,
		`{"jattack":"register","transaction":"r","body":{"version":9,"name":"a"}}`,
		`{"jattack":"register","transaction":"r","body":{"version":1,"name":"a","token":"wrong"}}`,
	} {
		c, ctx := controller(t, Config{Token: "right"})
		conn := dial(t, ctx, c, text)
		for err := error(nil); err == nil; {
			var b []byte
			if b, err = conn.Read(); err == nil {
				if m, bad := armwire.Decode(b); bad != nil || m.Kind != armwire.Failure {
					t.Errorf("%s: the controller says %s", text, b)
				}
			}
		}
		select {
		case a := <-c.arrived:
			t.Errorf("%s: arm %q was taken", text, a.Name)
		default:
		}
	}
}

// TestArmsThatComeAndGoDoNotHoldTheController: no run takes those that come after its own.
func TestArmsThatComeAndGoDoNotHoldTheController(t *testing.T) {
	c, ctx := controller(t, Config{})
	for i := range maxArms + 1 {
		conn := dial(t, ctx, c, fmt.Sprintf(`{"jattack":"register","transaction":"r","body":{"version":1,"name":"a%d"}}`, i))
		if _, err := conn.Read(); err != nil {
			t.Fatal(err)
		}
		conn.Close(wsconn.CloseDone, "")
		conn.Wait()
	}
	closed := make(chan struct{})
	go func() {
		_ = c.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
		t.Error("the controller does not end")
		for len(c.arrived) > 0 {
			<-c.arrived
		}
	}
}

func TestArmsThatLie(t *testing.T) {
	for _, text := range []string{
		`{"jattack":"statistics","body":{"at_us":-1}}`, `{"jattack":"statistics","body":{"sessions":3}}`, `garbage`,
		`{"jattack":"create-session","transaction":"t","id":"s"}`, `{"jattack":"error","transaction":"t1","body":17}`,
	} {
		ctx, conn, a := registered(t)
		asked := make(chan error, 1)
		go func() {
			_, err := a.Call(ctx, armwire.GetState, "", nil)
			asked <- err
		}()
		for { // the answer to register, then the command
			b, err := conn.Read()
			if err != nil {
				t.Fatal(err)
			}
			if m, _ := armwire.Decode(b); m.Kind == armwire.GetState {
				break
			}
		}
		if err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		err := <-asked
		var typed *armwire.Error
		if !errors.As(err, &typed) {
			t.Errorf("%s: the command ended with %v", text, err)
		}
	}
}

func TestACommandEndsWithItsArm(t *testing.T) {
	ctx, conn, a := registered(t)
	asked := make(chan error, 1)
	go func() {
		_, err := a.Create(ctx, "s", armwire.SessionBody{})
		asked <- err
	}()
	for range 2 {
		if _, err := conn.Read(); err != nil {
			t.Fatal(err)
		}
	}
	conn.Close(wsconn.CloseDone, "")
	if err := <-asked; !errors.Is(err, ErrArm) {
		t.Errorf("the command ended with %v", err)
	}
	<-a.Gone()
}

// TestASessionThatComesTooLateIsEnded: its client has gone, and a viewer would play on.
func TestASessionThatComesTooLateIsEnded(t *testing.T) {
	ctx, conn, a := registered(t)
	patient, leave := context.WithCancel(ctx)
	defer leave()
	created := make(chan error, 1)
	go func() {
		_, err := a.Create(patient, "s", armwire.SessionBody{})
		created <- err
		_, _ = a.Call(ctx, armwire.GetState, "", nil) // what comes after it
	}()
	var said []armwire.Kind
	for len(said) < 4 && !slices.Contains(said, armwire.GetState) {
		b, err := conn.Read()
		if err != nil {
			t.Fatal(err)
		}
		m, _ := armwire.Decode(b)
		if said = append(said, m.Kind); m.Kind == armwire.CreateSession {
			leave()
			if err := <-created; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	}
	if want := []armwire.Kind{armwire.Success, armwire.CreateSession, armwire.DestroySession, armwire.GetState}; !slices.Equal(said, want) {
		t.Errorf("the controller says %v", said)
	}
}

func TestNamesAreOfOneArm(t *testing.T) {
	c, ctx := controller(t, Config{})
	dial(t, ctx, c, registers)
	if _, err := c.Next(ctx); err != nil {
		t.Fatal(err)
	}
	second := dial(t, ctx, c, registers)
	b, err := second.Read()
	if m, _ := armwire.Decode(b); err != nil || m.Kind != armwire.Failure {
		t.Errorf("a second arm of the name: %s, %v", b, err)
	}
}

// TestAnArmThatIsGoneIsNotTaken: it was started again before a run came to it, and the run would count it as lost.
func TestAnArmThatIsGoneIsNotTaken(t *testing.T) {
	c, ctx := controller(t, Config{})
	first := dial(t, ctx, c, registers)
	if _, err := first.Read(); err != nil {
		t.Fatal(err)
	}
	first.Close(wsconn.CloseDone, "")
	testkit.Eventually(t, "the first one is gone", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.arms) == 0
	})
	dial(t, ctx, c, registers)
	if a, err := c.Next(ctx); err != nil || a.Err() != nil {
		t.Errorf("%v; the arm that is taken: %v", err, a.Err())
	}
}

// TestALaterSessionOfAClientIsLostToo: a client of a mesh is lost with any of its connections, not only with the one that is waited for.
func TestALaterSessionOfAClientIsLostToo(t *testing.T) {
	ctx, conn, a := registered(t)
	conn.Close(wsconn.CloseDone, "")
	<-a.Gone() // so that nothing is to be destroyed
	u := &run{}
	const clients = 20 // of which half were counted by chance
	for range clients {
		up, lost := &Session{Arm: a, down: make(chan struct{})}, &Session{Arm: a, down: make(chan struct{})}
		lost.end("failed")
		(&group{Group: &Group{}, u: u}).stay(ctx, &client{sessions: []*Session{up, lost}}, time.Now())
	}
	if n := u.counts.lost.Load(); n != clients {
		t.Errorf("%d of %d clients were lost", n, clients)
	}
}

// TestAnArmTooManyTakesNoPlace: arms that dial in beyond those of the scenario come before those that the run starts, one of which is the peer.
func TestAnArmTooManyTakesNoPlace(t *testing.T) {
	c, ctx := controller(t, Config{})
	register := func(name string) {
		conn := dial(t, ctx, c, strings.Replace(registers, `"a"`, strconv.Quote(name), 1))
		if _, err := conn.Read(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		register(fmt.Sprintf("far-%d", i))
	}
	u := &run{Runner: &Runner{
		Scenario:   Scenario{Arms: Arms{Local: 1, Remote: 1}, Groups: []Group{{Behavior: Idle}}},
		Controller: c, Log: io.Discard,
		Start: func(l Launch) (func() error, error) { register(l.Name); return nil, nil },
	}}
	defer u.over.Store(true)
	if _, err := u.gather(ctx); err != nil || u.peer == nil || len(u.arms) != 2 {
		t.Errorf("%v; %d arms, the peer is %v", err, len(u.arms), u.peer)
	}
}

// TestWhoseFaultItIs that a client did not connect.
func TestWhoseFaultItIs(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("x: %w", armwire.Fail(armwire.PortInUse, "x")): true, armwire.Fail(armwire.Failed, "too many open files"): true,
		armwire.Fail(armwire.BadSDP, "x"): false, &EndpointError{}: false, context.DeadlineExceeded: false, ErrDown: false,
		&net.OpError{Err: os.NewSyscallError("socket", syscall.EMFILE)}: true, &net.OpError{Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}: false,
	} {
		if got := unplaced(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestTheLastSecondOfARunCounts: once its viewer has left the arm tells of the time before, late, and then of all.
func TestTheLastSecondOfARunCounts(t *testing.T) {
	c, ctx := controller(t, Config{})
	conn := dial(t, ctx, c, registers)
	const asked = 20
	statistics := func(at int) string {
		played := 400
		if at > asked {
			played = 900
		}
		return fmt.Sprintf(`"body":{"at_us":%d,"viewers":{"played_ms":%d,"stalled_ms":100}}}`, at, played)
	}
	var arm sync.WaitGroup
	defer arm.Wait()
	defer conn.Close(wsconn.CloseDone, "")
	arm.Go(func() {
		for {
			b, err := conn.Read()
			if err != nil {
				return
			}
			m, _ := armwire.Decode(b)
			text := fmt.Sprintf(`{"jattack":"success","transaction":%q}`, m.Transaction)
			switch m.Kind {
			case armwire.DestroySession:
				_ = conn.Write([]byte(text))
				text = fmt.Sprintf(`{"jattack":"destroyed","id":%q}`, m.ID)
			case armwire.GetState:
				text = fmt.Sprintf(`{"jattack":"success","transaction":%q,`, m.Transaction) + statistics(asked)
				arm.Go(func() {
					tick := time.NewTicker(10 * time.Millisecond)
					defer tick.Stop()
					for at := asked / 2; conn.Write([]byte(`{"jattack":"statistics",`+statistics(at))) == nil; at += asked {
						<-tick.C
					}
				})
			case armwire.Success:
				continue
			}
			_ = conn.Write([]byte(text)) // the next read tells of a connection that is gone
		}
	})
	r := Runner{Controller: c, Log: io.Discard, Scenario: Scenario{
		Arms: Arms{Remote: 1}, Groups: []Group{{Behavior: Viewer, Clients: 1, Hold: 10 * time.Millisecond}},
	}}
	got, err := r.Run(ctx)
	if err != nil || got.Figures["stall_ratio"] != 0.1 {
		t.Errorf("%v, %v", err, got)
	}
}
