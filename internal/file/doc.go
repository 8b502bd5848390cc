// Package file creates private files, writes files that survive a crash, and locks them against other processes.
//
// It is for files that this program owns. It imports no other package of the module.
package file
