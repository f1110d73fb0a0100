package main

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// reading is what a set of processes and the whole machine had used at one moment, in hundredths of a second.
type reading struct {
	at                                time.Time
	operator, apiserver, etcd, driver int64
	busy, steal                       int64
}

func (b *bench) read(at time.Time) reading {
	r := reading{at: at, operator: cpuTicks(b.operator), apiserver: cpuTicks(b.apiserver), etcd: cpuTicks(b.etcd)}
	r.driver = cpuTicks([]int{os.Getpid()})
	r.busy, r.steal = machineTicks()
	return r
}

type resources struct {
	CPUEffects float64 `json:"cpu_effects_s"` // until the last effect was seen
	CPUSettled float64 `json:"cpu_settled_s"` // until all was settled
	RSS        float64 `json:"rss_mib"`
	Peak       float64 `json:"peak_rss_mib"` // since the process started
}

type result struct {
	Action         string           `json:"action"`
	Items          int              `json:"items"`
	Done           int              `json:"done"`     // items whose effects were seen
	Reported       int              `json:"reported"` // items whose status shows it, with operators that report
	Settled        bool             `json:"settled"`
	Seconds        float64          `json:"seconds"`         // from the first call to the last effect seen
	SettledSeconds float64          `json:"settled_seconds"` // from the first call to the start of the quiet period
	Submit         float64          `json:"submit_seconds"`  // until the driver's own calls had been answered
	Latency        *latency         `json:"latency_ms,omitempty"`
	Operator       resources        `json:"operator"`
	APIServer      resources        `json:"apiserver"`
	Etcd           resources        `json:"etcd"`
	DriverCPU      float64          `json:"driver_cpu_s"`
	Requests       map[string]int64 `json:"requests"`          // the operator's, until settled
	Refused        map[string]int64 `json:"refused,omitempty"` // answers of 400 and above, the driver's included
	OtherCPU       float64          `json:"other_cpu_s"`       // used by the rest of the machine meanwhile
	Steal          float64          `json:"steal_s"`
	Errors         int              `json:"driver_errors"`
	FirstError     string           `json:"first_driver_error,omitempty"`
	Load           string           `json:"loadavg_before"`
}

func (r *result) complete() bool {
	return r.Done == r.Items && r.Reported == r.Items && r.Settled && r.Errors == 0
}

// pending counts what still has to be seen of each item.
type pending struct {
	mu   sync.Mutex
	left []int
	end  []time.Time
	done int
	last time.Time
	all  chan struct{}
}

func newPending(items, each int) *pending {
	p := &pending{left: make([]int, items), end: make([]time.Time, items), all: make(chan struct{})}
	for i := range p.left {
		p.left[i] = each
	}
	if each == 0 {
		p.done = items
		close(p.all)
	}
	return p
}

// seen is the callback for one thing seen of item i.
func (p *pending) seen(i int) func(time.Time) {
	return func(at time.Time) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.left[i] == 0 {
			return
		}
		p.left[i]--
		if at.After(p.end[i]) {
			p.end[i] = at
		}
		if p.left[i] > 0 {
			return
		}
		p.done++
		if at.After(p.last) {
			p.last = at
		}
		if p.done == len(p.left) {
			close(p.all)
		}
	}
}

