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

// settle waits for a quiet period of b.quiet in which the operator makes no request either, and returns the reading of
// its start. Requests are counted twice only, a third into the period and at its end: it costs the API server some CPU.
func (b *bench) settle() (start reading, settled bool) {
	var q quiet
	var counted map[string]int64
	processes := tree(b.operator)
	for deadline := time.Now().Add(b.settleMax); time.Now().Before(deadline); time.Sleep(sampleEvery) {
		now := time.Now()
		lasted := q.observe(now, ticksOf(processes), time.Unix(0, b.lastEvent.Load()))
		switch {
		case lasted == 0:
			start, counted = b.read(now), nil
		case lasted >= b.quiet/3 && counted == nil:
			counted = b.othersRequests()
		case lasted >= b.quiet:
			if maps.Equal(counted, b.othersRequests()) {
				return start, true
			}
			q = quiet{}
		}
	}
	return start, false
}
