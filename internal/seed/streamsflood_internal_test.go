package seed

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leeway-video/leeway/internal/metric"
	"github.com/leeway-video/leeway/internal/parts"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/testkit"
	"github.com/leeway-video/leeway/internal/wire/peer"
	"github.com/leeway-video/leeway/internal/wire/playlist"
	"github.com/leeway-video/leeway/internal/wire/signal"
)

// channels are the titles of a site, each of so many low-latency streams, at a seed.
type channels struct {
	t       *testing.T
	shelves *shelves
	all     *streams
	later   atomic.Int64 // than the machine's clock says, ns
	titles  []*title
	streams [][]segment.ID // by title
}

func newChannels(t *testing.T, titles, streams int) *channels {
	c := &channels{t: t, shelves: newShelves(t, 64<<20, 100)}
	c.shelves.site.followed = newStreamPlaces(maxFollowed)
	work := newTasks()
	t.Cleanup(work.wait)
	c.all = newStreams(signal.ID{9}, &supply{}, work, metric.Discard, slog.New(slog.DiscardHandler), func() time.Time { return time.Now().Add(time.Duration(c.later.Load())) })
	for n := range titles {
		manifest := c.shelves.put(n, guest(byte(n), fmt.Sprint("owner ", n)), 0)
		ix := c.shelves.peek(manifestID{"demo", manifest})
		var ids []segment.ID
		for i := range streams {
			path := fmt.Sprintf("/films/%d-%d.m3u8", n, i)
			ix.take(path, &playlist.Listed{Live: true, Parts: &playlist.Parts{Target: time.Second / 2, Blocks: true}}, c.shelves.now)
			ids = append(ids, segment.NewID("demo", segment.WholeName(path)))
		}
		c.titles = append(c.titles, newTitle(c.shelves.catalog, c.shelves.site, signal.ID{7, byte(n)}, manifest))
		c.streams = append(c.streams, ids)
	}
	return c
}

// joins is a link of a session to a title, which follows all of its streams.
func (c *channels) joins(title int, from party) *viewerLink {
	v := &viewerLink{caller: caller{title: c.titles[title], from: from}}
	c.all.linked(v)
	c.t.Cleanup(func() { c.all.gone(v) })
	for _, id := range c.streams[title] {
		v.sharing.Load().heard(v, peer.Follow{Stream: id, On: true})
	}
	return v
}

// TestASubnetTakesFewOfTheStreamsOfASite: sessions that link to all titles follow all of their streams. A viewer of another subnet comes
// then, and the stream that it plays is followed.
func TestASubnetTakesFewOfTheStreamsOfASite(t *testing.T) {
	const titles = maxFollowed/parts.MaxStreams + 1
	for name, sessions := range map[string]int{"one session": 1, "twenty of a subnet": 20} {
		c := newChannels(t, titles, parts.MaxStreams)
		for session := range sessions {
			for title := range titles - 1 {
				c.joins(title, guest(byte(100+session), "strangers"))
			}
		}
		taken := 0
		for _, one := range c.all.all {
			taken += len(one.followed)
		}
		v := c.joins(titles-1, guest(1, "home"))
		if n := len(v.sharing.Load().followed); n != parts.MaxStreams {
			t.Errorf("%s: %d of %d places are taken, and %d of the viewer's %d streams are followed", name, taken, maxFollowed, n, parts.MaxStreams)
		}
	}
}

// TestAStreamIsChargedToAViewerThatFollowsIt: strangers follow on what a viewer has left. It begins as many others as ever, and what no
// follower has a place for is left.
func TestAStreamIsChargedToAViewerThatFollowsIt(t *testing.T) {
	c := newChannels(t, 5, parts.MaxStreams)
	followed := func(title int) int {
		s := c.all.all[c.titles[title]]
		s.review()
		return len(s.followed)
	}
	viewer := guest(1, "home")
	leaves := c.joins(0, viewer)
	c.joins(0, guest(100, "strangers"))
	c.all.gone(leaves)
	if c.joins(1, viewer); followed(0) != parts.MaxStreams || followed(1) != parts.MaxStreams {
		t.Errorf("%d streams are followed that strangers follow on, and %d of the viewer that has left them", followed(0), followed(1))
	}

	leaves = c.joins(2, guest(2, "another"))
	for i := range 2 {
		c.joins(3+i, guest(byte(101+i), "crowd")) // each has all that it may have
	}
	c.joins(2, guest(103, "crowd"))
	if c.all.gone(leaves); followed(2) != 0 {
		t.Errorf("%d streams are followed at the expense of a viewer that has left them", followed(2))
	}
	c.later.Store(int64(tickEvery)) // what was left rests
	if c.joins(2, guest(3, "third")); followed(2) != parts.MaxStreams {
		t.Errorf("%d of %d streams are followed that a viewer has places for", followed(2), parts.MaxStreams)
	}
}

// TestWhatIsShedIsCounted also where a viewer leaves right behind it, and the last one of the title.
func TestWhatIsShedIsCounted(t *testing.T) {
	c, counts := newChannels(t, 1, 1), &testkit.Recorder{}
	c.all.sink = counts
	links := []*viewerLink{c.joins(0, guest(1, "a")), c.joins(0, guest(2, "b"))}
	for _, v := range links {
		v.sharing.Load().with(func(n *parts.Node, _ int64) { n.Counts.Shed += 1000 })
		c.all.gone(v)
		c.all.tick()
	}
	if n := counts.Value(mPartShed); n != 2000 {
		t.Errorf("%v of 2000 bytes are counted", n)
	}
}

// TestFollowsOfStrangersCostLittle: what a viewer says that it follows is looked at by itself, whatever thousands of other streams there
// are that no title lists.
func TestFollowsOfStrangersCostLittle(t *testing.T) {
	const messages = 2000
	took := func(links int) time.Duration {
		c := newChannels(t, 1, 1)
		for n := range links {
			v := c.joins(0, party{session: signal.ID{byte(n >> 8), byte(n), 1}, subnet: fmt.Sprint(n)})
			for i := range parts.MaxStreams - 1 {
				v.sharing.Load().heard(v, peer.Follow{Stream: strange(n*parts.MaxStreams + i), On: true})
			}
		}
		v := c.joins(0, guest(255, "stranger"))
		least := time.Hour
		for range 3 {
			began := time.Now()
			for i := range messages {
				v.sharing.Load().heard(v, peer.Follow{Stream: strange(-1), On: i%2 == 0})
			}
			least = min(least, time.Since(began))
		}
		return least
	}
	alone, crowded := took(1), took(200)
	if crowded > 40*alone+20*time.Millisecond {
		t.Errorf("%d messages take %v beside 200 links, %v beside one", messages, crowded, alone)
	}
}

// strange is a stream that no title lists.
func strange(n int) (id segment.ID) {
	binary.BigEndian.PutUint32(id[:], uint32(n))
	id[15] = 0xff
	return id
}
