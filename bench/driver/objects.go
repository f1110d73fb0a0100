package main

import (
	"fmt"
	"strconv"
)

const (
	mergePatch = "application/merge-patch+json"
	jsonPatch  = "application/json-patch+json"
	appsPath   = "/apis/myapp.k8s.io/v1/"
	namespace  = "bench"
)

// item is one App, its children, and the spec that it was given last.
type item struct {
	app, dep, svc string
	image         string
	replicas      int64
}

func newItem(name string) *item {
	const image, replicas = "registry.example.org/app:0", 2
	return &item{app: "app-" + name, dep: "dep-" + name, svc: "svc-" + name, image: image, replicas: replicas}
}

func (it *item) appKey() string  { return namespace + "/" + it.app }
func (it *item) depKey() string  { return namespace + "/" + it.dep }
func (it *item) svcKey() string  { return namespace + "/" + it.svc }
func (it *item) appPath() string { return appPath() + "/" + it.app }
func (it *item) depPath() string { return depPath() + "/" + it.dep }
func (it *item) svcPath() string { return svcPath() + "/" + it.svc }

func appPath() string { return appsPath + "namespaces/" + namespace + "/apps" }
func depPath() string { return "/apis/apps/v1/namespaces/" + namespace + "/deployments" }
func svcPath() string { return "/api/v1/namespaces/" + namespace + "/services" }

func (it *item) appBody() []byte {
	return fmt.Appendf(nil, `{
		"apiVersion": "myapp.k8s.io/v1", "kind": "App", "metadata": {"name": "%s", "namespace": "%s"},
		"spec": {"deployment": {"name": "%s", "image": "%s", "replicas": %d}, "service": {"name": "%s"}}
	}`, it.app, namespace, it.dep, it.image, it.replicas, it.svc)
}

func (it *item) depBody() []byte {
	return fmt.Appendf(nil, `{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": {"name": "%[1]s", "namespace": "%[2]s", "labels": {"app": "%[1]s"}},
		"spec": {
			"replicas": %[3]d, "selector": {"matchLabels": {"app": "%[1]s"}},
			"template": {"metadata": {"labels": {"app": "%[1]s"}}, "spec": {"containers": [{
				"name": "app", "image": "%[4]s", "ports": [{"containerPort": 80}],
				"resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "128Mi"}},
				"livenessProbe": {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 5, "periodSeconds": 10}
			}]}}
		}
	}`, it.dep, namespace, it.replicas, it.image)
}

func (it *item) svcBody() []byte {
	return fmt.Appendf(nil, `{
		"apiVersion": "v1", "kind": "Service",
		"metadata": {"name": "%s", "namespace": "%s", "labels": {"app": "%[3]s"}},
		"spec": {"selector": {"app": "%[3]s"}, "ports": [{"port": 80, "targetPort": 80}]}
	}`, it.svc, namespace, it.dep)
}

// depSpec is a JSON patch of what an App's spec decides in its Deployment.
func depSpec(image string, replicas int64) []byte {
	return fmt.Appendf(nil, `[
		{"op": "replace", "path": "/spec/replicas", "value": %d},
		{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "%s"}
	]`, replicas, image)
}

// The driver's calls.

func (b *bench) createApp(it *item) error {
	return b.k.call("POST", appPath(), "POST apps", "application/json", it.appBody())
}

func (b *bench) editApp(it *item) error {
	body := fmt.Appendf(nil, `{"spec":{"deployment":{"image":"%s","replicas":%d}}}`, it.image, it.replicas)
	return b.k.call("PATCH", it.appPath(), "PATCH apps", mergePatch, body)
}

func (b *bench) patchDeployment(it *item, image string, replicas int64) error {
	return b.k.call("PATCH", it.depPath(), "PATCH deployments", jsonPatch, depSpec(image, replicas))
}

// showReady writes the status of a Deployment whose pods are all ready.
func (b *bench) showReady(it *item) error {
	body := fmt.Appendf(nil, `{"status": {
		"observedGeneration": %d,
		"replicas": %[2]d, "readyReplicas": %[2]d, "updatedReplicas": %[2]d, "availableReplicas": %[2]d
	}}`, b.deps.generation(it.depKey()), it.replicas)
	return b.k.call("PATCH", it.depPath()+"/status", "PATCH deployments/status", mergePatch, body)
}

// nextSpec gives an item a spec it has not had before, with more replicas than its Deployment has ready.
func (b *bench) nextSpec(it *item) {
	b.updates++
	it.image = "registry.example.org/app:" + strconv.Itoa(b.updates)
	it.replicas = 3 + int64(b.updates%5)
}
