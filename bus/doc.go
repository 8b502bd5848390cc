// Package bus tells whoever listens to a run what happens to it, on any node.
//
// It carries two things: a run's events, and the live deltas of its answers while they arrive. Neither is kept. The
// truth about events is the store's outbox: an event is written in one transaction with what it is about, with a
// sequence number of its own run, and stays there. The bus publishes it afterwards and no more than wakes the
// listeners, so a message that is lost, or comes twice, harms nothing: a listener knows the number it has seen and
// reads the store for the rest. [Listener.Follow] does exactly that. Live deltas are always published, listened to or
// not: the answer that ends them is in the store. Whoever begins to listen in the middle of an answer asks its sender
// to replay what came before, see [Bus.OnReplay].
//
// The messages go over core NATS, at most once; JetStream is not used. [Embedded] runs the server in this process,
// without a port, for a single node. With the addresses of a NATS cluster the same code joins many nodes.
//
// Subjects are ibid.v1.run.T.R.event and ibid.v1.run.T.R.live, where T and R are hashes of the tenant and of the run:
// both are arbitrary strings, and one tenant's run can never name another's. Requests for a replay go to
// ibid.v1.replay.
//
// A listener that does not keep up is dropped, see [Listener.Dropped]; it slows nobody.
package bus
