package demosite

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Fault has the origin answer segments with an error, or not any more: none, 404, 500, slow.
func (s *Site) Fault(kind string) error {
	response, err := s.Ask(http.MethodPost, "/origin/fault?kind="+kind)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusNoContent {
		return fmt.Errorf("origin fault %s: %s", kind, response.Status)
	}
	return nil
}

// Ask asks the admin port for what needs its token.
func (s *Site) Ask(method, path string) (*http.Response, error) {
	r, err := http.NewRequest(method, "http://"+s.Admin()+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	return s.Client.Do(r)
}

// Metrics reads the admin port's page; the result adds up the series of a name that have a label.
func (s *Site) Metrics() (func(name string, labels ...string) int64, error) {
	response, err := s.Client.Get("http://" + s.Admin() + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	series := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			series[name] = n
		}
	}
	return func(name string, labels ...string) int64 {
		sum := 0.0
	next:
		for key, n := range series {
			if key != name && !strings.HasPrefix(key, name+"{") {
				continue
			}
			for _, l := range labels {
				if !strings.Contains(key, l) {
					continue next
				}
			}
			sum += n
		}
		return int64(sum)
	}, lines.Err()
}
