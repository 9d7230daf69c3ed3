package natsbus

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/bus"
)

// watched is a sink that says when the gauge of the connection changes.
type watched struct {
	testkit.Recorder
	connected chan float64
}

func (w *watched) Set(d *metric.Def, v float64, labels ...string) {
	w.Recorder.Set(d, v, labels...)
	if d == defConnected {
		w.connected <- v
	}
}

func (w *watched) becomes(t *testing.T, want float64) {
	t.Helper()
	for {
		select {
		case v := <-w.connected:
			if v == want {
				return
			}
		case <-time.After(patience):
			t.Fatalf("the gauge did not become %v", want)
		}
	}
}

// TestWithoutTheServerNothingHangs: a replica whose bus is down goes on, knows it, and can still be ended.
func TestWithoutTheServerNothingHangs(t *testing.T) {
	noLeaks(t)
	server := open(t, Config{Listen: "127.0.0.1:0"})
	w := &watched{connected: make(chan float64, 16)}
	b := open(t, Config{URL: server.URL(), Metrics: w})
	w.becomes(t, 1)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	w.becomes(t, 0)
	if b.Connected() {
		t.Error("connected without a server")
	}
	if err := b.Publish("test.outage", []byte("kept until the bus is back")); err != nil {
		t.Errorf("publish: %v", err)
	}
	if err := b.Send("test.outage", nil); !errors.Is(err, ErrDown) {
		t.Errorf("send: %v", err)
	}
	stop, err := b.Subscribe("test.outage", func(string, []byte, func([]byte) error) {})
	if err != nil {
		t.Errorf("subscribe: %v", err)
	} else {
		stop()
	}
	if _, err := b.Request(context.Background(), "test.outage", nil); !errors.Is(err, ErrDown) {
		t.Errorf("request: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestRequestsEndWithTheirContext(t *testing.T) {
	noLeaks(t)
	b := open(t, Config{})
	asked := make(chan string, 1)
	if _, err := b.Subscribe("test.silent", func(subject string, _ []byte, _ func([]byte) error) { asked <- subject }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := b.Request(ctx, "test.silent", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestBodiesOfTheLargestSizePass: the server's limit leaves room for what the codec allows.
func TestBodiesOfTheLargestSizePass(t *testing.T) {
	noLeaks(t)
	a := open(t, Config{Listen: "127.0.0.1:0"})
	b := open(t, Config{URL: a.URL()})
	if _, err := a.Subscribe("test.large", func(_ string, data []byte, reply func([]byte) error) { _ = reply(data) }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if got, err := b.Request(ctx, "test.large", make([]byte, bus.MaxMessage)); err != nil || len(got) != bus.MaxMessage {
		t.Errorf("%d bytes came back: %v", len(got), err)
	}
	if err := b.Publish("test.large", make([]byte, bus.MaxMessage+8192)); !errors.Is(err, nats.ErrMaxPayload) {
		t.Errorf("a body above the limit: %v", err)
	}
}

// TestMessagesOfOneSubscriptionKeepTheirOrder: signaling depends on it (an offer comes before its candidates).
func TestMessagesOfOneSubscriptionKeepTheirOrder(t *testing.T) {
	noLeaks(t)
	a := open(t, Config{Listen: "127.0.0.1:0"})
	b := open(t, Config{URL: a.URL()})
	const count = 2000
	done := make(chan string, 1)
	next, parallel := 0, sync.Mutex{}
	if _, err := a.Subscribe("test.order", func(_ string, data []byte, _ func([]byte) error) {
		if !parallel.TryLock() {
			t.Error("two messages of a subscription at a time")
			return
		}
		defer parallel.Unlock()
		if n := int(data[0])<<8 | int(data[1]); n != next {
			t.Errorf("message %d came as number %d", n, next)
		}
		if next++; next == count {
			done <- "all"
		}
	}); err != nil {
		t.Fatal(err)
	}
	for n := range count {
		if err := b.Publish("test.order", []byte{byte(n >> 8), byte(n)}); err != nil {
			t.Fatal(err)
		}
	}
	receive(t, done)
}

func TestABusyPortIsSaidAtOnce(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	began := time.Now()
	b, err := Open(Config{Listen: l.Addr().String()})
	if err == nil {
		_ = b.Close()
		t.Fatal("opened on a port that is in use")
	}
	if took := time.Since(began); took > readyTimeout/2 || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("after %s: %v", took, err)
	}
}

func TestErrorsNameTheKindOfSubjectOnly(t *testing.T) {
	noLeaks(t)
	b := open(t, Config{})
	_ = b.Close()
	_, subscribe := b.Subscribe("leeway.v1.seed.00ff.deliver", nil)
	_, request := b.Request(context.Background(), "leeway.v1.seed.00ff.deliver", nil)
	for _, err := range []error{b.Publish("leeway.v1.seed.00ff.deliver", nil), subscribe, request} {
		if err == nil || !strings.Contains(err.Error(), "seed-deliver") || strings.Contains(err.Error(), "00ff") {
			t.Errorf("%v", err)
		}
	}
}
