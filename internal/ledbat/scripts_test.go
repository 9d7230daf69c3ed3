package ledbat_test

import "github.com/leeway-video/leeway/internal/ledbat"

// scripts make the vectors: some play on the simulated link, some are written out.
var scripts = []struct {
	name, why string
	play      func(*tape)
}{
	{"alone", "Slow start, its end, the first slowdown and the way back, on 1 Mbit/s and 60 ms.", func(t *tape) {
		s, l := road{"", 1, 60_000, 60_000}.open(1)
		t.host(s).link(0, l, 30_000)
		s.run(2 * second)
	}},
	{"gives way", "TCP comes after 1.5 s and leaves after 4 s: the window goes below a packet, the host sends a message a second, and comes back.", func(t *tape) {
		s, l := road{"", 1, 40_000, 60_000}.open(2)
		t.host(s).link(0, l, 20_000)
		tcp := s.rival(1, l, 20_000)
		tcp.reno = true
		s.at(1_500_000, tcp.pump)
		s.at(4*second, func() { tcp.on = false })
		s.run(6_500_000)
	}},
	{"lost packets", "4 % loss on 3 Mbit/s and 40 ms: gaps in the bitmaps, small cuts, at most one in a round trip.", func(t *tape) {
		s, l := road{"", 3, 40_000, 100_000}.open(3)
		l.loss = 0.04
		t.host(s).link(0, l, 20_000)
		s.run(1_200_000)
	}},
	{"two links", "One of two links is behind a slow line: its cap bounds it, the host goes by the lesser delay. Then it is closed.", func(t *tape) {
		s, l := road{"", 2, 40_000, 100_000}.open(4)
		h := t.host(s)
		h.link(0, l, 20_000)
		h.link(1, s.line(0.3, 64_000, 30_000), 30_000)
		s.run(1_500_000)
		h.links = h.links[:1]
		t.do(s.now, "close", 1)
		s.run(1_800_000)
	}},
	{"links fall silent", "Three links see a queue of others; then one sends alone, and what the others saw last does not hold it down.", func(t *tape) {
		s, l := road{"", 3, 40_000, 100_000}.open(8)
		l.jitter = func(now int64) int64 {
			if now > 700_000 && now < 800_000 {
				return 40_000
			}
			return 0
		}
		h := t.host(s)
		for i := range 3 {
			h.link(i, l, 20_000)
		}
		s.run(800_000)
		h.links = h.links[:1]
		s.run(1_800_000)
	}},
	{"links that lie", "Of four links two claim a queue that the others do not see, and one sends no acks: what it holds leaves the flight, a message that nobody else waits for tells, and the honest one goes on.", func(t *tape) {
		s, l := road{"", 3, 40_000, 100_000}.open(13)
		h := t.host(s)
		h.link(0, l, 20_000)
		for i := range 3 {
			h.link(1+i, l, 20_000).lie = &lie{late: since(400_000, 300_000)}
		}
		s.run(700_000)
		h.links[1].lie = &lie{mute: true}
		s.run(1_200_000)
		honest := h.links[0] // has nothing to send, and comes back
		h.links = h.links[1:]
		s.run(1_700_000)
		h.links = append(h.links, honest)
		h.pump()
		s.run(2_200_000)
	}},
	{"somebody waits", "1 Mbit/s and 100 ms: foreground bears 35 ms of a target of 43 ms and more, in every state; then only background is left.", func(t *tape) {
		s, l := road{"", 1, 60_000, 60_000}.open(9)
		t.host(s).link(0, l, 45_000)
		t.do(0, "eager", 0, 1)
		s.run(3 * second / 2)
		t.do(s.now, "eager", 0, 0)
		s.run(5 * second / 2)
	}},
	{"what the line carries", "Foreground on 2 Mbit/s: the ceiling is found and held to; acks are late for half a second; TCP comes and leaves, and the ceiling grows.", func(t *tape) {
		s, l := road{"", 2, 40_000, 60_000}.open(10)
		t.payload = 2312
		b := t.host(s).link(0, l, 20_000)
		t.do(0, "eager", 0, 1)
		s.at(2*second, func() { b.back = 120_000 })
		s.at(5*second/2, func() { b.back = 20_000 })
		tcp := s.rival(1, l, 20_000)
		s.at(3*second, tcp.pump)
		s.at(4*second, func() { tcp.on = false })
		s.run(7 * second)
	}},
	{"bursts", "Foreground on 4 Mbit/s for a tenth of a second in each half: what comes on the whole is no ceiling.", func(t *tape) {
		s, l := road{"", 4, 40_000, 60_000}.open(14)
		h := t.host(s)
		h.link(0, l, 20_000)
		t.do(0, "eager", 0, 1)
		all := h.links
		for at := int64(100_000); at < 4*second; at += second / 2 {
			s.at(at, func() { h.links = nil })
			s.at(at+400_000, func() {
				h.links = all
				h.pump()
			})
		}
		s.run(4 * second)
	}},
	{"late alarms", "Foreground on 2 Mbit/s and 4 ms beside TCP that ends. Alarms ring late now and then: that is no time without anything to send, so the ceiling rises.", func(t *tape) {
		s, l := road{"", 2, 4_000, 20_000}.open(15)
		h := t.host(s)
		h.link(0, l, 2_000)
		t.do(0, "eager", 0, 1)
		tcp := s.rival(1, l, 2_000)
		s.at(second/2, tcp.pump)
		s.at(3*second/2, func() { tcp.on = false })
		all := h.links
		for at := 3 * second / 2; at < 3*second; at += 60_000 {
			s.at(int64(at), func() { h.links = nil })
			s.at(int64(at)+25_000, func() {
				h.links = all
				h.pump()
			})
		}
		s.run(3 * second)
	}},
	{"what goes out besides", "Foreground on 1 Mbit/s; a download begins, and what acknowledges it has a third of the line: the messages leave it room.", func(t *tape) {
		s, l := road{"", 1, 60_000, 40_000}.open(12)
		t.host(s).link(0, l, 30_000)
		t.do(0, "eager", 0, 1)
		for at := int64(2 * second); at < 3*second; at += 9_000 {
			s.at(at, func() {
				l.send(packet{wire: 375, flow: 1, arrived: func() {}, dropped: func() {}})
				t.do(s.now, "beside", 0, 375)
			})
		}
		s.at(3*second+100_000, func() { t.do(s.now, "beside", 0, 60_000) }) // more than the next message is put off by
		s.run(7 * second / 2)
	}},
	{"clocks wrap", "Half a second in, the low 32 bits of both clocks pass zero; the clock is a large number.", func(t *tape) {
		s := newSim(5)
		s.now = 400_000<<32 - 500_000
		l := s.line(1, 60_000, 20_000)
		t.host(s).link(0, l, 20_000).offset = 7<<32 - 100_000
		s.run(s.now + second)
	}},
	{"grows back", "5 Mbit/s and 20 ms in large messages: a queue of others for 0.4 s, then growth by a part of the window, and the next slowdown.", func(t *tape) {
		s, l := road{"", 5, 20_000, 60_000}.open(6)
		t.payload = 4096
		l.jitter = func(now int64) int64 {
			if now > 600_000 && now < second {
				return 60_000
			}
			return 0
		}
		t.host(s).link(0, l, 10_000)
		s.run(4 * second)
	}},
	{"queues overflow", "5 Mbit/s and 40 ms: Reno makes a queue of 24 KB overflow, above the target; then background makes one of 6 KB overflow, below it.", func(t *tape) {
		s, l := road{"", 5, 40_000, 24_000}.open(11)
		t.payload = 2312
		t.host(s).link(0, l, 20_000)
		tcp := s.rival(1, l, 20_000)
		tcp.reno = true
		s.at(700_000, tcp.pump)
		s.at(1_500_000, func() { tcp.on, l.queue = false, 6_000 })
		s.run(4 * second)
	}},
	{"acks that cannot be", "From the future, beyond their own highest, twice, out of order, with a hold longer than the round trip.", impossibleAcks},
	{"silence", "A timeout, a second one with twice the wait, a late ack, an idle time, another path, a new payload, two tabs.", silence},
	{"another path", "What was in flight leaves the flight, and its acks open no window; beside another link the host's window stays.", anotherPath},
	{"an hour of sleep", "The clock jumps by an hour: an ack of before is no sample. The receiver's clock stood still meanwhile.", sleep},
	{"a late ack", "One ack comes five seconds late: whatever the window, pacing puts no more than a second between two messages.", lateAck},
	{"base history", "Minutes with another base each; a long queue of others does not become the base; a receiver's clock runs away.", baseHistory},
	{"acks are made", "Order, holes, duplicates, what asks for its ack, what is too far ahead; a hole that stays is passed.", makeAcks},
	{"requests", "The receiver's window: slow start, a queue on both links, requests apart in time, data that give no sample.", requests},
	{"requests in numbers", "A window that was full is asked again when a quarter of it is free, once that is more than a piece.", manyRequests},
	{"requests that wait", "What is asked for waits at its sender: the window grows to twice what comes in 200 ms, and on when more comes.", waitingRequests},
}

