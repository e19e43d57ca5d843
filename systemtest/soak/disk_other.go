//go:build !linux

package soak

import "errors"

func mountTmpfs(string, int) error { return errors.ErrUnsupported }

func unmount(string) error { return nil }
