package signal

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// row is what spec/tracker-protocol.md (Fields) says of one kind of object: its fields, and whether each is required.
type row map[string]bool

// table reads the rows by the name of the message, the kind of the signal, or the member that has such an object.
func table(t *testing.T) map[string]row {
	t.Helper()
	b, err := os.ReadFile("../../../spec/tracker-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "| message | fields |\n|---|---|\n")
	rows := map[string]row{}
	quoted := regexp.MustCompile("`([a-z_]+)`")
	// Of a cell these are no fields: what a default or a limit names, and what objects of a list have (said as "of").
	other := regexp.MustCompile("(default|≥) `[a-z_]+`|: .*?( ·|$)| of `.*?,|\\bof `.*$")
	field := regexp.MustCompile("`([a-z_]+)`(!?)")
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2 {
			break
		}
		r := row{}
		for _, m := range field.FindAllStringSubmatch(other.ReplaceAllString(cells[1], " ·"), -1) {
			r[m[1]] = m[2] == "!"
		}
		for _, name := range quoted.FindAllStringSubmatch(strings.ReplaceAll(cells[0], "[]", ""), -1) {
			if rows[name[1]] == nil { // the message policy has what welcome has
				rows[name[1]] = r
			}
		}
		if strings.TrimSpace(cells[0]) == "any" {
			rows["any"] = r
		}
	}
	if len(rows) < 30 {
		t.Fatalf("%d rows; the table is not where it was", len(rows))
	}
	return rows
}

// apart are rows that say their fields in words: they are those of other messages or of other pages.
var apart = []string{"keys", "ice", "revoke", "stats", "signal", "revocations", "verify_keys"}

// TestTheTableHasEveryField holds the table against the fields of the messages' types.
func TestTheTableHasEveryField(t *testing.T) {
	rows := table(t)
	for name, of := range map[string]any{
		"hello": Hello{}, "welcome": Welcome{}, "ice_servers": ICEServer{}, "policy": Policy{}, "limits": Limits{}, "token": Token{}, "granted": Granted{},
		"join": Join{}, "range": Range{}, "offers": Offer{}, "plan": Plan{}, "joined": Joined{}, "introduce": Introduce{}, "update": Update{}, "leave": Leave{},
		"ticket": Ticket{}, "reconnect": Reconnect{}, "error": Error{},
	} {
		var has []string
		for i := range reflect.TypeOf(of).NumField() {
			tag, _, _ := strings.Cut(reflect.TypeOf(of).Field(i).Tag.Get("json"), ",")
			if _, common := rows["any"][tag]; !common {
				has = append(has, tag)
			}
		}
		slices.Sort(has)
		if says := slices.Sorted(maps.Keys(rows[name])); !slices.Equal(says, has) {
			t.Errorf("%s: the table has %v, the message %v", name, says, has)
		}
	}
}

// TestFieldsAreRequiredAsTheTableSays leaves each field out of the vectors that are well-formed.
func TestFieldsAreRequiredAsTheTableSays(t *testing.T) {
	rows := table(t)
	tried := map[string]bool{}
	for _, v := range vectors(t) {
		var m map[string]any
		if !v.OK || v.Decoded["unknown"] == true || json.Unmarshal([]byte(v.Raw), &m) != nil {
			continue
		}
		name, _ := m["type"].(string)
		if kind, is := m["kind"].(string); is && name == "signal" {
			leaveOut(t, m, m, rows, kind, tried)
		}
		leaveOut(t, m, m, rows, name, tried)
	}
	for name, r := range rows {
		for field, required := range r {
			if !slices.Contains(apart, name) && name != "any" && required && !tried[name+" "+field] {
				t.Errorf("no vector has %s with %s", name, field)
			}
		}
	}
}

// leaveOut decodes a message without each field of an object in it, and of the objects in that.
func leaveOut(t *testing.T, m, object map[string]any, rows map[string]row, name string, tried map[string]bool) {
	for field, value := range object {
		required, known := rows[name][field]
		if known && !slices.Contains(apart, name) {
			tried[name+" "+field] = true
			delete(object, field)
			raw, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			object[field] = value
			if _, err := Decode(raw); (err != nil) != required {
				t.Errorf("%s without %s, required %v: %v (%s)", name, field, required, err, raw)
			}
		}
		switch value := value.(type) {
		case map[string]any:
			leaveOut(t, m, value, rows, field, tried)
		case []any:
			for _, one := range value {
				if inner, is := one.(map[string]any); is {
					leaveOut(t, m, inner, rows, field, tried)
				}
			}
		}
	}
}