func (t *tape) host(s *sim) *sender {
	h := s.sender(ledbat.Config{})
	h.c, h.tape = t.bench.c, t
	return h
}

func impossibleAcks(t *tape) {
	t.do(0, "open", 0, 1156, 16_384, 0)
	t.ack(10_000, 0, ledbat.Ack{})
	for i := range int64(8) {
		t.do(20_000+i*1000, "send", 0, 1156, 0)
	}
	good := ledbat.Ack{Cumulative: 2, Highest: 5, Bitmap: 0b10011 << 59, ReceivedAt: 66_000, Hold: 1000}
	for _, a := range []ledbat.Ack{
		{Cumulative: 8, Highest: 8, ReceivedAt: 60_000},
		{Cumulative: 7, Highest: 5, ReceivedAt: 60_000},
		{Cumulative: 0, Highest: 1<<32 - 1},
		{Cumulative: 1<<32 - 5, Highest: 3},
		good, good,
		{Cumulative: 1, Highest: 0, ReceivedAt: 60_000},
		{Cumulative: 7, Highest: 6, ReceivedAt: 70_000, Hold: 900_000},
		{Cumulative: 8, Highest: 7, ReceivedAt: 1 << 31, Hold: 0},
		{Cumulative: 8, Highest: 7, ReceivedAt: 1 << 31, Hold: 0},
	} {
		t.ack(100_000, 0, a)
	}
	t.do(101_000, "send", 0, 1156, 5000)
	t.ack(161_000, 0, ledbat.Ack{Cumulative: 9, Highest: 8, ReceivedAt: 130_000})
}

