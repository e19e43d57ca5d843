package soak

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// proxies stand between the service and the nodes, one for each node. Through
// is called while the cluster starts, everything else by the nemesis's
// goroutine.
type proxies struct {
	server *toxiproxy.ApiServer

	mu  sync.Mutex
	all map[int]*toxiproxy.Proxy // guarded by mu; by node
}

func newProxies() *proxies {
	return &proxies{
		server: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
		all:    map[int]*toxiproxy.Proxy{},
	}
}

// through starts a node's proxy and returns its address.
func (ps *proxies) through(node int, addr string) (string, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if old := ps.all[node]; old != nil {
		old.Stop()
	}
	p := toxiproxy.NewProxy(ps.server, fmt.Sprint("node-", node), "127.0.0.1:0", addr)
	if err := p.Start(); err != nil {
		return "", err
	}
	ps.all[node] = p
	return p.Listen, nil
}

func (ps *proxies) get(node int) *toxiproxy.Proxy {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.all[node]
}

// cut closes all connections to a node and refuses new ones.
func (ps *proxies) cut(node int) { ps.get(node).Stop() }

// silence lets connections stand and nothing pass; what is under way is lost.
func (ps *proxies) silence(node int) error {
	return ps.toxics(node, `{"type":"timeout","name":"silent-up","stream":"upstream","attributes":{"timeout":0}}`,
		`{"type":"timeout","name":"silent-down","stream":"downstream","attributes":{"timeout":0}}`)
}

// delay makes everything that passes late, by milliseconds.
func (ps *proxies) delay(node, ms int) error {
	f := `{"type":"latency","name":"slow-%s","stream":"%[1]sstream","attributes":{"latency":%d,"jitter":%d}}`
	return ps.toxics(node, fmt.Sprintf(f, "up", ms, ms/2), fmt.Sprintf(f, "down", ms, ms/2))
}

func (ps *proxies) toxics(node int, specs ...string) error {
	for _, s := range specs {
		if _, err := ps.get(node).Toxics.AddToxicJson(strings.NewReader(s)); err != nil {
			return fmt.Errorf("proxy of node %d: %w", node, err)
		}
	}
	return nil
}

// clear ends whatever was done to a node's connections.
func (ps *proxies) clear(node int) error {
	p := ps.get(node)
	done := make(chan struct{})
	go func() { // ends with the removal; waited for below unless the library hangs
		defer close(done)
		p.Toxics.ResetToxics(context.Background())
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		return fmt.Errorf("proxy of node %d does not let go of its toxics", node)
	}
	deadline := time.Now().Add(30 * time.Second)
	for !p.Enabled {
		err := p.Start()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(100 * time.Millisecond) // somebody holds the port for a moment
	}
	return nil
}

func (ps *proxies) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.all {
		p.Stop()
	}
}
