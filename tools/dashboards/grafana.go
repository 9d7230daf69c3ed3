package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// panelPoints is how many points Grafana asks for where a panel is as wide as ours: one a pixel.
const panelPoints = 440

// recording is a stretch of time that a Prometheus has seen, as Grafana shows it.
type recording struct {
	address  string // URL of a Grafana, or of its backend (tools/grafana)
	from, to time.Time

	source string        // UID of the data source
	step   time.Duration // that the data source says the Prometheus scrapes at
	sites  []string      // that the variable has
}

// target is a query as a panel's JSON has it.
type target map[string]any

// provided is a data source, as far as we look at it.
type provided struct {
	UID      string                        `json:"uid"`
	Type     string                        `json:"type"`
	Settings struct{ TimeInterval string } `json:"jsonData"`
}

// point is a value at a time, in seconds since the recording's beginning.
type point struct{ at, value float64 }

type line struct {
	name   string  // its legend
	points []point // without those that are no number
}

// QueryError is a query that Grafana's backend could not answer.
type QueryError struct {
	Query  string
	Source string // downstream: Prometheus said so
	Status int
	Text   string
}

func (e *QueryError) Error() string {
	return fmt.Sprintf("%s: %s (status %d, %s)", e.Query, e.Text, e.Status, e.Source)
}

// open looks what data source there is, and which sites.
func (r *recording) open() error {
	var all []provided
	if err := r.get("/api/datasources", &all); err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(p provided) bool { return p.Type == *source.Type })
	if i < 0 {
		return fmt.Errorf("%s has no data source of type %s", r.address, *source.Type)
	}
	var err error
	if r.step, err = time.ParseDuration(all[i].Settings.TimeInterval); err != nil {
		return err
	}
	r.source = all[i].UID
	m := labelValues.FindStringSubmatch(siteQuery)
	var sites struct{ Data []string }
	if err := r.get("/api/datasources/uid/"+r.source+"/resources/api/v1/label/"+m[2]+"/values?"+url.Values{
		"match[]": {m[1]}, "start": {strconv.FormatInt(r.from.Unix(), 10)}, "end": {strconv.FormatInt(r.to.Unix(), 10)},
	}.Encode(), &sites); err != nil {
		return err
	}
	if r.sites = sites.Data; len(r.sites) == 0 {
		return fmt.Errorf("the variable site has no values: nothing comes of %s", siteQuery)
	}
	return nil
}

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

func (r *recording) get(path string, into any) error {
	response, err := http.Get(r.address + path)
	if err != nil {
		return err
	}
	return decode(response, into)
}

func decode(response *http.Response, into any) error {
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %.200s: %w", response.Request.URL, response.Status, text, err)
	}
	return nil
}

// answered is what the backend says, as far as panels use it.
type answered struct {
	Message string // of a request that was no good
	Results map[string]struct {
		Error, ErrorSource string
		Status             int
		Frames             []frame
	}
}

type frame struct {
	Schema struct {
		Fields []struct {
			Config struct{ DisplayNameFromDS string }
		}
	}
	Data struct{ Values [][]*float64 }
}

// ask sends a query as a panel in a browser does, for the sites that are picked; none is All.
func (r *recording) ask(q target, sites ...string) ([]line, error) {
	expr, _ := q["expr"].(string)
	id, _ := q["refId"].(string)
	sent := maps.Clone(q)
	sent["expr"] = interpolated(expr, sites)
	sent["datasource"] = map[string]string{"type": *source.Type, "uid": r.source}
	sent["maxDataPoints"] = panelPoints
	sent["intervalMs"] = max(r.step, r.to.Sub(r.from)/panelPoints).Milliseconds()
	at := func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
	body, err := json.Marshal(map[string]any{"from": at(r.from), "to": at(r.to), "queries": []target{sent}})
	if err != nil {
		return nil, err
	}
	response, err := http.Post(r.address+"/api/ds/query", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	var got answered
	if err := decode(response, &got); err != nil {
		return nil, err
	}
	result, ok := got.Results[id]
	if !ok || result.Error != "" {
		return nil, &QueryError{Query: expr, Source: result.ErrorSource, Status: result.Status, Text: result.Error + got.Message}
	}
	var all []line
	for _, f := range result.Frames {
		if l, ok := r.line(f); ok {
			all = append(all, l)
		}
	}
	return all, nil
}

// line is a frame's series; what Prometheus has no number for is null in it.
func (r *recording) line(f frame) (l line, ok bool) {
	if len(f.Schema.Fields) < 2 || len(f.Data.Values) < 2 {
		return l, false // of a query that brought nothing
	}
	l.name = f.Schema.Fields[1].Config.DisplayNameFromDS
	for i, v := range f.Data.Values[1] {
		if t := f.Data.Values[0][i]; v != nil && t != nil {
			l.points = append(l.points, point{*t/1000 - float64(r.from.Unix()), *v})
		}
	}
	return l, true
}

// interpolated puts in what a browser with Grafana does: the dashboard's own variables. Windows are the backend's.
func interpolated(query string, sites []string) string {
	picked := ".*" // All
	if len(sites) > 0 {
		var escaped []string
		for _, s := range sites {
			escaped = append(escaped, inRegexp.ReplaceAllString(strings.ReplaceAll(s, `\`, `\\\\`), `\\$0`))
		}
		if picked = strings.Join(escaped, "|"); len(sites) > 1 {
			picked = "(" + picked + ")"
		}
	}
	return strings.NewReplacer("$site", picked, "$price", defaultPrice).Replace(query)
}

// inRegexp is what Grafana puts backslashes before, in a value of a variable that may have several.
var inRegexp = regexp.MustCompile(`[$^*{}\[\]+?.()|]`)
