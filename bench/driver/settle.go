package main

import (
	"maps"
	"time"
)

const (
	sampleEvery = 50 * time.Millisecond
	idleTicks   = 3 // CPU that a quiet operator may use for timers and garbage collection, in hundredths of a second
)

// quiet finds the start of a quiet period: a time in which no watched object changes, and the operator uses no more CPU
// than idleTicks. Work that an operator delays ends the period, and another one begins.
type quiet struct {
	start time.Time
	ticks int64 // the operator's CPU at the start
}

// observe takes a sample, and returns how long the quiet period has lasted: 0 if it has just begun.
func (q *quiet) observe(now time.Time, ticks int64, lastEvent time.Time) time.Duration {
	if q.start.IsZero() || ticks-q.ticks > idleTicks || lastEvent.After(q.start) {
		*q = quiet{start: now, ticks: ticks}
	}
	return now.Sub(q.start)
}

// settle waits for a quiet period in which the operator makes no request for b.quiet either, and returns the reading of
// its start. Requests are counted twice only, a little into the period and b.quiet later: it costs the API server CPU.
func (b *bench) settle() (start reading, settled bool) {
	var q quiet
	var counted map[string]int64
	processes := tree(b.operator)
	first := b.quiet / 3
	for deadline := time.Now().Add(b.settleMax); time.Now().Before(deadline); time.Sleep(sampleEvery) {
		now := time.Now()
		lasted := q.observe(now, ticksOf(processes), time.Unix(0, b.lastEvent.Load()))
		switch {
		case lasted == 0:
			start, counted = b.read(now), nil
		case lasted >= first && counted == nil:
			counted = b.othersRequests()
		case lasted >= first+b.quiet:
			if maps.Equal(counted, b.othersRequests()) {
				return start, true
			}
			q = quiet{}
		}
	}
	return start, false
}
