package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
)

const counters = `# TYPE apiserver_request_total counter
apiserver_request_total{code="201",resource="deployments",subresource="",verb="POST"} 5
apiserver_request_total{code="409",resource="deployments",subresource="",verb="POST"} 2
apiserver_request_total{code="200",resource="apps",subresource="status",verb="PATCH"} 4
apiserver_request_total{code="201",resource="apps",subresource="",verb="POST"} 3
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT"} 9
apiserver_request_total{code="200",resource="",subresource="/metrics",verb="GET"} 9
`

func TestTheOperatorsRequestsAreThoseOfNobodyElse(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(counters))
	}))
	defer server.Close()
	b := &bench{k: &kube{server: server.URL, calls: server.Client(), own: map[string]int64{"POST apps": 3}}}
	want := map[string]int64{"POST deployments": 7, "PATCH apps/status": 4}
	if got := b.othersRequests(); !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}