func silence(t *tape) {
	t.do(0, "open", 0, 1184, 12_000, 80_000)
	t.do(0, "run", 0, 40, 5_000, 1200, 4_000, 2_000)
	for i := range int64(3) {
		t.do(300_000+i, "may", 0, 1200)
		t.do(300_000+i, "send", 0, 1200, 0)
	}
	t.do(900_000, "timeout", 0)
	t.do(1_305_000, "timeout", 0)
	t.do(1_310_000, "may", 0, 1200)
	t.do(1_310_000, "send", 0, 1200, 0)
	t.do(2_400_000, "timeout", 0)
	t.do(3_400_000, "timeout", 0)
	t.ack(3_410_000, 0, ledbat.Ack{Cumulative: 44, Highest: 43, Bitmap: 1<<64 - 1, ReceivedAt: 3_400_000})
	t.do(3_500_000, "run", 0, 60, 70_000, 2400, 60_000, 30_000)
	t.do(9_000_000, "run", 0, 3, 70_000, 1200, 60_000, 30_000)
	t.do(10_000_000, "send", 0, 1200, 0)
	t.do(10_001_000, "reset", 0)
	t.ack(10_060_000, 0, ledbat.Ack{Cumulative: 108, Highest: 107, Bitmap: 1<<64 - 1, ReceivedAt: 9})
	t.do(10_200_000, "run", 0, 100, 31_000, 2368, 30_000, 9_000)
	t.do(13_400_000, "parts", 0, 2)
	t.do(13_400_000, "run", 0, 30, 91_000, 2368, 90_000, 69_000)
	t.do(16_200_000, "run", 0, 200, 32_000, 2368, 31_000, 9_000)
}

