package main

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/pion/ice/v4"
	"github.com/pion/webrtc/v4"

	"github.com/leeway-video/leeway/internal/wire/peer"
)

// link is a peer connection without any of the manners of rtclink: it sends what it is told on whatever channel.
type link struct {
	pc   *webrtc.PeerConnection
	plan peer.Plan

	mu       sync.Mutex
	channels map[string]*webrtc.DataChannel // guarded by mu
	next     int                            // guarded by mu: data channel to write to next
	opened   bool                           // guarded by mu

	ready  func() // every planned channel is open
	handle func(control []byte)
}

func newLink(closed func()) (*link, error) {
	var e webrtc.SettingEngine
	e.SetIncludeLoopbackCandidate(true)
	e.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	e.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	pc, err := webrtc.NewAPI(webrtc.WithSettingEngine(e)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, fmt.Errorf("hostile: peer connection: %w", err)
	}
	l := &link{pc: pc, plan: peer.DefaultPlan, channels: map[string]*webrtc.DataChannel{}}
	pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		if s == webrtc.PeerConnectionStateFailed || s == webrtc.PeerConnectionStateClosed {
			closed()
		}
	})
	pc.OnDataChannel(l.adopt)
	return l, nil
}

// offer makes the planned channels and the offer.
func (l *link) offer() (string, error) {
	labels := []string{peer.ControlLabel, peer.AckLabel}
	for i := range l.plan.Data {
		labels = append(labels, peer.DataLabel+strconv.Itoa(i))
	}
	for _, label := range labels {
		ordered := label == peer.ControlLabel
		dc, err := l.pc.CreateDataChannel(label, &webrtc.DataChannelInit{Ordered: &ordered})
		if err != nil {
			return "", fmt.Errorf("hostile: channel %s: %w", label, err)
		}
		l.adopt(dc)
	}
	sdp, err := l.pc.CreateOffer(nil)
	if err != nil {
		return "", fmt.Errorf("hostile: offer: %w", err)
	}
	return l.describe(sdp)
}

func (l *link) answer(offer string) (string, error) {
	if err := l.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}); err != nil {
		return "", fmt.Errorf("hostile: answer: %w", err)
	}
	sdp, err := l.pc.CreateAnswer(nil)
	if err != nil {
		return "", fmt.Errorf("hostile: answer: %w", err)
	}
	return l.describe(sdp)
}

// describe takes a description as the local one and returns it with every candidate in it: there is no server to ask for
// candidates but the kernel, so nothing is gained by trickling.
func (l *link) describe(sdp webrtc.SessionDescription) (string, error) {
	gathered := webrtc.GatheringCompletePromise(l.pc)
	if err := l.pc.SetLocalDescription(sdp); err != nil {
		return "", fmt.Errorf("hostile: %s: %w", sdp.Type, err)
	}
	<-gathered
	return l.pc.LocalDescription().SDP, nil
}

func (l *link) accept(answer string) error {
	if err := l.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}); err != nil {
		return fmt.Errorf("hostile: accept: %w", err)
	}
	return nil
}

func (l *link) adopt(dc *webrtc.DataChannel) {
	dc.OnOpen(func() {
		l.mu.Lock()
		l.channels[dc.Label()] = dc
		open := !l.opened && l.channels[peer.ControlLabel] != nil
		for i := range l.plan.Data {
			open = open && l.channels[peer.DataLabel+strconv.Itoa(i)] != nil
		}
		l.opened = l.opened || open
		l.mu.Unlock()
		if open {
			l.ready()
		}
	})
	if dc.Label() == peer.ControlLabel {
		dc.OnMessage(func(m webrtc.DataChannelMessage) { l.handle(m.Data) })
	}
}

func (l *link) channel(label string) *webrtc.DataChannel {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.channels[label]
}

// Control implements wire.
func (l *link) Control(b []byte) error { return l.channel(peer.ControlLabel).Send(b) }

// Data implements wire; the data channels take turns.
func (l *link) Data(b []byte) error {
	l.mu.Lock()
	l.next = (l.next + 1) % l.plan.Data
	dc := l.channels[peer.DataLabel+strconv.Itoa(l.next)]
	l.mu.Unlock()
	return dc.Send(b)
}

// Ack implements wire.
func (l *link) Ack(b []byte) error {
	if dc := l.channel(peer.AckLabel); dc != nil {
		return dc.Send(b)
	}
	return nil
}

// OpenChannel implements wire.
func (l *link) OpenChannel(label string) error {
	_, err := l.pc.CreateDataChannel(label, nil)
	return err
}

// MaxMessage implements wire.
func (l *link) MaxMessage() int { return l.plan.Message }
