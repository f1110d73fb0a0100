package main

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

// requestCounts reads apiserver_request_total, by "VERB resource[/subresource]"; errors also with their status code in
// front. Calls that concern no resource (discovery, openapi, health, metrics) are under "GET (none)". The API server
// counts a WATCH when it ends.
func requestCounts(k *kube) (map[string]int64, error) {
	out, err := k.do("GET", "/metrics", "GET (none)", "", nil)
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte("apiserver_request_total{")) {
			countLine(counts, line)
		}
	}
	return counts, nil
}

func countLine(counts map[string]int64, line []byte) {
	end := bytes.LastIndexByte(line, '}')
	if end < 0 {
		return
	}
	l := map[string]string{}
	for _, m := range label.FindAllSubmatch(line[:end], -1) {
		l[string(m[1])] = string(m[2])
	}
	resource := l["resource"]
	if resource == "" {
		resource = "(none)"
	}
	if s := l["subresource"]; s != "" {
		resource += "/" + s
	}
	v, _ := strconv.ParseFloat(strings.TrimSpace(string(line[end+1:])), 64)
	counts[l["verb"]+" "+resource] += int64(v)
	if c := l["code"]; c >= "400" {
		counts["code "+c+" "+l["verb"]+" "+resource] += int64(v)
	}
}

// serversOwn: requests that the API server makes to itself, also when no operator runs: its identity Lease, its cluster
// IPs, discovery and openapi of its aggregator. Discovery by an operator is not told apart from them. No measured
// operator elects a leader, so no Lease is an operator's.
func serversOwn(key string) bool {
	_, resource, _ := strings.Cut(key, " ")
	resource, _, _ = strings.Cut(resource, "/")
	switch resource {
	case "(none)", "leases", "ipaddresses":
		return true
	}
	return false
}

// othersRequests returns how many requests the API server has counted that are neither the driver's nor its own: the
// operator's. Nil if the counters could not be read.
func (b *bench) othersRequests() map[string]int64 {
	counts, err := requestCounts(b.k)
	if err != nil {
		return nil
	}
	own := b.k.ownCounts()
	others := map[string]int64{}
	for key, v := range counts {
		if !strings.HasPrefix(key, "code ") && !serversOwn(key) && v > own[key] {
			others[key] = v - own[key]
		}
	}
	return others
}
