// Package bus notifies listeners of what happens to a run, on any node.
//
// It carries a run's events, and the live deltas of its answers while they arrive. Neither is stored by the bus. The
// source of truth for events is the store's outbox: an event is written in one transaction with what it is about, with
// a sequence number within its run, and stays there. The bus publishes it afterwards, merely to wake listeners, so a
// message that is lost or duplicated does no harm: a listener remembers the last number it has seen and reads the rest
// from the store, as [Listener.Follow] does. Live deltas are published whether or not anyone listens; the finished
// answer is in the store. Whoever starts listening in the middle of an answer asks its sender to replay what came
// before, see [Bus.OnReplay].
//
// Messages use core NATS with at-most-once delivery; JetStream is not used. [Embedded] runs the server in this process,
// without a port, for a single node. With the addresses of a NATS cluster, the same code connects many nodes.
//
// Subjects are ibid.v1.run.T.R.event and ibid.v1.run.T.R.live, where T and R are hashes of the tenant and the run: both
// are arbitrary strings, and the run of one tenant can never name another's. Requests for a replay use ibid.v1.replay.
//
// A listener that does not keep up is dropped, see [Listener.Dropped]; it does not slow down others.
package bus
