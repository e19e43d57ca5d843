package realkafka

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Config describes a cluster. The zero value is one plain node.
type Config struct {
	// Nodes is 1 or 3; each is broker and controller. Default 1.
	Nodes int

	// HeapMiB is the largest heap of a node. Default 384.
	HeapMiB int

	// Secure adds listeners with TLS and SASL. See Cluster.Security.
	Secure bool

	// Properties are further settings of the brokers.
	Properties map[string]string

	// Through adds a listener that clients reach through a proxy: it is
	// called with each node's number, from 0, and the listener's address, and
	// returns the address that the node shall advertise. It is called again
	// if the start has to choose other ports. See Cluster.ProxiedBrokers.
	Through func(node int, addr string) (advertise string, err error)
}

// listener is one of a node's.
type listener struct {
	name      string
	port      int
	advertise string // empty: the address itself
}

// protocol is the security protocol that the listener speaks.
func (l listener) protocol() string {
	if l.name == proxiedListener {
		return plainListener
	}
	return l.name
}

// Names of listeners.
const (
	plainListener      = "PLAINTEXT"
	controllerListener = "CONTROLLER"
	tlsListener        = "SSL"
	saslListener       = "SASL_PLAINTEXT"
	saslTLSListener    = "SASL_SSL"
	proxiedListener    = "PROXIED"
)

func (c Config) listenerNames() []string {
	names := []string{plainListener, controllerListener}
	if c.Secure {
		names = append(names, tlsListener, saslListener, saslTLSListener)
	}
	if c.Through != nil {
		names = append(names, proxiedListener)
	}
	return names
}

// properties returns the settings of one node.
func (c *Cluster) properties(n *node) string {
	isr := fmt.Sprint((len(c.nodes) + 1) / 2)
	replicas := fmt.Sprint(len(c.nodes))
	var listen, advertise, voters []string
	protocols := []string{controllerListener + ":" + plainListener}
	for _, l := range n.listeners {
		at := fmt.Sprintf("%s://127.0.0.1:%d", l.name, l.port)
		listen = append(listen, at)
		if l.name != controllerListener {
			if l.advertise != "" {
				at = l.name + "://" + l.advertise
			}
			advertise = append(advertise, at)
			protocols = append(protocols, l.name+":"+l.protocol())
		}
	}
	for _, other := range c.nodes {
		voters = append(voters, fmt.Sprintf("%d@%s", other.id, other.addr(controllerListener)))
	}
	p := map[string]string{
		"process.roles":                            "broker,controller",
		"node.id":                                  fmt.Sprint(n.id),
		"controller.quorum.voters":                 strings.Join(voters, ","),
		"controller.listener.names":                controllerListener,
		"listeners":                                strings.Join(listen, ","),
		"advertised.listeners":                     strings.Join(advertise, ","),
		"inter.broker.listener.name":               plainListener,
		"listener.security.protocol.map":           strings.Join(protocols, ","),
		"log.dirs":                                 n.dir + "/data",
		"default.replication.factor":               replicas,
		"offsets.topic.replication.factor":         replicas,
		"transaction.state.log.replication.factor": replicas,
		"min.insync.replicas":                      isr,
		"transaction.state.log.min.isr":            isr,
		"offsets.topic.num.partitions":             "8",
		"transaction.state.log.num.partitions":     "8",
		"group.initial.rebalance.delay.ms":         "0",
		"group.min.session.timeout.ms":             "1000",
		"auto.create.topics.enable":                "false",
		"controlled.shutdown.enable":               fmt.Sprint(len(c.nodes) > 1),
		"log.cleaner.dedupe.buffer.size":           "16777216",
		"log.cleaner.backoff.ms":                   "200",
	}
	if c.security != nil {
		maps.Copy(p, c.security.properties())
	}
	maps.Copy(p, c.cfg.Properties)
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "%s=%s\n", k, p[k])
	}
	return b.String()
}

func (c Config) heap() int  { return cmp.Or(c.HeapMiB, 384) }
func (c Config) nodes() int { return cmp.Or(c.Nodes, 1) }

// MinSession is the shortest session timeout that the brokers accept.
const MinSession = time.Second
