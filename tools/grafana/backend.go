package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/log"
	"github.com/grafana/grafana/pkg/promlib"
)

// What Grafana takes where a query does not say (its pkg/services/query).
const (
	defaultPoints   = 100
	defaultInterval = time.Second
)

// plugin is Grafana's backend for Prometheus with the one data source.
type plugin struct {
	source  dataSource
	context backend.PluginContext
	service *promlib.Service
}

// newBackend serves Grafana's paths: data sources, their resources, queries.
func newBackend(d dataSource) (http.Handler, error) {
	c, err := d.context()
	if err != nil {
		return nil, err
	}
	p := &plugin{d, c, promlib.NewService(nil, log.NewNullLogger(), nil)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/datasources", p.list)
	mux.HandleFunc("GET /api/datasources/uid/"+d.UID+"/resources/{path...}", p.resource)
	mux.HandleFunc("POST /api/ds/query", p.query)
	return mux, nil
}

func (p *plugin) list(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, []dataSource{p.source})
}

// resource passes a question of variables and editors on.
func (p *plugin) resource(w http.ResponseWriter, r *http.Request) {
	path := r.PathValue("path")
	request := &backend.CallResourceRequest{PluginContext: p.context, Path: path, Method: r.Method, URL: path + "?" + r.URL.RawQuery}
	err := p.service.CallResource(r.Context(), request, backend.CallResourceResponseSenderFunc(func(got *backend.CallResourceResponse) error {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(got.Status)
		_, err := w.Write(got.Body)
		return err
	}))
	if err != nil {
		refuse(w, http.StatusBadGateway, err)
	}
}

// request is what a dashboard in a browser sends for a panel.
type request struct {
	From    string            `json:"from"` // ms since the Unix epoch
	To      string            `json:"to"`
	Queries []json.RawMessage `json:"queries"`
}

// query asks all queries of a panel. One that fails has its error in the answer, with where it comes from.
func (p *plugin) query(w http.ResponseWriter, r *http.Request) {
	var asked request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&asked); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	queries, err := p.queries(asked)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	got, err := p.service.QueryData(r.Context(), &backend.QueryDataRequest{PluginContext: p.context, Queries: queries})
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	status := http.StatusOK
	for _, one := range got.Responses {
		if one.Error != nil {
			status = http.StatusBadRequest // as Grafana does
		}
	}
	answer(w, status, got)
}

// queries reads what Grafana itself reads of them; the rest is the backend's.
func (p *plugin) queries(asked request) (all []backend.DataQuery, err error) {
	from, errFrom := strconv.ParseInt(asked.From, 10, 64)
	to, errTo := strconv.ParseInt(asked.To, 10, 64)
	if err := errors.Join(errFrom, errTo); err != nil {
		return nil, err
	}
	span := backend.TimeRange{From: time.UnixMilli(from), To: time.UnixMilli(to)}
	for _, raw := range asked.Queries {
		q := struct {
			RefID         string  `json:"refId"`
			MaxDataPoints int64   `json:"maxDataPoints"`
			IntervalMs    float64 `json:"intervalMs"`
			Datasource    struct {
				UID string `json:"uid"`
			} `json:"datasource"`
		}{MaxDataPoints: defaultPoints, IntervalMs: float64(defaultInterval / time.Millisecond)}
		if err := json.Unmarshal(raw, &q); err != nil {
			return nil, err
		}
		if q.Datasource.UID != p.source.UID {
			return nil, fmt.Errorf("query %s asks the data source %q, which is not there", q.RefID, q.Datasource.UID)
		}
		all = append(all, backend.DataQuery{
			RefID: q.RefID, MaxDataPoints: q.MaxDataPoints, Interval: time.Duration(q.IntervalMs * float64(time.Millisecond)), TimeRange: span, JSON: raw,
		})
	}
	return all, nil
}

func answer(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// refuse says why a request as a whole is not answered.
func refuse(w http.ResponseWriter, status int, err error) {
	text, _ := json.Marshal(map[string]string{"message": err.Error()})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
