package parts

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/leeway-video/leeway/internal/mesh"
	"github.com/leeway-video/leeway/internal/segment"
	"github.com/leeway-video/leeway/internal/wire/peer"
)

// stroll makes a walk: it does at random what peers, the origin and a player may do, and answers what the node asks for.
type stroll struct {
	*walker
	rand  *rand.Rand
	kind  uint64
	now   int
	count int // parts that are listed
	turn  int // of the latest of them
	peers map[int]*strollPeer
	wants [][2]int // turns and pieces that the origin was asked for
	whole []int    // turns, where it does not know the length
	loads []int    // turns whose certificates are to be loaded
	out   []walkStep
}

type strollPeer struct {
	subscribed [stripes]bool // that the node wants of it
	pushes     map[int]int   // by turn
	sent       map[[2]int]bool
	next       int
	handed     int
}

const (
	strollSeed = 255
	inOrder    = 0
	inTrouble  = 1
	packaged   = 2
)

func newStroll(kind uint64) *stroll {
	return &stroll{walker: newWalker(), rand: rand.New(rand.NewPCG(kind, 17)), kind: kind, peers: map[int]*strollPeer{}}
}

// at is the turn of a part: four are a segment. The turns of one walk begin again at 0.
func (s *stroll) at(part int) int {
	first := int64(7)
	if s.kind == inTrouble {
		first = 1<<24 - 1
	}
	turn, _ := Turn(first+int64(part/4), part%4)
	return int(turn)
}

// step plays a step, and looks at what the node does.
func (s *stroll) step(format string, args ...any) {
	do := fmt.Sprint(s.now, " ", fmt.Sprintf(format, args...))
	acts := s.do(do)
	s.out = append(s.out, walkStep{do, acts})
	for _, a := range acts {
		s.see(&words{strings.Fields(a)})
	}
}

func (s *stroll) see(in *words) {
	switch in.next() {
	case "say":
		p, verb := s.peers[in.int()], in.next()
		if in.next() != "1" || p == nil {
			return
		}
		if verb == "subscribe" || verb == "unsubscribe" {
			p.subscribed[in.int()] = verb == "subscribe"
		}
	case "push":
		s.peers[in.int()].handed++
	case "certificate":
		in.int()
		s.loads = append(s.loads, in.int())
	case "fetch":
		if in.int() != 1 {
			return
		}
		turn := in.int()
		if len(in.left) == 0 {
			s.whole = append(s.whole, turn)
		}
		for len(in.left) > 0 {
			var first, last int
			_, _ = fmt.Sscanf(in.next(), "%d-%d", &first, &last)
			for i := first; i <= last; i++ {
				s.wants = append(s.wants, [2]int{turn, i})
			}
		}
	}
}

func (s *stroll) steps(count int) []walkStep {
	s.step("follow 1 6 500000")
	for _, p := range s.all() {
		s.meet(p)
	}
	for len(s.out) < count {
		s.now += s.rand.IntN(40_000)
		if s.count*500_000 <= s.now {
			s.part()
		}
		s.happens()
		if len(s.pending) > 0 && s.rand.IntN(4) > 0 {
			s.step("answer")
		}
		if len(s.loads) > 0 && s.rand.IntN(3) > 0 {
			s.loaded()
		}
	}
	return s.out
}

// all are the peers of a walk: a seed and three viewers, or four viewers where a packager signs.
func (s *stroll) all() []int {
	if s.kind == packaged {
		return []int{2, 3, 4, 5}
	}
	return []int{strollSeed, 2, 3, 4}
}

func (s *stroll) meet(p int) {
	s.peers[p] = &strollPeer{pushes: map[int]int{}, sent: map[[2]int]bool{}}
	role := "viewer"
	if p == strollSeed {
		role = "seed"
	}
	s.step("linked %d %s", p, role)
	s.step("heard %d follow 1 on", p)
	for stripe := range stripes {
		if p == strollSeed || s.rand.IntN(2) == 0 {
			s.place(p, stripe)
		}
	}
}

func (s *stroll) place(p, stripe int) {
	room, least := s.rand.IntN(4), s.rand.IntN(4)
	switch {
	case p == strollSeed:
		s.step("heard %d place 1 %d 0 %d 255 %d", p, stripe, room, p)
	case s.kind == packaged && s.rand.IntN(2) == 0: // of a source that is no better
		s.step("heard %d place 1 %d %d %d %d %d", p, stripe, mesh.SourceRank(ID{byte(p)}, stripe, 3), room, least, p)
	case s.kind != packaged && s.rand.IntN(2) == 0:
		s.step("heard %d place 1 %d 0 %d %d %d %d", p, stripe, room, least, strollSeed, p)
	case s.rand.IntN(6) == 0:
		s.step("heard %d place 1 %d %d 0 0", p, stripe, uint64(peer.MaxRank))
	default:
		s.step("heard %d place 1 %d %d %d %d %d", p, stripe, mesh.SourceRank(ID{byte(p)}, stripe, 9), room, least, p)
	}
}