func anotherPath(t *tape) {
	t.do(0, "open", 0, 1200, 0, 0)
	for i := range int64(10) {
		t.do(i*1000, "send", 0, 1200, 0)
	}
	t.do(20_000, "reset", 0)
	t.do(21_000, "send", 0, 1200, 0)
	t.ack(40_000, 0, ledbat.Ack{Cumulative: 10, Highest: 9, ReceivedAt: 39_000})
	t.ack(81_000, 0, ledbat.Ack{Cumulative: 11, Highest: 10, ReceivedAt: 60_000})
	t.do(90_000, "open", 1, 1200, 0, 0)
	t.do(90_000, "run", 1, 3, 50_000, 1200, 40_000, 20_000)
	t.do(300_000, "send", 0, 1200, 0)
	t.do(301_000, "send", 1, 1200, 0)
	t.do(302_000, "reset", 0)
	t.ack(340_000, 0, ledbat.Ack{Cumulative: 12, Highest: 11, ReceivedAt: 320_000})
	t.ack(341_000, 1, ledbat.Ack{Cumulative: 4, Highest: 3, ReceivedAt: 321_000})
	t.do(350_000, "reset", 1)
}

func sleep(t *tape) {
	t.do(0, "open", 0, 1200, 0, 0)
	t.do(0, "run", 0, 20, 50_000, 1200, 40_000, 20_000)
	t.do(second, "send", 0, 1200, 0)
	t.do(second+1000, "send", 0, 1200, 0)
	woke := int64(3600 * second)
	t.ack(woke, 0, ledbat.Ack{Cumulative: 21, Highest: 20, ReceivedAt: 1_020_000})
	t.do(woke+second, "timeout", 0)
	t.ack(woke+second, 0, ledbat.Ack{Cumulative: 22, Highest: 21, ReceivedAt: 1_021_000})
	t.do(woke+2*second, "run", 0, 40, 50_000, 1200, 40_000, 20_000-3599*second)
}

func lateAck(t *tape) {
	t.do(0, "open", 0, 1200, 0, 0)
	t.do(0, "send", 0, 1200, 0)
	t.ack(5*second, 0, ledbat.Ack{Cumulative: 1, ReceivedAt: 4_990_000})
	t.do(5*second, "send", 0, 1200, 0)
	t.do(13*second, "timeout", 0) // the window is a packet
	t.do(13*second, "send", 0, 1200, 0)
	t.ack(13_040_000, 0, ledbat.Ack{Cumulative: 3, Highest: 2, ReceivedAt: 13_020_000})
	t.do(13_500_000, "may", 0, 1200)
	t.do(14*second, "parts", 0, 4)
	t.do(14*second, "send", 0, 1200, 0)
	t.do(22*second, "timeout", 0) // a quarter of a packet
	t.do(22*second, "send", 0, 1200, 0)
	t.ack(22_040_000, 0, ledbat.Ack{Cumulative: 5, Highest: 4, ReceivedAt: 22_020_000})
	t.do(22_500_000, "may", 0, 1200)
}

