package qualitylink

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/dtls/v3"
	dtlsnet "github.com/pion/dtls/v3/pkg/net"
	"github.com/pion/ice/v4"
	"github.com/pion/sctp"

	"github.com/leeway-video/leeway/internal/webrtcend"
	"github.com/leeway-video/leeway/internal/wire/quality"
	"github.com/leeway-video/leeway/internal/wire/sdp"
)

// Line is a connection with the two channels. Its methods may be called from anywhere at once, those that send once Open was called.
type Line struct {
	events   Events
	identity *webrtcend.Identity
	agent    *ice.Agent
	pass     *pass
	leave    func() // gives back what the line has of its socket

	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	begun   atomic.Bool
	rtt     atomic.Int64 // of SCTP, ns

	association *sctp.Association
	quality     *datachannel.DataChannel
	control     *datachannel.DataChannel
	lane
	saying sync.Mutex // SCTP may turn round two messages that are written at once
}

// Send hands a message to the quality channel.
func (l *Line) Send(b []byte) error {
	_, err := l.quality.Write(b)
	return err
}

// Say hands text to the control channel.
func (l *Line) Say(text []byte) error {
	l.saying.Lock()
	defer l.saying.Unlock()
	_, err := l.control.WriteDataChannel(text, true)
	return err
}

// Waiting is how many bytes of both channels SCTP holds.
func (l *Line) Waiting() int { return l.association.BufferedAmount() }

// RTT is SCTP's smoothed round-trip time; 0 before the first.
func (l *Line) RTT() time.Duration {
	return time.Duration(l.association.SRTT() * float64(time.Millisecond))
}

// Marks is how many packets have come with each DSCP; false: that cannot be told.
func (l *Line) Marks() ([quality.MaxDSCP + 1]int64, bool) { return l.pass.counted() }

// Path is the address of the other side and this side's; zero values before there is one.
func (l *Line) Path() (remote, local net.Addr) {
	pair, err := l.agent.GetSelectedCandidatePair()
	if err != nil || pair == nil {
		return nil, nil
	}
	return &net.UDPAddr{IP: net.ParseIP(pair.Remote.Address()), Port: pair.Remote.Port()},
		&net.UDPAddr{IP: net.ParseIP(pair.Local.Address()), Port: pair.Local.Port()}
}

// Close ends the line and returns when nothing of it runs any more. It must not be called by its events.
func (l *Line) Close() {
	if l.begun.CompareAndSwap(false, true) {
		l.abandon()
	}
	l.cancel(ErrClosed)
	l.running.Wait()
}

// Cut ends the line and does not wait.
func (l *Line) Cut() { l.cancel(ErrClosed) }

// run brings a line up and reads it until it ends.
func (l *Line) run(remote *sdp.Description, offering bool) {
	err := l.live(remote, offering)
	if l.association != nil {
		l.association.Abort("")
	}
	_ = l.agent.GracefulClose()
	if cause := context.Cause(l.ctx); cause != nil {
		err = cause
	}
	l.cancel(err)
	l.leave()
	if errors.Is(err, ErrClosed) {
		err = nil
	}
	l.events.Closed(err)
}

func (l *Line) live(remote *sdp.Description, offering bool) error {
	late := time.AfterFunc(quality.OpenTime, func() { l.cancel(ErrOpen) })
	defer late.Stop()
	begin := l.agent.Accept
	if offering {
		begin = l.agent.Dial
	}
	conn, err := begin(l.ctx, remote.Ufrag, remote.Password)
	if err != nil {
		return err
	}
	secure, err := l.secure(conn, remote)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(l.ctx, func() { _ = secure.Close() })
	p := &patience{Conn: secure, rtt: func() time.Duration { return time.Duration(l.rtt.Load()) }}
	l.association, err = sctp.ClientWithOptions(
		sctp.WithNetConn(&webrtcend.Bounded{Conn: p}), sctp.WithLoggerFactory(silent), sctp.WithMTU(webrtcend.MTU), sctp.WithMaxMessageSize(largest),
		sctp.WithMaxReceiveBufferSize(receiveBuffer), sctp.WithMaxReassemblyQueueEntries(mostFragments), sctp.WithMinCwnd(minCwnd), sctp.WithEnableZeroChecksum(true),
	)
	stop()
	if err != nil {
		_ = secure.Close()
		return err
	}
	l.over = l.association
	defer context.AfterFunc(l.ctx, func() { l.association.Abort("") })()
	if err := l.channels(offering, remote.Setup == sdp.Passive); err != nil {
		return err
	}
	confirmed := make(chan struct{})
	l.quality.OnOpen(func() { close(confirmed) })
	l.running.Go(func() { l.read(l.quality, func(b []byte, text bool) { l.events.Message(b, text, time.Now()) }) })
	if offering {
		// Until its channel is confirmed an association sends in order and again what was lost (RFC 8832, section 6).
		select {
		case <-confirmed:
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		}
	}
	late.Stop()
	l.events.Open()
	if !offering {
		l.running.Go(l.acceptLane)
	}
	l.read(l.control, l.events.Control)
	return nil
}

// secure makes keys over a pair of addresses that works.
func (l *Line) secure(conn net.Conn, remote *sdp.Description) (*dtls.Conn, error) {
	packets := dtlsnet.PacketConnFromConn(conn)
	return l.identity.Handshake(l.ctx, packets, conn.RemoteAddr(), remote.Setup == sdp.Passive, remote.Fingerprint, dtls.WithLoggerFactory(silent))
}

// channels makes the two channels, or takes them; channel lane may come before them.
func (l *Line) channels(offering, client bool) error {
	if !offering {
		for l.quality == nil || l.control == nil {
			dc, err := datachannel.Accept(l.association, &datachannel.Config{LoggerFactory: silent})
			if err != nil {
				return err
			}
			if !l.take(dc) {
				return ErrChannels
			}
		}
		return nil
	}
	first := uint16(1) // RFC 8832: the DTLS client has the even numbers
	if client {
		first = 0
	}
	for i, c := range []datachannel.Config{
		{ChannelType: datachannel.ChannelTypePartialReliableRexmitUnordered, Label: labelQuality},
		{ChannelType: datachannel.ChannelTypeReliable, Label: labelControl},
	} {
		c.LoggerFactory = silent
		dc, err := datachannel.Dial(l.association, first+2*uint16(i), &c)
		if err != nil {
			return err
		}
		l.take(dc)
	}
	return nil
}

// take puts a channel to its place; false: it has none.
func (l *Line) take(dc *datachannel.DataChannel) bool {
	switch c := dc.Config; {
	case c.Label == labelQuality && l.quality == nil && c.ChannelType == datachannel.ChannelTypePartialReliableRexmitUnordered && c.ReliabilityParameter == 0:
		l.quality = dc
	case c.Label == labelControl && l.control == nil && c.ChannelType == datachannel.ChannelTypeReliable:
		l.control = dc
	case c.Label == labelLane && l.channel == nil && c.ChannelType == datachannel.ChannelTypeReliableUnordered:
		l.channel = dc
	default:
		return false
	}
	return true
}

// read hands on what comes on a channel until that ends, which ends the line.
func (l *Line) read(dc *datachannel.DataChannel, handle func([]byte, bool)) {
	b := make([]byte, largest)
	for l.ctx.Err() == nil {
		n, text, err := dc.ReadDataChannel(b)
		if err != nil {
			l.cancel(err)
			return
		}
		l.rtt.Store(int64(l.RTT()))
		handle(b[:n], text)
	}
}
