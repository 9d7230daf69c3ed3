package netstat

// TCPTest is what is known of one direction of a TCP test, over all its connections.
type TCPTest struct {
	Direction Direction
	V6        bool
	RampUp    int64       // µs since the beginning that count for nothing but the baseline
	Received  []Count     // what the receiver counted, in order, over all connections together
	Looks     [][]TCPInfo // of each connection, in order
	LinkRate  float64     // bit/s, if the link's rate is known; else 0
}

// Count is how many bytes a receiver had after a time.
type Count struct {
	Elapsed int64 // µs
	Bytes   int64
}

// Figures computes a test's figures. Those that cannot be computed are left out.
func (t TCPTest) Figures() []Figure {
	var all []Figure
	add := func(k Kind, value float64, ok bool) {
		if ok {
			all = append(all, k.Of(t.Direction, value))
		}
	}
	moved := t.transfer()
	throughput := Rate(moved.Bytes, moved.Elapsed)
	add(Throughput, throughput, moved.Elapsed > 0)
	baseline, loaded, spread, seen := t.roundTrips()
	add(BaselineRTT, seconds(baseline), baseline > 0)
	add(LoadedRTT, loaded/1e6, seen)
	add(RTTRange, seconds(spread), seen)
	ratio, ok := moved.TimeRatio()
	add(TransferTimeRatio, ratio, ok)
	ratio, ok = moved.ThroughputRatio()
	add(ThroughputRatio, ratio, ok)
	if t.Direction == Down {
		ratio, ok = t.efficiency()
		add(TCPEfficiency, ratio, ok)
	}
	ratio, ok = Delay(loaded, baseline)
	add(BufferDelay, ratio, ok && seen)
	window := t.window()
	add(Window, window, window > 0)
	add(AchievableThroughput, window*8e6/loaded, window > 0 && seen)
	mtu := t.mtu()
	add(PathMTU, float64(mtu), mtu > 0)
	return all
}

// transfer is what was received after the ramp-up.
func (t TCPTest) transfer() Transfer {
	moved := Transfer{Link: Link{Rate: t.LinkRate, MTU: t.mtu(), V6: t.V6, Timestamps: t.stamped()}}
	var first *Count
	for i, c := range t.Received {
		if c.Elapsed < t.RampUp {
			continue
		}
		if first == nil {
			first = &t.Received[i]
		}
		moved.Bytes, moved.Elapsed = c.Bytes-first.Bytes, c.Elapsed-first.Elapsed
	}
	return moved
}

// roundTrips are the smallest round-trip time, and mean and range after the ramp-up.
func (t TCPTest) roundTrips() (baseline int64, loaded float64, spread int64, seen bool) {
	var n, sum, least, most int64
	for _, looks := range t.Looks {
		for _, i := range looks {
			if i.MinRTT > 0 && (baseline == 0 || i.MinRTT < baseline) {
				baseline = i.MinRTT
			}
			rtt := i.rtt(t.Direction)
			if i.ElapsedTime < t.RampUp || rtt <= 0 {
				continue
			}
			if n == 0 || rtt < least {
				least = rtt
			}
			most = max(most, rtt)
			n, sum = n+1, sum+rtt
		}
	}
	if n == 0 {
		return baseline, 0, 0, false
	}
	return baseline, float64(sum) / float64(n), most - least, true
}

// efficiency is of all that was sent between the first look after the ramp-up and the last.
func (t TCPTest) efficiency() (percent float64, ok bool) {
	var sent, again int64
	for _, looks := range t.Looks {
		for i := range looks {
			if looks[i].ElapsedTime >= t.RampUp {
				last := looks[len(looks)-1]
				sent += last.BytesSent - looks[i].BytesSent
				again += last.BytesRetrans - looks[i].BytesRetrans
				break
			}
		}
	}
	return Efficiency(sent, again)
}

// window is the sum of the windows of all connections after the ramp-up.
func (t TCPTest) window() (bytes float64) {
	for _, looks := range t.Looks {
		for i := range looks {
			if looks[i].ElapsedTime >= t.RampUp {
				bytes += InFlight(t.Direction, looks[i:])
				break
			}
		}
	}
	return bytes
}

// mtu is the smallest that a last look tells.
func (t TCPTest) mtu() (bytes int64) {
	for _, looks := range t.Looks {
		if len(looks) > 0 {
			if m := looks[len(looks)-1].MTU(t.V6); m > 0 && (bytes == 0 || m < bytes) {
				bytes = m
			}
		}
	}
	return bytes
}

// stamped says whether the connections use TCP timestamps.
func (t TCPTest) stamped() bool {
	for _, looks := range t.Looks {
		if len(looks) > 0 {
			return looks[len(looks)-1].Options&optionStamp != 0
		}
	}
	return false
}
