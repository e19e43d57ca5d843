//go:build linux || darwin || freebsd

package badgerstore

import "syscall"

// freeBytes returns how many bytes an ordinary user may still write.
func freeBytes(dir string) (uint64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	if st.Bavail <= 0 {
		return 0, nil
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil //nolint:unconvert // signed on some systems
}
