package realkafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Security is what a client needs to connect to a cluster's secured
// listeners.
type Security struct {
	// User and Password are good for PLAIN and both SCRAM mechanisms;
	// OAUTHBEARER takes unsecured tokens of any subject.
	User, Password string

	roots    *x509.CertPool
	keystore string // certificate and key, PEM
}

// Security returns how to connect to the secured listeners, or nil.
func (c *Cluster) Security() *Security { return c.security }

// TLSBrokers returns the addresses with TLS.
func (c *Cluster) TLSBrokers() []string { return c.addrs(tlsListener) }

// SASLBrokers returns the addresses with SASL, without TLS.
func (c *Cluster) SASLBrokers() []string { return c.addrs(saslListener) }

// SASLTLSBrokers returns the addresses with SASL over TLS.
func (c *Cluster) SASLTLSBrokers() []string { return c.addrs(saslTLSListener) }

// TLS returns a configuration that trusts the cluster.
func (s *Security) TLS() *tls.Config {
	return &tls.Config{RootCAs: s.roots, MinVersion: tls.VersionTLS12}
}

func newSecurity(dir string) (*Security, error) {
	s := &Security{User: "alice", Password: "correct-horse-battery", keystore: filepath.Join(dir, "keystore.pem")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IsCA:        true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(cert)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	store := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	store = append(store, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	return s, os.WriteFile(s.keystore, store, 0o600)
}

// properties returns the brokers' settings for TLS and SASL.
func (s *Security) properties() map[string]string {
	p := map[string]string{
		"ssl.keystore.type":       "PEM",
		"ssl.keystore.location":   s.keystore,
		"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
	}
	const security = "org.apache.kafka.common.security."
	for _, listener := range []string{"sasl_plaintext", "sasl_ssl"} {
		jaas := func(mechanism, line string) {
			p["listener.name."+listener+"."+mechanism+".sasl.jaas.config"] = security + line + ";"
		}
		jaas("plain", fmt.Sprintf("plain.PlainLoginModule required user_%s=%q", s.User, s.Password))
		jaas("scram-sha-256", "scram.ScramLoginModule required")
		jaas("scram-sha-512", "scram.ScramLoginModule required")
		jaas("oauthbearer", `oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker"`)
	}
	return p
}

// formatArgs seeds the SCRAM credentials.
func (s *Security) formatArgs() []string {
	var args []string
	for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
		args = append(args, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, s.User, s.Password))
	}
	return args
}
