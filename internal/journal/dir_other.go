//go:build windows || plan9

package journal

// syncDir does nothing: these systems sync no directories.
func syncDir(string) error { return nil }
