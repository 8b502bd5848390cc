// Package halt ends work when its context ends, however deep in its loops, and in those of packages that know no
// context.
package halt
