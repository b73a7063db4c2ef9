package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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

// An authority signs the certificates of the cluster, all for the time of one run.
type authority struct {
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// newAuthority makes one whose files are in dir: ca.crt, and sa.key for the tokens of service
// accounts.
func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &authority{dir: dir, key: key}
	template := a.template("cluster", "")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	if err := a.write("ca.crt", "CERTIFICATE", der); err != nil {
		return nil, err
	}
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return a, a.writeKey("sa.key", tokens)
}

func (a *authority) template(name, group string) *x509.Certificate {
	a.serial++
	t := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if group != "" {
		t.Subject.Organization = []string{group}
	}
	return t
}

// issue writes FILE.crt and FILE.key for a user of the API in a group, which serves at the
// addresses, if there are any.
func (a *authority) issue(file, user, group string, addresses ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := a.template(user, group)
	for _, address := range addresses {
		if ip := net.ParseIP(address); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, address)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	if err := a.write(file+".crt", "CERTIFICATE", der); err != nil {
		return err
	}
	return a.writeKey(file+".key", key)
}

// kubeconfig issues a certificate and writes FILE.kubeconfig, by which its owner reaches the API
// server; dir is where the owner finds the files.
func (a *authority) kubeconfig(file, user, group, dir string) error {
	if err := a.issue(file, user, group); err != nil {
		return err
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: cluster
  cluster: {server: "https://%s:6443", certificate-authority: %[2]s/ca.crt}
users:
- name: user
  user: {client-certificate: %[2]s/%[3]s.crt, client-key: %[2]s/%[3]s.key}
contexts:
- name: context
  context: {cluster: cluster, user: user}
current-context: context
`, machineAddress, dir, file)
	return os.WriteFile(filepath.Join(a.dir, file+".kubeconfig"), []byte(text), 0o600)
}

// writeKey writes a key in the one form that the API server takes its tokens' in.
func (a *authority) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return a.write(name, "EC PRIVATE KEY", der)
}

func (a *authority) write(name, kind string, der []byte) error {
	return os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