// part lists the next part, and has the player ask for it.
func (s *stroll) part() {
	s.count++
	s.turn = s.at(s.count)
	_, data := walked(1, s.turn)
	length := len(data)
	if s.count%3 == 0 {
		length = 0
	}
	s.step("listed 1 %d %d %d", s.turn, s.turn, length)
	left := 400_000 + s.rand.IntN(1_000_000)
	if s.rand.IntN(5) == 0 {
		left = 50_000
	}
	s.step("buffer 1 %d all", left)
	s.step("ask 1 %d %d 40000 1000000%s", s.turn, s.now+left, map[bool]string{true: " packaged"}[s.kind == packaged])
}

// loaded brings a certificate of the packager, or that there is none, or nothing.
func (s *stroll) loaded() {
	turn := s.loads[0]
	s.loads = s.loads[1:]
	switch s.rand.IntN(4) {
	case 0:
	case 1:
		s.step("loaded 1 %d none", turn)
	default:
		s.step("loaded 1 %d", turn)
	}
}

func (s *stroll) happens() {
	some := s.all()[s.rand.IntN(4)]
	p := s.peers[some]
	if p == nil {
		s.meet(some)
		return
	}
	stripe := s.rand.IntN(stripes)
	switch n := s.rand.IntN(100); {
	case n < 50:
		s.pushes(some, p)
	case n < 54 && len(s.whole) > 0:
		turn := s.whole[0]
		s.whole = s.whole[1:]
		_, data := walked(1, turn)
		s.step("listed 1 %d %d %d", turn, turn, len(data))
		for i := range segment.Pieces(int64(len(data))) {
			s.wants = append(s.wants, [2]int{turn, i})
		}
	case n < 62 && len(s.wants) > 0:
		at := s.wants[0]
		s.wants = s.wants[1:]
		s.step("origin 1 %d %d", at[0], at[1])
	case n < 70 && p.handed > 0:
		p.handed--
		s.step("sent %d", some)
	case n < 76:
		s.step("heard %d subscribe 1 %d %d", some, stripe, s.rand.IntN(8))
	case n < 82:
		s.place(some, stripe)
	case n < 86:
		s.step("has 1 %d", s.turn)
	case n < 94 || s.kind == inOrder:
		s.step("tick")
	default:
		s.breaks(some, stripe, n)
	}
}

// breaks is what does not happen in order.
func (s *stroll) breaks(some, stripe, n int) {
	id, _ := walked(1, s.turn)
	switch n {
	case 94:
		s.step("heard %d end 1 %d", some, stripe)
	case 95:
		s.step("heard %d hold 1 %s", some, onOff[s.rand.IntN(2) == 0])
	case 96:
		s.step("heard %d enough 1 %x", some, id[:])
	case 97:
		s.step("heard %d unsubscribe 1 %d", some, stripe)
	case 98:
		s.step("heard %d follow %d on", some, 2+s.rand.IntN(12))
	default:
		s.step("gone %d", some)
		delete(s.peers, some)
	}
}

// pushes has a peer announce a part near the edge, or send a bit of it.
func (s *stroll) pushes(some int, p *strollPeer) {
	part := s.count + s.rand.IntN(3) - 1
	turn := s.at(part)
	bad := s.kind == inTrouble && s.rand.IntN(12) == 0
	push, told := p.pushes[turn]
	switch {
	case part < 1 || !bad && some != strollSeed && !slices.Contains(p.subscribed[:], true):
	case !told:
		p.pushes[turn] = p.next
		p.next++
		raw := walkedContent(1, turn).Raw
		if s.kind == packaged {
			raw = walkedPackaged(1, turn).Raw
		}
		if bad {
			raw = []byte("x")
		}
		s.step("heard %d part 1 %d %d %x", some, p.pushes[turn], turn, raw)
	default:
		_, data := walked(1, turn)
		count := segment.Pieces(int64(len(data)))
		piece := s.rand.IntN(count)
		at := [2]int{turn, piece}
		if !bad && (p.sent[at] || !p.subscribed[mesh.StripeOf(turn/turns+turn%turns, piece, count, stripes)]) {
			return
		}
		p.sent[at] = true
		length, request, text := segment.PieceLen(int64(len(data)), piece), peer.PushedID(uint32(push), piece), "right"
		if bad && s.rand.IntN(2) == 0 {
			text = "wrong"
		}
		if half := length / 2; s.rand.IntN(3) == 0 {
			s.step("data %d %d 1 %d %d %d %d %s", some, request, turn, piece, half, length-half, text)
			length = half
		}
		s.step("data %d %d 1 %d %d 0 %d %s", some, request, turn, piece, length, text)
	}
}
