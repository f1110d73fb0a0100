package main

import (
	"encoding/json"
	"testing"
	"time"
)

func appEvent(t *testing.T, object string) *event {
	e := &event{Type: "MODIFIED"}
	if err := json.Unmarshal([]byte(object), &e.Object); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestAnEditIsReportedByTheStatusOfItsGeneration(t *testing.T) {
	const ready = `"conditions": [{"type": "Ready", "status": "False"}]`
	edited := reported(1, "False")
	for object, want := range map[string]bool{
		`{"metadata": {"generation": 1}, "status": {"observedGeneration": 1, ` + ready + `}}`: false, // before the edit
		`{"metadata": {"generation": 2}, "status": {"observedGeneration": 1, ` + ready + `}}`: false,
		`{"metadata": {"generation": 2}, "status": {"observedGeneration": 2}}`:                false,
		`{"metadata": {"generation": 2}, "status": {"observedGeneration": 2, ` + ready + `}}`: true,
	} {
		if got := edited(appEvent(t, object)); got != want {
			t.Errorf("%s: %t", object, got)
		}
	}
}

func TestAnExpectationIsMetByItsStatesInOrder(t *testing.T) {
	deployments := newTable()
	deployments.expect("bench/a", func(time.Time) {}, isDeleted, isAdded)
	for i, seen := range []struct {
		kind string
		met  bool
	}{{"ADDED", false}, {"DELETED", false}, {"ADDED", true}, {"DELETED", false}} {
		e := appEvent(t, `{"metadata": {"namespace": "bench", "name": "a"}}`)
		e.Type = seen.kind
		if met := deployments.observe(e) != nil; met != seen.met {
			t.Errorf("event %d: %t", i, met)
		}
	}
}
