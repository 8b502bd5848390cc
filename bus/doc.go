// Package bus notifies listeners of what happens to a run, on any node.
//
// It carries a run's events, and the live deltas of its answers while they arrive. Neither is stored by the bus. The
// source of truth for events is the store: an event is written in one transaction with what it is about, with a
// sequence number within its run, and stays there. The bus publishes it afterwards, merely to wake listeners, so a
// message that is lost or duplicated does no harm: a listener remembers the last number it has seen and reads the rest
// from the store, as [Listener.Follow] does. Whoever starts listening in the middle of an answer asks its sender to
// replay what came before, see [Bus.OnReplay].
//
// Within one process, the store hands the events to the bus when it has committed them ([Bus.Committed]), and nothing
// is sent unless somebody listens. Several nodes are connected by NATS servers (core NATS, at-most-once delivery,
// without JetStream): [Bus.Relay] then publishes what is in the store's outbox, so that events of a node that died are
// published by another.
//
// Subjects are ibid.v1.run.T.R.event and ibid.v1.run.T.R.live, where T and R are hashes of the tenant and the run: both
// are arbitrary strings, and the run of one tenant can never name another's. Requests for a replay use ibid.v1.replay.
//
// A listener that does not keep up is dropped, see [Listener.Dropped]; it does not slow down others.
package bus
