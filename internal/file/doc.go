// Package file writes files that survive a crash, and locks them against other processes.
//
// All of it is for files that this program owns. It imports nothing of ours.
package file