func baseHistory(t *tape) {
	t.do(0, "open", 0, 0, 0, 0)
	at := int64(1_000_000)
	minute := func(rtt, owd int64) {
		t.do(at, "run", 0, 130, 500_000, 1200, rtt, owd)
		at += 66_000_000
	}
	for _, rtt := range []int64{50_000, 40_000, 60_000, 61_000} {
		minute(rtt, rtt/2)
	}
	for range 13 {
		minute(400_000, 380_000) // the base stays
	}
	for range 12 {
		minute(70_000, 35_000) // the old ones leave, one after another
	}
	for i := range int64(4) {
		minute(70_000, 1<<30-40_000*i) // the receiver's clock slows down by 600 ppm
	}
	minute(200_000, 1<<30-200_000) // and its one-way delays are not believed
}

func makeAcks(t *tape) {
	t.do(0, "source", 0)
	at := int64(1000)
	data := func(seq, now int64) {
		t.do(at, "data", 0, 1156, seq, (at-20_000)&(1<<32-1), 0, 0, now)
		at += 1500
	}
	for _, seq := range []int64{0, 1, 3, 2, 2, 6, 5, 8} {
		data(seq, 0)
	}
	t.do(at, "make", 0)
	t.do(at, "make", 0)
	data(9, 1)
	data(4, 1)
	t.do(at+2000, "make", 0)
	data(8192+40, 0)
	data(1<<32-1, 0)
	data(100, 0)
	t.do(at+30_000, "make", 0)
	data(4200, 0)
	data(8100, 0)
	t.do(at+30_000, "make", 0)
	for i := range int64(40) {
		at += 300_000
		t.do(at, "data", 0, 1_000_000, 8101+i, at, 0, 0, 0)
	}
	t.do(at+30_000, "make", 0)
}

func manyRequests(t *tape) {
	t.do(0, "source", 0)
	at := int64(100_000)
	for seq := range int64(110) {
		for t.do(at, "mayrequest", 0, 16_384)[0] == 1 {
			t.do(at, "request", 0, 16_384)
		}
		at += 4_000
		t.do(at, "data", 0, 4096, seq, (at-20_000)&(1<<32-1), (at-50_000)&(1<<32-1), 1, 0)
	}
}

func waitingRequests(t *tape) {
	t.do(0, "source", 0)
	at, seq := int64(100_000), int64(0)
	come := func(n int, interval int64) {
		for range n {
			for t.do(at, "mayrequest", 0, 16_384)[0] == 1 {
				t.do(at, "request", 0, 16_384)
			}
			at += interval
			t.do(at, "data", 0, 4096, seq, (at-20_000)&(1<<32-1), (at-50_000)&(1<<32-1), 1, 0)
			seq++
		}
	}
	come(24, 40_000)
	come(16, 20_000)
}

func requests(t *tape) {
	t.do(0, "source", 0)
	t.do(0, "source", 1)
	at, seq, queue := int64(100_000), int64(0), int64(0)
	step := func(link int, added int64) {
		t.do(at, "mayrequest", link, 16_384)
		t.do(at, "request", link, 16_384)
		for range 4 {
			queue += added
			at += 5_000
			rtt, owd := 50_000+queue, 1_000_000+queue
			t.do(at, "data", link, 4096, seq, (at-owd)&(1<<32-1), (at-rtt)&(1<<32-1), 1, 0)
			seq++
		}
	}
	for i := range 12 {
		step(i%2, 0)
	}
	for i := range 10 {
		step(i%2, 4_000)
	}
	t.do(at, "request", 0, 16_384)
	t.do(at, "gone", 0, 16_384)
	t.do(at, "gone", 0, 16_384)
	queue = 0
	at += 1_500_000
	for i := range 10 {
		step(i%2, 100)
		at += 200_000
	}
	t.do(at, "data", 0, 4096, seq-5, at&(1<<32-1), (at-10_000)&(1<<32-1), 1, 0) // not the highest: no sample
	t.do(at, "data", 1, 4096, seq+5, at&(1<<32-1), 0, 0, 0)                     // without an echo: none either
}
