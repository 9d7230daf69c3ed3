package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// TestTheProvisionedSourceIsRead: what Grafana is deployed with.
func TestTheProvisionedSourceIsRead(t *testing.T) {
	d, err := provisioned(filepath.Join(root, "deploy/k8s/components/grafana/datasources.yaml"))
	if err != nil || d.UID != "prometheus" || d.JSON["timeInterval"] != "15s" || d.URL == "" {
		t.Errorf("%+v: %v", d, err)
	}
	file := filepath.Join(t.TempDir(), "none.yaml")
	for _, text := range []string{"datasources: []", "datasources: [{type: loki, uid: a}]", "datasources: [{type: prometheus}]", ":"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := provisioned(file); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// world is the backend in front of a Prometheus that says what it was asked.
type world struct {
	t     *testing.T
	url   string
	asked []string // path and query of each question
}

func newWorld(t *testing.T, says func(w http.ResponseWriter, r *http.Request)) *world {
	t.Helper()
	w := &world{t: t}
	prometheus := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		w.asked = append(w.asked, r.URL.Path+" "+r.Form.Get("query")+" "+r.Form.Get("step"))
		rw.Header().Set("Content-Type", "application/json")
		says(rw, r)
	}))
	t.Cleanup(prometheus.Close)
	h, err := newBackend(dataSource{UID: "here", Name: "Prometheus", Type: "prometheus", URL: prometheus.URL, JSON: map[string]any{"timeInterval": "5s"}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) post(body string) (int, string) {
	w.t.Helper()
	response, err := http.Post(w.url+"/api/ds/query", "application/json", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

const span = `"from":"1700000000000","to":"1700000300000"`

const series = `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"role":"seed"},"values":[[1700000000,"1"],[1700000005,"NaN"],[1700000010,"3.5"]]}]}}`

// TestQueriesAreGrafanas: the windows are put in, the legend is filled, what is no number is null.
func TestQueriesAreGrafanas(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, series) })
	status, got := w.post(`{` + span + `,"queries":[{"refId":"A","datasource":{"uid":"here"},"expr":"rate(a[$__rate_interval]) / b[$__range]","legendFormat":"to a {{role}}","range":true,"intervalMs":5000,"maxDataPoints":440}]}`)
	if want := []string{"/api/v1/query_range rate(a[20s]) / b[300s] 5"}; fmt.Sprint(w.asked) != fmt.Sprint(want) {
		t.Errorf("asked %q, want %q", w.asked, want)
	}
	for _, want := range []string{`"displayNameFromDS":"to a seed"`, `[1700000000000,1700000005000,1700000010000],[1,null,3.5]`, `"status":200`} {
		if status != http.StatusOK || !strings.Contains(got, want) {
			t.Errorf("%d without %s: %s", status, want, got)
		}
	}
}

// TestErrorsSayWhereTheyComeFrom: of the Prometheus, or of the request.
func TestErrorsSayWhereTheyComeFrom(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, `{"status":"error","errorType":"bad_data","error":"parse error: unexpected end of input"}`)
	})
	for body, wants := range map[string][]string{
		`{` + span + `,"queries":[{"refId":"A","datasource":{"uid":"here"},"expr":"sum(","range":true}]}`:     {"bad_data", "unexpected end", `"errorSource":"downstream"`},
		`{` + span + `,"queries":[{"refId":"A","datasource":{"uid":"there"},"expr":"up","range":true}]}`:      {"there"},
		`{"from":"now-1h","to":"now","queries":[{"refId":"A","datasource":{"uid":"here"},"expr":"up"}]}`:      {"now-1h"},
		`{` + span + `,"queries":[{"refId":"A","datasource":{"uid":"here"},"expr":"up","maxDataPoints":""}]}`: {"maxDataPoints"},
	} {
		status, got := w.post(body)
		for _, want := range wants {
			if status != http.StatusBadRequest || !strings.Contains(got, want) {
				t.Errorf("%s: %d without %s: %s", body, status, want, got)
			}
		}
	}
}

// TestVariablesAreAsked: label_values of a variable is a resource of the data source.
func TestVariablesAreAsked(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(rw, `{"status":"success","data":["%s"]}`, r.Form.Get("match[]"))
	})
	response, err := http.Get(w.url + "/api/datasources/uid/here/resources/api/v1/label/site/values?match[]=a_total")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(response.Body)
	if string(text) != `{"status":"success","data":["a_total"]}` || !strings.HasPrefix(w.asked[0], "/api/v1/label/site/values") {
		t.Errorf("%s, asked %q", text, w.asked)
	}
}

// TestEveryQueryOfTheDashboardsIsTaken: nothing of Grafana's is left in what Prometheus is asked, and every legend can be filled.
func TestEveryQueryOfTheDashboardsIsTaken(t *testing.T) {
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, series) })
	files, err := filepath.Glob(filepath.Join(root, "dashboards", "*.json"))
	if err != nil || len(files) < 3 {
		t.Fatalf("dashboards: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.ReplaceAll(bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("${datasource}"), []byte("here")), []byte("$site"), []byte(".*")), []byte("$price"), []byte("1"))
		var board struct {
			Panels []struct {
				Title   string            `json:"title"`
				Targets []json.RawMessage `json:"targets"`
			} `json:"panels"`
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatal(err)
		}
		queries := 0
		for _, p := range board.Panels {
			if len(p.Targets) == 0 {
				continue
			}
			queries += len(p.Targets)
			asked, _ := json.Marshal(map[string]any{"from": "1700000000000", "to": "1700000300000", "queries": p.Targets})
			if status, got := w.post(string(asked)); status != http.StatusOK || strings.Count(got, `"frames"`) != len(p.Targets) {
				t.Errorf("%s: %q: %d %s", file, p.Title, status, got)
			}
		}
		if queries < 10 {
			t.Errorf("%s: only %d queries", file, queries)
		}
	}
	for _, q := range w.asked {
		if strings.Contains(q, "$") {
			t.Errorf("a variable is left in %s", q)
		}
	}
}
