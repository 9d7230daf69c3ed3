package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"go.yaml.in/yaml/v3"
)

// dataSource is one of Grafana's, as files provision it.
type dataSource struct {
	UID  string         `yaml:"uid" json:"uid"`
	Name string         `yaml:"name" json:"name"`
	Type string         `yaml:"type" json:"type"`
	URL  string         `yaml:"url" json:"url"`
	JSON map[string]any `yaml:"jsonData" json:"jsonData"`
}

// provisioned reads the one data source of a file.
func provisioned(file string) (dataSource, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return dataSource{}, err
	}
	var all struct {
		Datasources []dataSource `yaml:"datasources"`
	}
	if err := yaml.Unmarshal(text, &all); err != nil {
		return dataSource{}, fmt.Errorf("%s: %w", file, err)
	}
	if len(all.Datasources) != 1 || all.Datasources[0].Type != "prometheus" || all.Datasources[0].UID == "" {
		return dataSource{}, fmt.Errorf("%s: want one data source of type prometheus with a uid, got %+v", file, all.Datasources)
	}
	d := all.Datasources[0]
	if d.JSON == nil {
		d.JSON = map[string]any{}
	}
	return d, nil
}

// context is what Grafana tells a backend of the data source that it is asked for.
func (d dataSource) context() (backend.PluginContext, error) {
	settings, err := json.Marshal(d.JSON)
	if err != nil {
		return backend.PluginContext{}, err
	}
	return backend.PluginContext{
		OrgID: 1, PluginID: d.Type,
		DataSourceInstanceSettings: &backend.DataSourceInstanceSettings{ID: 1, UID: d.UID, Name: d.Name, Type: d.Type, URL: d.URL, JSONData: settings, Updated: time.Unix(0, 0)},
		GrafanaConfig:              backend.NewGrafanaCfg(map[string]string{}),
	}, nil
}
