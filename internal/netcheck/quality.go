package netcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/leeway-video/leeway/internal/netstat"
	"github.com/leeway-video/leeway/internal/qualitylink"
	"github.com/leeway-video/leeway/internal/wire/quality"
)

// MessageSize is the size of the quality test's messages, bytes: no two fit into a packet, or those that SCTP sends together would be
// lost together.
const MessageSize = 600

const (
	echoInterval  = 50_000
	leastInterval = 2_000 // µs
	leastMessages = 10
	mostInterval  = 1_000_000 // µs
	mostOnTheWay  = 40        // messages of a stream
	streamShare   = 4         // of the throughput, one in so many parts at most
	echoShare     = 8
	signalTime    = 25 * time.Second // for the offer's answer and the opening
	openTime      = 10 * time.Second // from the answer; a far line has openTrips times the answer's time
	openTrips     = 8
)

// Class is what a mark came to (spec/probe.md, Results).
type Class struct {
	DSCP    int              `json:"dscp"`
	Up      [][2]int64       `json:"up,omitempty"`   // DSCP and packets that the server read
	Down    [][2]int64       `json:"down,omitempty"` // that this end read
	OneWay  string           `json:"one_way,omitempty"`
	Figures []netstat.Figure `json:"figures"`
}

// quality measures loss, order and delay each way.
func (c *check) quality(ctx context.Context, r *Results) error {
	mark := 0
	if len(c.DSCP) == 1 && !slices.Contains(c.Phases, Classes) {
		mark = c.DSCP[0]
	}
	class, err := c.class(ctx, mark, r.rates(1))
	if err != nil {
		return err
	}
	r.Figures, r.OneWay = append(r.Figures, class.Figures...), class.OneWay
	return nil
}

// classes measures several marks at once.
func (c *check) classes(ctx context.Context, r *Results) error {
	type outcome struct {
		class Class
		err   error
	}
	all, each := make([]chan outcome, len(c.DSCP)), r.rates(len(c.DSCP))
	for i, mark := range c.DSCP {
		all[i] = make(chan outcome, 1)
		go func() {
			class, err := c.class(ctx, mark, each)
			all[i] <- outcome{class, err}
		}()
	}
	var errs []error
	for _, one := range all {
		o := <-one
		if o.err == nil {
			r.Classes = append(r.Classes, o.class)
		}
		errs = append(errs, o.err)
	}
	return errors.Join(errs...)
}

// line opens a connection of the quality test, and says how it is closed.
func (c *check) line(ctx context.Context, mark int) (*Line, func(), error) {
	socket, err := qualitylink.Listen(net.JoinHostPort(c.server.here().String(), "0"))
	if err != nil {
		return nil, nil, err
	}
	host, err := qualitylink.NewHost(socket)
	if err != nil {
		return nil, nil, errors.Join(err, socket.Close())
	}
	opening, cancel := context.WithTimeoutCause(ctx, signalTime, qualitylink.ErrOpen)
	defer cancel()
	line, err := Dial(opening, host, c.server.here(), mark, c.offer(mark))
	if err != nil {
		host.Close()
		return nil, nil, err
	}
	return line, func() {
		line.Close()
		host.Close()
	}, nil
}

// class runs the streams of one mark.
func (c *check) class(ctx context.Context, mark int, line rates) (class Class, err error) {
	class = Class{DSCP: mark, Figures: []netstat.Figure{}}
	l, end, err := c.line(ctx, mark)
	if err != nil {
		return class, err
	}
	defer end()
	results, err := l.Run(ctx, runs(c.Messages, c.Duration, l.answered, line))
	if err != nil {
		return class, err
	}
	class.add(results[0], results[1], results[2])
	for _, m := range results[0].Marks {
		class.Up = append(class.Up, [2]int64{m.DSCP, m.Packets})
	}
	if marks, ok := l.link.Marks(); ok {
		for dscp, n := range marks {
			if n > 0 {
				class.Down = append(class.Down, [2]int64{int64(dscp), n})
			}
		}
	}
	return class, nil
}

// rates are a line's throughput, bit/s; 0: not known.
type rates struct{ up, down int64 }

