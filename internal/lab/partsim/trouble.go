package partsim

// Trouble is what happens to an audience.
type Trouble struct {
	Name, About string
	Share       float64           // that is to come from viewers
	Arrive      func(i int) int64 // µs; nil: within half a minute
	Late        func(part, time int64) int64
	Temper      func(i int) temper
	Happens     func(s *sim) // amid the run
	Seedless    bool
	Packaged    bool // certificates come with the playlist
}

// Troubles are what can happen.
func Troubles() []Trouble {
	return []Trouble{
		{Name: "no-seed", About: "The packager's certificates come with the playlist, and no seed is there.", Seedless: true, Packaged: true, Share: 0.55},
		{Name: "flash", About: "Three viewers, then all others within ten seconds.", Share: 0.55, Arrive: func(i int) int64 {
			if i < 3 {
				return 20 * second
			}
			return 60*second + int64(i)*second/3
		}},
		{Name: "seed-dies", About: "The seed is silent from the middle on; no packager signs.", Share: 0.2, Happens: func(s *sim) { s.seedDies() }},
		{Name: "seed-dies-packager-signs", About: "The same where the packager's certificates come with the playlist.", Packaged: true, Share: 0.55, Happens: func(s *sim) { s.seedDies() }},
		{Name: "third-dies", About: "A third of the viewers is silent from one moment on.", Share: 0.55, Happens: func(s *sim) {
			for i, n := range s.all {
				if i%3 == 0 {
					n.die()
				}
			}
		}},
		originLate,
		{Name: "origin-a-part-late", About: "The origin publishes every tenth part together with the next.", Share: 0.55, Late: tenth},
		{Name: "polluters", About: "Three of ten viewers send wrong bytes.", Share: 0.4, Temper: threeOfTen(pollutes)},
		{Name: "silent", About: "Three of ten viewers take children and send nothing.", Share: 0.4, Temper: threeOfTen(silent)},
		{Name: "liars", About: "Three of ten viewers say that they are seeds with room for all, and send nothing.", Share: 0.4, Temper: threeOfTen(lies)},
	}
}

var originLate = Trouble{
	Name: "origin-5s-late", About: "The origin publishes nothing for five seconds, then all of it.", Share: 0.55, Late: hanging(amid, amid+5*second),
}

// hanging publishes what is due in a stretch of time at its end.
func hanging(from, to int64) func(part, time int64) int64 {
	return func(part, time int64) int64 {
		if at := (part + 1) * time; at >= from && at < to {
			return to - at
		}
		return 0
	}
}

func tenth(part, time int64) int64 {
	if part%10 == 9 {
		return time
	}
	return 0
}

func threeOfTen(t temper) func(i int) temper {
	return func(i int) temper {
		if i%10 < 3 {
			return t
		}
		return honest
	}
}

func (s *sim) seedDies() {
	if s.seed != nil {
		s.seed.die()
	}
}

// Chosen is the way that spec/parts.md describes.
var Chosen = Options{Way: Push, Stripes: 4, Share: 0.3, Seeds: 2, Part: second / 2}

// Other is another way to share, or the chosen one with another value.
type Other struct {
	Name, About string
	Options
}

// Others are compared with what was chosen.
func Others() []Other {
	with := func(change func(o *Options)) Options {
		o := Chosen
		change(&o)
		return o
	}
	return []Other{
		{"chosen", "Four stripes.", Chosen},
		{"pull", "Pieces are announced, and asked for one by one; the origin is asked after a quarter of a second.", with(func(o *Options) { o.Way, o.Stripes = Pull, 1 })},
		{"patient-pull", "The same, with half a second.", with(func(o *Options) { o.Way, o.Stripes, o.Grace = Pull, 1, second/2 })},
		{"one-tree", "One tree for all pieces.", with(func(o *Options) { o.Stripes = 1 })},
		{"by-part", "Four trees; a part goes along one of them.", with(func(o *Options) { o.ByPart = true })},
		{"two-stripes", "Two stripes.", with(func(o *Options) { o.Stripes = 2 })},
		{"eight-stripes", "Eight stripes.", with(func(o *Options) { o.Stripes = 8 })},
		{"a-fifth", "Viewers give a fifth of their uplink.", with(func(o *Options) { o.Share = 0.2 })},
		{"half", "Viewers give half of their uplink.", with(func(o *Options) { o.Share = 0.5 })},
		{"eight", "Viewers take eight children, whatever their uplink carries.", with(func(o *Options) { o.Children = Eight })},
		{"by-waits", "Viewers take eight children, and fewer where pieces wait to leave.", with(func(o *Options) { o.Children = ByWaits })},
		{"one-of-the-seed", "The seed takes one child in a stripe.", with(func(o *Options) { o.Seeds = 1 })},
		{"three-of-the-seed", "The seed takes three.", with(func(o *Options) { o.Seeds = 3 })},
		{"less-grace", "The origin is asked after an eighth of a second.", with(func(o *Options) { o.Grace = second / 8 })},
		{"late-origin", "The chosen one, where the origin is five seconds late.", with(func(o *Options) { o.Trouble = originLate })},
		{"late-origin-heedless", "The same, and peers push while the buffer is short, too.", with(func(o *Options) { o.Trouble, o.Heedless = originLate, true })},
		{"more-grace", "The origin is asked after half a second.", with(func(o *Options) { o.Grace = second / 2 })},
	}
}
