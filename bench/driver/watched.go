package main

import (
	"sync"
	"time"
)

// table keeps what the watch of one collection shows, and what the action in progress has to make of its objects.
type table struct {
	mu   sync.Mutex
	want map[string]*expectation
	gen  map[string]int64
	live map[string]bool
}

// expectation is a sequence of states an object must be seen in, one after the other.
type expectation struct {
	steps []func(*event) bool
	met   func(time.Time)
}

func newTable() *table {
	return &table{want: map[string]*expectation{}, gen: map[string]int64{}, live: map[string]bool{}}
}

func (t *table) expect(key string, met func(time.Time), steps ...func(*event) bool) {
	t.mu.Lock()
	t.want[key] = &expectation{steps, met}
	t.mu.Unlock()
}

func (t *table) reset() {
	t.mu.Lock()
	t.want = map[string]*expectation{}
	t.mu.Unlock()
}

func (t *table) generation(key string) int64 { t.mu.Lock(); defer t.mu.Unlock(); return t.gen[key] }
func (t *table) exists(key string) bool      { t.mu.Lock(); defer t.mu.Unlock(); return t.live[key] }

// handle keeps the table up to date with the events of its collection.
func (b *bench) handle(t *table) func(*event) {
	return func(e *event) {
		b.lastEvent.Store(e.at.UnixNano())
		if met := t.observe(e); met != nil {
			met(e.at)
		}
	}
}

// observe returns the callback of an expectation that this event has met.
func (t *table) observe(e *event) func(time.Time) {
	key := e.Object.Metadata.Namespace + "/" + e.Object.Metadata.Name
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gen[key] = e.Object.Metadata.Generation
	t.live[key] = e.Type != "DELETED"
	w := t.want[key]
	if w == nil || !w.steps[0](e) {
		return nil
	}
	if w.steps = w.steps[1:]; len(w.steps) > 0 {
		return nil
	}
	delete(t.want, key)
	return w.met
}

func isAdded(e *event) bool   { return e.Type == "ADDED" }
func isDeleted(e *event) bool { return e.Type == "DELETED" }

// hasSpec: a Deployment has this image and this many replicas.
func hasSpec(image string, replicas int64) func(*event) bool {
	return func(e *event) bool {
		return e.Type != "DELETED" && e.Object.image() == image && e.Object.replicas() == replicas
	}
}

// available: the status of an App shows this many available replicas.
func available(v int64) func(*event) bool {
	return func(e *event) bool {
		a := e.Object.Status.AvailableReplicas
		return e.Type != "DELETED" && a != nil && *a == v
	}
}

// reported: the status of an App is that of a generation later than `after`, and its condition Ready has this value.
func reported(after int64, ready string) func(*event) bool {
	return func(e *event) bool {
		generation := e.Object.Metadata.Generation
		return generation > after && e.Object.Status.ObservedGeneration >= generation && e.Object.condition("Ready") == ready
	}
}