// rates are those that so many tests at once have each.
func (r *Results) rates(tests int) (each rates) {
	if v, ok := r.Find(netstat.Throughput, netstat.Up); ok {
		each.up = int64(v) / int64(tests)
	}
	if v, ok := r.Find(netstat.Throughput, netstat.Down); ok {
		each.down = int64(v) / int64(tests)
	}
	return each
}

// thin is the least interval at which messages take one of so many parts of a rate, µs; 0: the rate is not known.
func thin(rate, parts int64) int64 {
	if rate <= 0 {
		return 0
	}
	return min(mostInterval, MessageSize*8*parts*1_000_000/rate)
}

// runs are the three streams of a test of a length. A line that answers late gets fewer messages a second: else the window with which SCTP
// begins would hold them back. A thin line gets fewer, too: else they would fill its queue.
func runs(messages int64, length, answered time.Duration, line rates) []quality.Run {
	interval := max(leastInterval, length.Microseconds()/messages)
	far := answered.Microseconds() / mostOnTheWay
	way := func(stream uint16, d quality.Direction, rate int64) quality.Run {
		r := quality.Run{Stream: stream, Direction: d, Messages: messages, Interval: interval, Size: MessageSize}
		if slow := max(far, thin(rate, streamShare)); slow > interval {
			r.Messages, r.Interval = min(messages, max(leastMessages, messages*interval/slow)), slow
		}
		return r
	}
	up, down := way(1, quality.Up, line.up), way(2, quality.Down, line.down)
	echo := quality.Run{Stream: 3, Direction: quality.Both, Interval: max(echoInterval, thin(line.up, echoShare), thin(line.down, echoShare)), Size: MessageSize}
	echo.Messages = max(leastMessages, min(up.Messages, up.Messages*up.Interval/echo.Interval))
	return []quality.Run{up, down, echo}
}

// add computes the figures of the three streams.
func (c *Class) add(up, down, echo StreamResult) {
	there, here := up.There.Pattern(), down.Here.Pattern()
	c.Figures = append(c.Figures, there.Figures(netstat.Up)...)
	c.Figures = append(c.Figures, here.Figures(netstat.Down)...)
	c.Figures = append(c.Figures, echo.Here.Pattern().Figures(netstat.RoundTrip)...)
	var trips []int64
	for _, e := range echo.Exchanges {
		if rtt := e.RTT(); rtt >= 0 {
			trips = append(trips, rtt)
		}
	}
	slices.Sort(trips)
	if len(trips) > 0 {
		c.Figures = append(c.Figures, netstat.RoundTripTime.Of(netstat.RoundTrip, float64(netstat.Percentile(trips, 50))/1e6))
	}
	offset, ok := netstat.Clocks(echo.Exchanges)
	c.OneWay = "clock"
	if !ok || len(down.Here.Arrivals) == 0 || len(up.There.Arrivals) == 0 {
		return
	}
	// The last message is the farthest from the echo that the offset comes from, or the first is.
	uncertainty := max(offset.Uncertainty(down.Here.Arrivals[0].Received), offset.Uncertainty(down.Here.Arrivals[len(down.Here.Arrivals)-1].Received))
	upward, downward := netstat.Percentile(there.Delays(offset.Clock), 50), netstat.Percentile(here.Delays(-offset.Clock), 50)
	if netstat.OneWay(upward, uncertainty) {
		c.OneWay = ""
		c.Figures = append(c.Figures, netstat.OneWayDelay.Of(netstat.Up, float64(upward)/1e6))
	}
	if netstat.OneWay(downward, uncertainty) {
		c.OneWay = ""
		c.Figures = append(c.Figures, netstat.OneWayDelay.Of(netstat.Down, float64(downward)/1e6))
	}
}

// offer posts an offer to the server.
func (c *check) offer(mark int) Signaler {
	return func(ctx context.Context, offer string) (string, error) {
		type signal struct {
			Type string `json:"type"`
			SDP  string `json:"sdp"`
		}
		body, err := json.Marshal(signal{"offer", offer})
		if err != nil {
			return "", err
		}
		r, err := c.server.request(ctx, http.MethodPost, c.server.url("/probe/v1/quality", "dscp", fmt.Sprint(mark)), bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		r.Header.Set("Content-Type", "application/json")
		var answer signal
		if err := c.server.answer(r, &answer); err != nil {
			return "", err
		}
		return answer.SDP, nil
	}
}
