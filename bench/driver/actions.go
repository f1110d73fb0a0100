package main

import (
	"fmt"
	"time"
)

const (
	singleEdits = 100
	singlePause = 200 * time.Millisecond
)

func (b *bench) create() *result {
	a := b.newAction("create", b.n, 2, 1)
	return a.run(b.concurrency, func(i int) {
		it := b.items[i]
		b.deps.expect(it.depKey(), a.effects.seen(i), isAdded)
		b.svcs.expect(it.svcKey(), a.effects.seen(i), isAdded)
		b.apps.expect(it.appKey(), a.reports.seen(i), reported(0, "False"))
	}, func(i int) error { return b.createApp(b.items[i]) })
}

// status: the Deployments become ready, and the Apps show it.
func (b *bench) status() *result {
	a := b.newAction("status", b.n, 1, 0)
	return a.run(b.concurrency, func(i int) {
		it := b.items[i]
		b.apps.expect(it.appKey(), a.effects.seen(i), b.shows(it.replicas))
	}, func(i int) error { return b.showReady(b.items[i]) })
}

// shows: available replicas, and that the App is ready where the operator reports it.
func (b *bench) shows(replicas int64) func(*event) bool {
	enough := available(replicas)
	if !b.reports {
		return enough
	}
	ready := reported(0, "True")
	return func(e *event) bool { return enough(e) && ready(e) }
}

func (b *bench) edit() *result {
	a := b.newAction("edit", b.n, 1, 1)
	return a.run(b.concurrency, func(i int) {
		b.expectEdit(a, i, b.items[i])
	}, func(i int) error { return b.editApp(b.items[i]) })
}

// single: edits of one App each, with a pause between them in which all is settled.
func (b *bench) single() *result {
	edits := min(singleEdits, b.n)
	a := b.newAction("single", edits, 1, 1)
	tick := time.NewTicker(singlePause)
	defer tick.Stop()
	at := func(i int) *item { return b.items[i*b.n/edits] }
	return a.run(1, func(i int) { b.expectEdit(a, i, at(i)) }, func(i int) error {
		<-tick.C
		return b.editApp(at(i))
	})
}

// expectEdit chooses the next spec, and expects the Deployment to have it and the App to report it.
func (b *bench) expectEdit(a *action, i int, it *item) {
	b.nextSpec(it)
	b.deps.expect(it.depKey(), a.effects.seen(i), hasSpec(it.image, it.replicas))
	b.apps.expect(it.appKey(), a.reports.seen(i), reported(b.apps.generation(it.appKey()), "False"))
}

// drift: the Deployments are changed by somebody else, and reverted.
func (b *bench) drift() *result {
	const image, replicas = "registry.example.org/drift:1", 19
	a := b.newAction("drift", b.n, 1, 0)
	return a.run(b.concurrency, func(i int) {
		it := b.items[i]
		b.deps.expect(it.depKey(), a.effects.seen(i), hasSpec(image, replicas), hasSpec(it.image, it.replicas))
	}, func(i int) error { return b.patchDeployment(b.items[i], image, replicas) })
}

// recreate: the Services are deleted by somebody else, and made again.
func (b *bench) recreate() *result {
	a := b.newAction("recreate", b.n, 1, 0)
	return a.run(b.concurrency, func(i int) {
		b.svcs.expect(b.items[i].svcKey(), a.effects.seen(i), isDeleted, isAdded)
	}, func(i int) error { return b.k.call("DELETE", b.items[i].svcPath(), "DELETE services", "", nil) })
}

// idle: nothing happens for a while.
func (b *bench) idle() *result {
	a := b.newAction("idle", 1, 0, 0)
	return a.run(1, func(int) {}, func(int) error {
		time.Sleep(b.rest)
		return nil
	})
}

// The same without an operator: the driver makes the writes of children and statuses itself.

func (b *bench) bareCreate() *result {
	a := b.newAction("create", b.n, 2, 0)
	return a.run(b.concurrency, func(i int) {
		b.deps.expect(b.items[i].depKey(), a.effects.seen(i), isAdded)
		b.svcs.expect(b.items[i].svcKey(), a.effects.seen(i), isAdded)
	}, func(i int) error {
		it := b.items[i]
		if err := b.createApp(it); err != nil {
			return err
		}
		if err := b.k.call("POST", depPath(), "POST deployments", "application/json", it.depBody()); err != nil {
			return err
		}
		return b.k.call("POST", svcPath(), "POST services", "application/json", it.svcBody())
	})
}

func (b *bench) bareStatus() *result {
	a := b.newAction("status", b.n, 1, 0)
	return a.run(b.concurrency, func(i int) {
		b.apps.expect(b.items[i].appKey(), a.effects.seen(i), available(b.items[i].replicas))
	}, func(i int) error {
		it := b.items[i]
		if err := b.showReady(it); err != nil {
			return err
		}
		body := fmt.Appendf(nil, `{"status":{"availableReplicas":%d}}`, it.replicas)
		return b.k.call("PATCH", it.appPath()+"/status", "PATCH apps/status", mergePatch, body)
	})
}

func (b *bench) bareEdit() *result {
	a := b.newAction("edit", b.n, 1, 0)
	return a.run(b.concurrency, func(i int) {
		it := b.items[i]
		b.nextSpec(it)
		b.deps.expect(it.depKey(), a.effects.seen(i), hasSpec(it.image, it.replicas))
	}, func(i int) error {
		it := b.items[i]
		if err := b.editApp(it); err != nil {
			return err
		}
		return b.patchDeployment(it, it.image, it.replicas)
	})
}
