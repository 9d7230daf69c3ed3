package manifests

import (
	"bytes"
	"testing"

	"github.com/zegl/kube-score/config"
	"github.com/zegl/kube-score/domain"
	"github.com/zegl/kube-score/parser"
	"github.com/zegl/kube-score/score"
	"github.com/zegl/kube-score/score/checks"
	"github.com/zegl/kube-score/scorecard"
)

type named struct{ *bytes.Reader }

func (named) Name() string { return "production" }

// graded is kube-score's opinion: what it calls critical, one line each.
func graded(t *testing.T, text []byte) []string {
	t.Helper()
	p, err := parser.New(&parser.Config{})
	if err != nil {
		t.Fatal(err)
	}
	all, err := p.ParseFiles([]domain.NamedReader{named{bytes.NewReader(text)}})
	if err != nil {
		t.Fatal(err)
	}
	run := &config.RunConfiguration{
		UseIgnoreChecksAnnotation: true, KubernetesVersion: config.Semver{Major: 1, Minor: 34}, MinReplicasDeployment: 2, MinReplicasHPA: 2,
	}
	card, err := score.Score(all, score.RegisterAllChecks(all, &checks.Config{}, run), run)
	if err != nil {
		t.Fatal(err)
	}
	var critical []string
	for _, object := range *card {
		for _, check := range object.Checks {
			if check.Skipped || check.Grade > scorecard.GradeCritical {
				continue
			}
			line := object.HumanFriendlyRef() + ": " + check.Check.ID
			for _, comment := range check.Comments {
				line += " (" + comment.Summary + ")"
			}
			critical = append(critical, line)
		}
	}
	return critical
}

// TestKubeScoreFindsNothingCritical in production, but what the overlay names and explains.
func TestKubeScoreFindsNothingCritical(t *testing.T) {
	at := overlay(t, "production", private)
	edit(t, at+"/settings.env", filled)
	built, err := build(at)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range graded(t, text) {
		t.Error(line)
	}
	if worse := bytes.ReplaceAll(text, []byte("readOnlyRootFilesystem: true"), []byte("readOnlyRootFilesystem: false")); len(graded(t, worse)) == 0 {
		t.Error("and nothing where every container may write into its image")
	}
}