// wait returns how many items are done, when all are or the time is up.
func (p *pending) wait(until time.Time) int {
	select {
	case <-p.all:
	case <-time.After(time.Until(until)):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// action is one kind of change, made to a number of items and measured until all is settled.
type action struct {
	b       *bench
	name    string
	effects *pending    // what the action is about: children made, changed, a status shown
	reports *pending    // what an operator that reports says of it in the status of the App
	start   []time.Time // answers to the driver's calls
	mu      sync.Mutex
	errs    int
	first   string
}

// newAction: `effects` are seen of each item, and `reports` of it where the operator reports.
func (b *bench) newAction(name string, items, effects, reports int) *action {
	if !b.reports {
		reports = 0
	}
	return &action{
		b: b, name: name, start: make([]time.Time, items),
		effects: newPending(items, effects), reports: newPending(items, reports),
	}
}

func (a *action) fail(err error) {
	if err == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errs++
	if a.first == "" {
		a.first = err.Error()
	}
}

// run measures: expect registers what must be seen of item i, call makes the driver's call for it.
func (a *action) run(concurrency int, expect func(i int), call func(i int) error) *result {
	b := a.b
	n := len(a.start)
	for i := range n {
		expect(i)
	}
	r := &result{Action: a.name, Items: n, Load: loadavg()}
	counts, err := requestCounts(b.k)
	a.fail(err)
	own := b.k.ownCounts()
	begin := b.read(time.Now())
	until := begin.at.Add(b.timeout)
	a.callAll(concurrency, call)
	r.Submit = round(time.Since(begin.at).Seconds(), 3)
	r.Done = a.effects.wait(until)
	effects := b.read(time.Now())
	if last := a.effects.last; !last.IsZero() {
		effects.at = last
	}
	r.Reported = a.reports.wait(until)
	quiet, settled := b.settle()
	r.Settled = settled
	r.Latency = a.latencies()
	b.fill(r, begin, effects, quiet)
	a.fail(b.fillRequests(r, counts, own))
	r.Errors, r.FirstError = a.errs, a.first
	b.apps.reset()
	b.deps.reset()
	b.svcs.reset()
	return r
}

// callAll makes the driver's calls, so many at a time.
func (a *action) callAll(concurrency int, call func(i int) error) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range concurrency {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(a.start); i = int(next.Add(1)) - 1 {
				a.fail(call(i))
				at := time.Now()
				a.mu.Lock()
				a.start[i] = at
				a.mu.Unlock()
			}
		})
	}
	group.Wait()
}

// latencies are from the answer to the driver's call to the effect.
func (a *action) latencies() *latency {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.effects.mu.Lock()
	defer a.effects.mu.Unlock()
	var ms []float64
	for i, end := range a.effects.end {
		if a.effects.left[i] == 0 && !end.IsZero() {
			ms = append(ms, float64(end.Sub(a.start[i]).Microseconds())/1000)
		}
	}
	return percentiles(ms)
}

// fill works out times and CPU. The operator's CPU counts to the end of the quiet period, so that nothing it does is
// left out. That of the others counts to its start: within it, the driver has the API server print its counters.
func (b *bench) fill(r *result, begin, effects, quiet reading) {
	sec := func(ticks int64) float64 { return round(float64(ticks)/ticksPerSecond, 2) }
	r.Seconds = round(effects.at.Sub(begin.at).Seconds(), 3)
	r.SettledSeconds = round(quiet.at.Sub(begin.at).Seconds(), 3)
	r.Operator = used(b.operator, sec(effects.operator-begin.operator), sec(cpuTicks(b.operator)-begin.operator))
	r.APIServer = used(b.apiserver, sec(effects.apiserver-begin.apiserver), sec(quiet.apiserver-begin.apiserver))
	r.Etcd = used(b.etcd, sec(effects.etcd-begin.etcd), sec(quiet.etcd-begin.etcd))
	r.DriverCPU = sec(quiet.driver - begin.driver)
	measured := func(at reading) int64 { return at.operator + at.apiserver + at.etcd + at.driver }
	r.OtherCPU = sec(quiet.busy - begin.busy - measured(quiet) + measured(begin))
	r.Steal = sec(quiet.steal - begin.steal)
}

func used(pids []int, effects, settled float64) resources {
	r := resources{CPUEffects: effects, CPUSettled: settled}
	r.RSS, r.Peak = memory(pids)
	return r
}

// fillRequests fills in what was asked of the API server since `before`, less the driver's and the API server's own.
func (b *bench) fillRequests(r *result, before, own map[string]int64) error {
	r.Requests, r.Refused = map[string]int64{}, map[string]int64{}
	after, err := requestCounts(b.k)
	if err != nil {
		return err
	}
	mine := b.k.ownCounts()
	for key, v := range after {
		d := v - before[key]
		if strings.HasPrefix(key, "code ") {
			if d > 0 {
				r.Refused[key] = d
			}
		} else if d -= mine[key] - own[key]; d > 0 && !serversOwn(key) {
			r.Requests[key] = d
		}
	}
	return nil
}
