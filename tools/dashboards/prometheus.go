package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// recording is a stretch of time that a Prometheus has seen.
type recording struct {
	address  string // URL of the Prometheus
	from, to time.Time
	step     time.Duration // that it scraped at, too
}

// point is a value at a time, in seconds since the recording's beginning.
type point struct{ at, value float64 }

type line struct {
	labels map[string]string
	points []point // without those that are no number
}

// ask puts in what Grafana would for its variables, and asks for a line a series.
func (r recording) ask(query string) ([]line, error) {
	window := max(2*r.step, 4*r.step) // Grafana: the step and a scrape, at least four scrapes
	query = strings.NewReplacer(
		"$__rate_interval", window.String(), "$__range", fmt.Sprintf("%ds", int(r.to.Sub(r.from).Seconds())), "$site", ".*", "$price", "0.02",
	).Replace(query)
	at := func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
	response, err := http.Get(r.address + "/api/v1/query_range?" + url.Values{
		"query": {query}, "start": {at(r.from)}, "end": {at(r.to)}, "step": {strconv.Itoa(int(r.step.Seconds()))},
	}.Encode())
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: %s", query, answer.Error)
	}
	var all []line
	for _, s := range answer.Data.Result {
		l := line{labels: s.Metric}
		for _, v := range s.Values {
			t, _ := v[0].(float64)
			text, _ := v[1].(string)
			if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
				l.points = append(l.points, point{t - float64(r.from.Unix()), n})
			}
		}
		all = append(all, l)
	}
	return all, nil
}

// named fills a legend's {{label}}.
func (l line) named(legend string) string {
	return inLegend.ReplaceAllStringFunc(legend, func(m string) string { return l.labels[inLegend.FindStringSubmatch(m)[1]] })
}
