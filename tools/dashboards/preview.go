package main

import (
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed preview.html
var page string

// shownPanel is a panel as the page has it.
type shownPanel struct {
	Title, About string
	Value, Color string // of a stat
	Picture      template.HTML
	Legend       []shownLegend
}

type shownLegend struct{ Color, Name, Last string }

type shownRow struct {
	Title  string
	Panels []shownPanel
}

type shownBoard struct {
	ID, Title, About string
	Stats            []shownPanel
	Rows             []shownRow
}

// preview asks every query of every panel, and writes pages that show what came: one with all dashboards, and one for each. What
// comes back empty is an error, once all is written.
func preview(r *recording, folder string) error {
	var all []shownBoard
	var empty []error
	for _, b := range boards {
		s := shownBoard{ID: b.file(), Title: b.title, About: b.about}
		show := func(p panel, stat bool) shownPanel {
			shown, err := p.show(r, stat)
			if err != nil {
				empty = append(empty, fmt.Errorf("%s: %q: %w", b.uid, p.title, err))
			}
			return shown
		}
		for _, p := range b.stats {
			s.Stats = append(s.Stats, show(p, true))
		}
		for _, row := range b.rows {
			shown := shownRow{Title: row.title}
			for _, p := range row.panels {
				shown.Panels = append(shown.Panels, show(p, false))
			}
			s.Rows = append(s.Rows, shown)
		}
		all = append(all, s)
		if err := render(filepath.Join(folder, strings.TrimSuffix(b.file(), ".json")+".html"), s); err != nil {
			return err
		}
	}
	if err := render(filepath.Join(folder, "index.html"), all...); err != nil {
		return err
	}
	return errors.Join(empty...)
}

func render(file string, boards ...shownBoard) error {
	t, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(t.Execute(f, boards), f.Close())
}

// show asks a panel's queries and draws what came. The error says which have nothing to show, though the panel expects them to,
// or show something else when every site is picked by its name.
func (p panel) show(r *recording, stat bool) (shownPanel, error) {
	shown := shownPanel{Title: p.title, About: p.about}
	asked, err := p.targets()
	if err != nil {
		return shown, err
	}
	var drawn []drawnLine
	var wrong []error
	for i, s := range p.series {
		lines, err := r.ask(asked[i])
		if err != nil {
			return shown, err
		}
		points := 0
		for _, l := range lines {
			if points += len(l.points); len(l.points) > 0 {
				idle := !slices.ContainsFunc(l.points, func(p point) bool { return p.value != 0 })
				drawn = append(drawn, drawnLine{name: l.name, points: l.points, idle: idle})
			}
		}
		if points == 0 && !s.rare {
			wrong = append(wrong, fmt.Errorf("nothing comes of %s", s.expr))
		}
		if strings.Contains(s.expr, "$site") {
			picked, err := r.ask(asked[i], r.sites...)
			if err != nil {
				return shown, err
			}
			if len(picked) != len(lines) {
				wrong = append(wrong, fmt.Errorf("%d series instead of %d come when the sites %q are picked, of %s", len(picked), len(lines), r.sites, s.expr))
			}
		}
	}
	p.draw(&shown, drawn, r.to.Sub(r.from), stat)
	return shown, errors.Join(wrong...)
}

func (p panel) draw(shown *shownPanel, drawn []drawnLine, length time.Duration, stat bool) {
	c := chart{unit: p.unit, length: length, lines: drawn, stacked: p.stacked, most: p.most, width: panelPoints, height: 170, axes: !stat}
	if stat {
		c.width, c.height = 320, 40
		if shown.Value = "–"; len(drawn) > 0 {
			shown.Value, shown.Color = format(p.unit, drawn[0].last()), p.judged(drawn[0].last())
		}
	} else {
		for i, l := range drawn {
			if l.name != p.title && !(l.idle && p.quiet()) {
				shown.Legend = append(shown.Legend, shownLegend{lineColor(i), l.name, format(p.unit, l.last())})
			}
		}
	}
	shown.Picture = template.HTML(c.draw())
}

// previewCommand is `dashboards preview LENGTH FOLDER`: of the last so much time, as the Grafana at $GRAFANA_URL has it.
func previewCommand(args []string) error {
	address := strings.TrimRight(os.Getenv("GRAFANA_URL"), "/")
	if len(args) != 2 || address == "" {
		return errors.New("usage: GRAFANA_URL=URL dashboards preview LENGTH FOLDER, such as 5m build/dashboards")
	}
	length, err := time.ParseDuration(args[0])
	if err != nil {
		return err
	}
	to := time.Now()
	r := &recording{address: address, from: to.Add(-length), to: to}
	if err := r.open(); err != nil {
		return err
	}
	return preview(r, args[1])
}
