package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestEveryQueryHasADataSource: panels and variables ask the one that the dashboard's variable picks, of a type that Grafana is
// provisioned with, and that is picked by itself.
func TestEveryQueryHasADataSource(t *testing.T) {
	var provisioned struct {
		Datasources []struct {
			UID       string `yaml:"uid"`
			Type      string `yaml:"type"`
			IsDefault bool   `yaml:"isDefault"`
		} `yaml:"datasources"`
	}
	read(t, "deploy/k8s/components/grafana/datasources.yaml", &provisioned)
	if d := provisioned.Datasources; len(d) != 1 || d[0].Type != *source.Type || !d[0].IsDefault || d[0].UID == "" {
		t.Fatalf("Grafana is provisioned with %+v, dashboards want one default of type %s", d, *source.Type)
	}
	for _, b := range boards {
		text, err := os.ReadFile(filepath.Join(root, "dashboards", b.file()))
		if err != nil {
			t.Fatal(err)
		}
		var d any
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		asked, queries := dataSources(d)
		if queries == 0 || len(asked) != 1 || asked[*source.Type+" ${datasource}"] == 0 {
			t.Errorf("%s: %d queries ask %v", b.uid, queries, asked)
		}
	}
}

// dataSources counts what parts of a dashboard ask, and its queries.
func dataSources(v any) (asked map[string]int, queries int) {
	asked = map[string]int{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if d, ok := v["datasource"].(map[string]any); ok {
				kind, _ := d["type"].(string)
				uid, _ := d["uid"].(string)
				asked[kind+" "+uid]++
			}
			if _, ok := v["expr"]; ok {
				queries++
				if v["datasource"] == nil {
					asked["nobody"]++
				}
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(v)
	return asked, queries
}
